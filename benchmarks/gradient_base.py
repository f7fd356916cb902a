"""FedALA and FedSelect, which keep part of a network personal, on a linear head and on a network with a base, beside FedAvg-FT.

    python -m benchmarks.gradient_base cifar100-dinov2s.npz

Twenty of the classes, 20 clients; learning rates are swept on validation data.
"""

import argparse
from dataclasses import replace

import numpy as np
import torch

import gramfold as gf
from benchmarks.timing import write
from gramfold.federation import load_npz
from gramfold.methods import make_method

CLASSES, CLIENTS, PARTITION, ROUNDS, SWEEP = 20, 20, "dirichlet:0.1", 30, 4
METHODS, BASES = ("fedala", "fedselect", "fedavg-ft"), ("linear", "mlp:256")


def main(path: str) -> None:
    torch.set_num_threads(1)
    data = load_npz(path)
    some = np.flatnonzero(data.targets < CLASSES)
    train = None if data.train is None else data.train[some]
    data = replace(data, inputs=data.inputs[some], targets=data.targets[some], labels=(data.labels or ())[:CLASSES], train=train)
    federation = gf.Federation.from_dataset(data, clients=CLIENTS, partition=PARTITION, seed=0)
    rows = []
    for name in METHODS:
        for base in BASES:
            result = gf.run(make_method(name, model=base, rounds=ROUNDS, sweep_rounds=SWEEP), federation, keep_heads=False)
            row = {"method": name, "model": base, "mean_accuracy": result.mean_accuracy, "chosen": dict(result.chosen)}
            rows.append({**row, "worst_decile_accuracy": result.worst_decile_accuracy, "global_accuracy": result.global_accuracy})
            print(rows[-1], flush=True)
    settings = {"clients": CLIENTS, "classes": CLASSES, "partition": PARTITION, "rounds": ROUNDS, "sweep_rounds": SWEEP}
    write("gradient_base", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    main(parser.parse_args().path)
