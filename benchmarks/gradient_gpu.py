"""A round of HEART-PFL on a GPU: images a second, at eight clients and batches of sixteen, alone and with other runs beside it.

    python -m benchmarks.gradient_gpu cifar100-20classes-images.npz resnet16x2-cifar80.safetensors

Both models of every client count. The first steps of a round are called one by one and recorded, so that long rounds are faster.
Runs beside one another are processes of their own: start CUDA MPS first (`nvidia-cuda-mps-control -d`), or they take turns.
"""

import argparse
import subprocess
import sys
import time
from typing import Any

import torch

import gramfold as gf
from benchmarks.timing import write
from gramfold.engines.inprocess import on_device
from gramfold.federation import load_npz
from gramfold.methods import ClientData

MODEL, CLIENTS, PARTICIPANTS, PARTITION = "resnet:16x2", 20, 8, "dirichlet:0.1"
EPOCHS, AT_ONCE = (1, 3, 10), (6, 14)


def rate(path: str, pretrained: str, epochs: int, rounds: int = 1) -> float:
    """Images a second, in the last of so many rounds."""
    federation = gf.Federation.from_dataset(load_npz(path), clients=CLIENTS, partition=PARTITION, random_state=0)
    clients = [ClientData(client.name, on_device(client.train(), "cuda")) for client in federation][:PARTICIPANTS]
    method = gf.HeartPFL(model=MODEL, pretrained=pretrained, lr=0.02, epochs=epochs, batched=True)
    seconds = 0.0
    for _ in range(rounds):
        broadcast = method.begin(federation.task)
        torch.cuda.synchronize()
        begun = time.perf_counter()
        method.local_many(clients, broadcast)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begun
    return 2 * epochs * sum(client.train.n for client in clients) / seconds


def main(given: argparse.Namespace) -> None:
    if given.epochs:
        print(rate(given.path, given.pretrained, given.epochs, rounds=2))
        return
    rounds = [{"epochs": epochs, "images_per_second": rate(given.path, given.pretrained, epochs)} for epochs in EPOCHS]
    beside: list[dict[str, Any]] = []
    for count in AT_ONCE:
        command = [sys.executable, "-m", "benchmarks.gradient_gpu", given.path, given.pretrained, "--epochs", "3"]
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        rates = [float(run.communicate()[0]) for run in runs]
        beside.append({"runs": count, "epochs": 3, "images_per_second": sum(rates)})
    settings = {"model": MODEL, "clients": PARTICIPANTS, "batch_size": gf.HeartPFL.batch_size, "partition": PARTITION}
    write("gradient_gpu", {"device": torch.cuda.get_device_name(), **settings, "rounds": rounds, "at_once": beside})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("pretrained")
    parser.add_argument("--epochs", type=int, default=0, help="only this one (used by the benchmark itself)")
    main(parser.parse_args())
