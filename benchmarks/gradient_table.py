"""Every gradient method, its learning rate validated, beside the analytic ones, on frozen features.

    python -m benchmarks.gradient_table FILE.npz --device cuda --jobs 12 --rounds 100

Writes OUT/table.md and OUT/table.json. A cell that is done is not run again; one that was stopped goes on.
"""

import argparse
import json
from pathlib import Path

import gramfold as gf
from benchmarks.cells import markdown, run_cell, run_cells
from gramfold.federation import load_npz
from gramfold.methods import GRADIENT, Method, make_method

RIVALS = [kind.name for kind in GRADIENT if "features" in kind.input_kinds and kind is not gf.LocalSGD]
SLOW = ("pfedme", "fedas", "fedpcl", "ditto")
RIVALS.sort(key=lambda name: name not in SLOW)  # the slow ones first, so that none is left alone at the end
ANALYTIC = ["local", "afl", "localclasses", "fedhip", "apfl", "pace"]


def make(name: str, rounds: int, sweep_rounds: int) -> Method:
    return make_method(name, rounds=rounds, sweep_rounds=sweep_rounds) if name in RIVALS else make_method(name)


def main(given: argparse.Namespace) -> None:
    out = Path(given.out)
    if given.cell:
        partition, _, name = given.cell.partition("/")
        federation = gf.Federation.from_dataset(
            load_npz(given.path), clients=given.clients, partition=partition, random_state=given.seed
        )
        run_cell(given.cell, make(name, given.rounds, given.sweep_rounds), federation, out, given.device)
        return
    names = given.methods.split(",") if given.methods else [*RIVALS, *ANALYTIC]
    partitions = [f"dirichlet:{alpha}" for alpha in given.alphas.split(",")]
    passed = [given.path]
    for key in ("device", "rounds", "sweep_rounds", "clients", "seed", "out"):
        passed += [f"--{key.replace('_', '-')}", str(getattr(given, key))]
    cells = [f"{partition}/{name}" for name in names for partition in partitions]
    results = run_cells("benchmarks.gradient_table", cells, passed, out, given.jobs)
    text = ""
    for partition in partitions:
        rows = [result for result in results if result["cell"].startswith(f"{partition}/")]
        rows.sort(key=lambda result: -(result["mean_accuracy"] or 0))
        text += f"### {partition}, {given.clients} clients, {given.rounds} rounds\n\n{markdown(rows)}\n"
        shared = {result["name"]: result["global_accuracy"] for result in rows}
        if {"fedavg", "afl"} <= set(shared):
            gap = 100 * (shared["fedavg"] - shared["afl"])
            text += f"FedAvg's shared model is {gap:+.2f} points from AFL's; the least for a fair comparison is -3.\n\n"
    (out / "table.md").write_text(text)
    (out / "table.json").write_text(json.dumps([{k: v for k, v in r.items() if k != "clients"} for r in results], indent=1))
    print(text)


def arguments(description: str, out: str) -> argparse.ArgumentParser:
    """The options that tables share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("path", help="the data, an .npz file")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--sweep-rounds", type=int, default=10, help="rounds for each candidate of the sweeps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default="", help="only these, separated by commas")
    parser.add_argument("--out", default=out)
    parser.add_argument("--cell", default="", help="run this one cell (used by the benchmark itself)")
    return parser


if __name__ == "__main__":
    parser = arguments(__doc__.splitlines()[0], "build/gradient-table")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--alphas", default="0.1,1.0")
    main(parser.parse_args())
