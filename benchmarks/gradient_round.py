"""A batched round of FedAvg against the loop over clients that it must agree with: 100 clients, a linear head, one CPU thread.

    python -m benchmarks.gradient_round [FILE.npz]

The digits (64 features, 10 classes) are the usual case of many small clients, where a loop spends its time on calls. FILE, if
given, adds a wide head (768 features, 100 classes), where both are bound by the matrix products themselves: the ratio cannot be
large there on a CPU, and `of_gemm_limit` says how much of the machine's rate the batched round reaches.
"""

import argparse
from typing import Any

import torch

import gramfold as gf
from benchmarks.timing import best_interleaved, best_of, write
from gramfold.federation import Dataset, digits, load_npz
from gramfold.methods import ClientData

CLIENTS = 100


def measure(data: Dataset, batch_size: int) -> dict[str, Any]:
    federation = gf.Federation.from_dataset(data, clients=CLIENTS, partition="dirichlet:1.0", random_state=0)
    clients = [ClientData(client.name, client.train()) for client in federation]
    method = gf.FedAvg(lr=0.01, batch_size=batch_size, standardize=False)
    broadcast = method.begin(federation.task)
    uploads = method.local_many(clients, broadcast), [method.local(client, broadcast) for client in clients]
    apart = max(
        float((one[name] - other[name]).abs().max() / one[name].abs().max())
        for one, other in zip(*uploads, strict=True)
        for name in ("model/head.weight", "model/head.bias")
    )
    seconds = best_interleaved(
        5,
        {
            "batched": lambda: method.local_many(clients, broadcast),
            "loop": lambda: [method.local(client, broadcast) for client in clients],
        },
    )
    # forward, and the gradient of the weights: two products per sample and epoch
    flops = 2 * 2 * sum(client.train.n for client in clients) * method.epochs * federation.task.inputs * federation.task.outputs
    return {
        "batch_size": batch_size,
        "seconds": seconds,
        "loop_over_batched": seconds["loop"] / seconds["batched"],
        "largest_relative_difference": apart,
        "of_gemm_limit": flops / gemm_rate() / seconds["batched"],
    }


def gemm_rate(size: int = 1024) -> float:
    """Measured float32 FLOP/s of a large product on one thread."""
    a = torch.rand(size, size)
    return 2 * size**3 / best_of(5, lambda: a @ a)


def main(path: str | None) -> None:
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"digits": [measure(digits(), batch_size) for batch_size in (10, 32)]}
    if path is not None:
        figures["wide"] = [measure(load_npz(path), batch_size) for batch_size in (10, 32)]
    write("gradient_round", figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?")
    main(parser.parse_args().path)
