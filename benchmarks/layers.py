"""What `five` is made of: its layers with and without each of what distinguishes them, on training images that are held out.

    python -m benchmarks.layers mnist=FOLDER fashion-mnist=FOLDER cifar10=FOLDER --device cuda

The product's own FedACnnL on two clients, since any cut gives the same network; a sixth of the training images is held out.
Folders are those that `gramfold bench fedacnnl` takes.
"""

import argparse
from dataclasses import replace

import numpy as np

import gramfold as gf
from benchmarks.timing import write
from gramfold.bench.fedacnnl import some
from gramfold.bench.running import device_name
from gramfold.convolution.description import PRESETS

CONTRAST, BOTH_SIGNS = "contrast+", "split:0"
NETWORKS = {
    "five": PRESETS["five"],
    "without contrast": PRESETS["five"].replace(CONTRAST, ""),
    "one sign (relu)": PRESETS["five"].replace(BOTH_SIGNS, "relu"),
    "without contrast, one sign": PRESETS["five"].replace(CONTRAST, "").replace(BOTH_SIGNS, "relu"),
    "one sign, twice the filters": PRESETS["five"].replace(BOTH_SIGNS, "relu").replace(":64:", ":128:").replace(":32:", ":64:"),
}


def held_out_accuracy(path: str, network: str, device: str) -> float:
    data = some(path, 0, 0)
    known = np.flatnonzero(data.train)
    train = np.ones(len(known), dtype=bool)
    train[np.random.default_rng(7).permutation(len(known))[: len(known) // 6]] = False
    part = replace(data, inputs=data.inputs[known], targets=data.targets[known], train=train)
    federation = gf.Federation.from_dataset(part, clients=2, partition="iid", random_state=0)
    result = gf.run(gf.FedACnnL(network=network), federation, device=device, keep_heads=False)
    assert result.global_accuracy is not None
    return result.global_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    rows = []
    for name, path in (part.split("=", 1) for part in given.data):
        for what, network in NETWORKS.items():
            accuracy = held_out_accuracy(path, network, given.device)
            rows.append({"network": what, "terms": network, "data": name, "accuracy": accuracy})
            print(f"{name}, {what}: {100 * accuracy:.2f}", flush=True)
    write("layers", {"device": device_name(given.device), "runs": rows})


if __name__ == "__main__":
    main()
