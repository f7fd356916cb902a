"""Networks without gradients on images: FedACnnL, pFedACnnL and PACE over their layers, beside the CNN that FedAvg trains.

    python -m benchmarks.convolution FILE.npz --out build/convolution
    python -m benchmarks.convolution FILE.npz --device cuda --rounds 100

Every cell is a run in a process of its own, one at a time, so that seconds compare; a cell that is done is not run again. FedAvg
gets the learning rate that its sweep on these images chose (benchmarks/results/gradient_images.json); `--lr 0` sweeps. With
`--keep NAME` the figures become benchmarks/results/convolution_NAME.json, and benchmarks/tables.py makes
docs/convolution_results.md of all such. Needs NumPy, SciPy, scikit-learn, safetensors and PyTorch only.
"""

import argparse
import os
from pathlib import Path

import gramfold as gf
from benchmarks.cells import markdown, run_cell, run_cells
from benchmarks.timing import keep
from gramfold.federation import load_dataset
from gramfold.methods import Method

WIDE = "contrast+conv:20:6:300+split:0.4+grid:2"
METHODS: dict[str, Method] = {
    "fedacnnl, lenet": gf.FedACnnL(network="lenet"),
    "fedacnnl, five": gf.FedACnnL(network="five"),
    "fedacnnl": gf.FedACnnL(),
    "fedacnnl, wide": gf.FedACnnL(network=WIDE),
    "pfedacnnl, five": gf.PFedACnnL(network="five"),
    "pfedacnnl": gf.PFedACnnL(),
    "pfedacnnl, four groups": gf.PFedACnnL(groups=4),
    "pacecnn": gf.PaceCNN(),
    "pacecnn, wide": gf.PaceCNN(network=WIDE),
}


def make(name: str, given: argparse.Namespace) -> Method:
    if name in METHODS:
        return METHODS[name]
    batched = True if given.device != "cpu" else None
    kind = {"fedavg": gf.FedAvg, "fedavg-ft": gf.FedAvgFT}[name]
    return kind(model="cnn:32", rounds=given.rounds, epochs=3, lr=given.lr or None, sweep_rounds=4, batched=batched)


def agreement(device: str) -> dict[str, float]:
    """How far the scores of heads solved on a device are from those solved on the CPU, relative to the largest, on digits."""
    federation = gf.Federation.from_dataset(load_dataset("digits-images"), clients=5, partition="dirichlet:0.5", random_state=0)
    network, images = "contrast+conv:4:3:20+split:0.4+grid:2", federation.clients[0].test().inputs
    methods = (gf.FedACnnL(network=network), gf.PFedACnnL(network=network, groups=2), gf.PaceCNN(network=network))
    off = {}
    for method in methods:
        here, there = (gf.run(method, federation, device=where).heads["1"].scores(images) for where in ("cpu", device))
        off[method.name] = float(abs(here - there).max() / abs(here).max())
    return off


def main(given: argparse.Namespace) -> None:
    out = Path(given.out)
    if given.cell:
        partition, _, name = given.cell.partition("/")
        federation = gf.Federation.from_dataset(
            load_dataset(given.data), clients=given.clients, partition=partition, random_state=given.seed
        )
        federation = federation.validation() if given.validation else federation
        run_cell(given.cell, make(name, given), federation, out, given.device)
        return
    if given.device != "cpu":
        print("agreement with the CPU:", agreement(given.device), flush=True)
    names = given.methods.split(";") if given.methods else [*METHODS, "fedavg", "fedavg-ft"]
    passed = [given.data, *(["--validation"] if given.validation else [])]
    for key in ("device", "rounds", "lr", "clients", "seed", "out"):
        passed += [f"--{key}", str(getattr(given, key))]
    results = run_cells("benchmarks.convolution", [f"dirichlet:0.1/{name}" for name in names], passed, out, jobs=1)
    results.sort(key=lambda result: -(result["mean_accuracy"] or 0))
    print(markdown(results))
    if given.keep:
        kept = [{key: value for key, value in result.items() if key != "clients"} for result in results]
        figures = {"device": given.device, "codes": "place", "cores": len(os.sched_getaffinity(0)), "runs": kept}
        keep(f"convolution_{given.keep}", figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="an .npz file of images, or digits-images")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=40, help="of FedAvg")
    parser.add_argument("--lr", type=float, default=0.3, help="of FedAvg; 0: swept")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default="", help="names separated by semicolons; without: all")
    parser.add_argument("--validation", action="store_true", help="test on a fifth of the training images: for choosing")
    parser.add_argument("--out", default="build/convolution")
    parser.add_argument("--keep", default="", help="keep the figures as benchmarks/results/convolution_NAME.json")
    parser.add_argument("--cell", default="", help=argparse.SUPPRESS)
    main(parser.parse_args())
