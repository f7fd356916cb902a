"""What `five` is made of: its layers with and without each of what distinguishes them, on training images that are held out.

    python -m benchmarks.layers mnist=FOLDER fashion-mnist=FOLDER cifar10=FOLDER [--images 15000] [--device cuda]

The product's own FedACnnL on two clients, since any cut gives the same network; a third of those drawn are held out.
Folders are those that `gramfold bench fedacnnl` takes.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

import gramfold as gf
from benchmarks.timing import write
from gramfold.bench.fedacnnl import some
from gramfold.convolution.description import PRESETS

CONTRAST, BOTH_SIGNS = "contrast+", "split:0"
NETWORKS = {
    "five": PRESETS["five"],
    "without contrast": PRESETS["five"].replace(CONTRAST, ""),
    "one sign (relu)": PRESETS["five"].replace(BOTH_SIGNS, "relu"),
    "without contrast, one sign": PRESETS["five"].replace(CONTRAST, "").replace(BOTH_SIGNS, "relu"),
    "one sign, twice the filters": PRESETS["five"].replace(BOTH_SIGNS, "relu").replace(":64:", ":128:").replace(":32:", ":64:"),
}


def held_out_accuracy(path: str, network: str, images: int, device: str) -> float:
    data = some(path, 0, 0)
    known = np.flatnonzero(data.train) if data.train is not None else np.arange(len(data.targets))
    drawn = np.random.default_rng(0).permutation(known)[:images]
    train = np.arange(len(drawn)) >= len(drawn) // 3
    part = replace(data, inputs=data.inputs[drawn], targets=data.targets[drawn], train=train)
    federation = gf.Federation.from_dataset(part, clients=2, partition="iid", seed=0)
    result = gf.run(gf.FedACnnL(network=network), federation, device=device, keep_heads=False)
    assert result.global_accuracy is not None
    return result.global_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--images", type=int, default=15000)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    rows = []
    for name, path in (part.split("=", 1) for part in given.data):
        for what, network in NETWORKS.items():
            begun = time.process_time()
            accuracy = held_out_accuracy(path, network, given.images, given.device)
            rows.append({"network": what, "terms": network, "data": name, "accuracy": accuracy})
            print(f"{name}, {what}: {100 * accuracy:.1f}, {time.process_time() - begun:.0f} s", flush=True)
    write("layers", {"images": given.images, "device": given.device, "runs": rows})


if __name__ == "__main__":
    main()
