"""HEART-PFL's experiments (Kim & Kim, WACV 2026, arXiv 2603.24209): the method and its rivals from one pretrained network, its
three parts each with and without the others, and the network's frozen features in closed form.

Every method trains the same weights (adapters, normalisation, head) of the same network, with the same clients sampled and the
same number of epochs at each; rates and penalties are chosen on validation parts of the first seed's training data.
"""

import hashlib
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.bench import published
from gramfold.bench.figures import lines, over_seeds, table, value
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Plot, Table
from gramfold.bench.measuring import data_file, load, run_method
from gramfold.federation import Dataset, Federation
from gramfold.methods import HeartPFL, LocalSGD, Method, make_method
from gramfold.numerics import seeds

HEART = "heart-pfl"
PARTS = {
    parts: HEART + "".join(f" -{name}" for name, there in zip(("HDA", "AKT", "adapters"), parts, strict=True) if not there)
    for parts in itertools.product((True, False), repeat=3)
}
"""Which of its parts are there, and what a row with them is called."""
FROZEN = ("local", "afl", "fedhip", "apfl", "pace")
SWEPT: dict[str, dict[str, tuple[float, ...]]] = {
    HEART: {"prox": (0.01, 0.1, 1.0)},
    "local-sgd": {},
    "fedavg-ft": {},
    "fedprox-ft": {"mu": (0.01, 0.1, 1.0)},
    "ditto": {"lam": (0.01, 0.1, 1.0)},
}
"""Beside the learning rate. Rivals that are not here take FedAvg-FT's."""
OPTIONS: dict[str, dict[str, Any]] = {
    "HDA's weight 1": {"hda": 1.0},
    "HDA's weight 10": {"hda": 10.0},
    "HDA on the shared model": {"hda_side": "shared", "hda": 1.0},
    "HDA by direction throughout": {"hda_split": 4, "hda": 1.0},
    "HDA by value throughout": {"hda_split": 0, "hda": 1.0},
    "AKT without adversary": {"akt_adversary": "none"},
    "AKT with targets of its own": {"akt_adversary": "own"},
    "AKT at temperature 3": {"akt_temperature": 3.0},
    "AKT forward": {"akt_direction": "forward"},
    "AKT reverse": {"akt_direction": "reverse"},
}
"""What differs from the method as published."""


class HeartPflBench(Bench):
    name: ClassVar[str] = "heart-pfl"
    paper: ClassVar[str] = "Kim & Kim, HEART-PFL, WACV 2026, arXiv 2603.24209"
    summary: ClassVar[str] = "HEART-PFL and its rivals from one pretrained network; HDA x AKT x adapters; frozen features"
    files: ClassVar[Mapping[str, str]] = {
        "": "an .npz file of images and labels",
        "pretrained": "a state dict of the network (safetensors or torch)",
        "proxy": "an .npz file of images at the server, of whatever classes",
    }
    settings: ClassVar[Mapping[str, Any]] = {
        **published.HEART_PFL_PROTOCOL, "clients": 20, "partition": "dirichlet:0.1", "participation": 0.4, "batch_size": 16,
        "model": "resnet:64x2", "lrs": [0.003, 0.01, 0.03, 0.1],
        "sweep_rounds": 5, "evaluate_every": 5, "validation_images": 500,
        "rivals": ["local-sgd", "fedavg-ft", "fedprox-ft", "ditto", "fedala", "fedselect"],
        "parts": True, "options": True,
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 3, "partition": "dirichlet:0.5", "participation": 0.7, "rounds": 2, "epochs": 1, "batch_size": 32,
        "model": "resnet:4x1", "akt_rounds": 1, "akt_steps": 2, "akt_batch": 16, "lrs": [0.05], "sweep_rounds": 0,
        "evaluate_every": 1, "validation_images": 40, "rivals": ["local-sgd", "fedavg-ft"], "parts": False, "options": False,
    }  # fmt: skip

    # --- cells ---

    def cells(self, options: Options) -> list[Cell]:
        made = [*self._sweeps(options)]
        plain = PARTS[False, False, True]
        for seed in options.seeds:
            for name in (HEART, plain, *options["rivals"]):
                made.append(self._cell(options, name, seed))
        for seed in options.seeds:
            made.append(Cell(f"frozen/seed {seed}", partial(measure_frozen, options, seed)))
        if options["parts"]:
            rest = [name for name in PARTS.values() if name not in (HEART, plain)]
            made += [self._cell(options, name, seed) for seed in options.seeds for name in rest]
        if options["options"]:
            made += [self._cell(options, name, options.seeds[0]) for name in OPTIONS]
        return made

    def _sweeps(self, options: Options) -> Iterator[Cell]:
        for family in families(options):
            for candidate in candidates(options, family):
                if options["sweep_rounds"]:
                    yield Cell(_swept(family, candidate), partial(measure_candidate, options, family, candidate))

    def _cell(self, options: Options, name: str, seed: int) -> Cell:
        needs = [_swept(family_of(name), one) for one in candidates(options, family_of(name))] if options["sweep_rounds"] else []
        return Cell(_key(name, seed), partial(measure, options, name, seed), needs)

    # --- tables ---

    def tables(self, found: Found, options: Options) -> list[Table]:
        over = partial(over_seeds, found, options.seeds)
        cut = (
            f"{options['clients']} clients, {options['partition']}, {options['participation']:.0%} of them a round, "
            f"{options['rounds']} rounds of {options['epochs']} epochs, batches of {options['batch_size']}, {options['model']}. "
            f"Per cent, mean over seeds. "
        )
        kept = {seed: found[f"frozen/seed {seed}"] for seed in options.seeds if f"frozen/seed {seed}" in found}
        frozen = {_key(name, seed): cell[name] for seed, cell in kept.items() for name in FROZEN}
        figures = ("mean_accuracy", "weighted_accuracy", "worst_decile_accuracy", "primary_accuracy")
        columns = ["method", "accuracy", "by samples", "worst tenth", "shared model"]
        rows = [
            [_named(name), *(over(partial(_key, name), figure) for figure in figures),
             over(partial(_key, name), "uplink_bytes", scale=1e-6), over(partial(_key, name), "seconds", scale=1.0),
             ", ".join(str(seed) for seed in options.seeds if _key(name, seed) in found) or None]
            for name in (HEART, PARTS[False, False, True], *options["rivals"])
        ]  # fmt: skip
        distilled = any(parts[1] for parts in self._measured(found, options))
        how = f"AKT in the first {options['akt_rounds']} rounds, {options['akt_steps']} steps of {options['akt_batch']} images. "
        made = [
            table(
                "HEART-PFL and its rivals, from the same network", [*columns, "MB up", "seconds", "seeds"], rows,
                f"{cut}All train adapters, normalisation and head; convolutions are frozen. {how if distilled else ''}"
                f"{published.HEART_PFL}",
            ),
            *self._parts(found, options, f"{cut}{how if distilled else ''}"),
            table(
                "Frozen features of the same network, in closed form", ["method", "accuracy", "by samples", "worst tenth"],
                [[name, *(over_seeds(frozen, options.seeds, partial(_key, name), f) for f in figures[:3])] for name in FROZEN],
                "Features of the pretrained network, no adapters; one round; the same clients.",
            ),
            table(
                "Other ways to do HDA and AKT", ["what differs", "accuracy", "shared model", "AKT kept", "HDA's gradient %"],
                [
                    [name, *(value(found, _key(name, options.seeds[0]), f) for f in ("mean_accuracy", "primary_accuracy")),
                     value(found, _key(name, options.seeds[0]), "akt_kept", scale=1.0),
                     value(found, _key(name, options.seeds[0]), "hda_gradient")]
                    for name in (HEART, *OPTIONS) if any(_key(one, options.seeds[0]) in found for one in OPTIONS)
                ],
                f"{cut}One seed.",
            ),
        ]  # fmt: skip
        return [one for one in made if one["rows"]]

    def _measured(self, found: Found, options: Options) -> dict[tuple[bool, ...], list[int]]:
        """The seeds that there are of each choice of parts."""
        seeds = {parts: [seed for seed in options.seeds if _key(name, seed) in found] for parts, name in PARTS.items()}
        return {parts: known for parts, known in seeds.items() if known}

    def _parts(self, found: Found, options: Options, how: str) -> Iterator[Table]:
        """With and without each, over seeds that all rows have, since parts differ by less than seeds do: one table of the rows
        with most seeds, and one of all rows where that is another."""
        measured = self._measured(found, options)
        most = max(map(len, measured.values()), default=0)
        for rows in dict.fromkeys((tuple(p for p, known in measured.items() if len(known) == most), tuple(measured))):
            common = [seed for seed in options.seeds if all(seed in measured[parts] for parts in rows)]
            fair = partial(over_seeds, found, common)
            gains = {_key(PARTS[parts], seed): _gain(found, parts, seed) for parts in rows for seed in common}
            yield table(
                f"Its parts, {'seed' if len(common) == 1 else 'seeds'} {', '.join(map(str, common))}",
                ["HDA", "AKT", "adapters", "accuracy", "gain", "by samples", "shared model", "AKT kept", "HDA's gradient %"],
                [
                    [*(("yes" if there else "no") for there in parts),
                     fair(partial(_key, PARTS[parts]), "mean_accuracy"),
                     over_seeds(gains, common, partial(_key, PARTS[parts]), "gain"),
                     *(fair(partial(_key, PARTS[parts]), f) for f in ("weighted_accuracy", "primary_accuracy")),
                     fair(partial(_key, PARTS[parts]), "akt_kept", scale=1.0), fair(partial(_key, PARTS[parts]), "hda_gradient")]
                    for parts in rows
                ],
                f"{how}Gain: over neither HDA nor AKT, seed by seed. AKT kept: in how many rounds the distilled model validated "
                "better than the average. HDA's gradient: its length in per cent of cross-entropy's, mean over clients and the "
                "rounds that were tested.",
            )  # fmt: skip

    def plots(self, found: Found, options: Options) -> list[Plot]:
        names = [HEART, *(name for name in PARTS.values() if name != HEART), *options["rivals"]]
        series = []
        for name in names:
            histories = [found[_key(name, seed)]["history"] for seed in options.seeds if _key(name, seed) in found]
            rounds = [[(entry["round"], 100 * entry["mean_accuracy"]) for entry in history] for history in histories]
            points = [(at[0][0], float(np.mean([y for _, y in at]))) for at in zip(*rounds, strict=False)]
            series.append((_named(name), points))
        return [lines("Accuracy by round", "round", "accuracy, per cent", series)]


def _gain(found: Found, parts: tuple[bool, ...], seed: int) -> Figures:
    """What HDA and AKT bring over neither, in the same network, with the same seed."""
    plain = found.get(_key(PARTS[False, False, parts[2]], seed))
    if plain is None or not any(parts[:2]):
        return {"gain": None}
    return {"gain": found[_key(PARTS[parts], seed)]["mean_accuracy"] - plain["mean_accuracy"]}


# --- what is run ---


def family_of(name: str) -> str:
    """Whose rates a row takes."""
    if name in SWEPT:
        return name
    return HEART if name in PARTS.values() or name in OPTIONS else "fedavg-ft"


def families(options: Options) -> list[str]:
    return list(dict.fromkeys(family_of(name) for name in (HEART, *options["rivals"])))


def candidates(options: Options, family: str) -> list[dict[str, float]]:
    """What is tried: every learning rate with every value of the family's own parameter."""
    grids = {"lr": options["lrs"], **SWEPT[family]}
    if not options["sweep_rounds"]:
        grids = {name: values[:1] for name, values in grids.items()}
    return [dict(zip(grids, values, strict=True)) for values in itertools.product(*grids.values())]


def make(options: Options, name: str, rounds: int, given: Mapping[str, float]) -> Method:
    """A row's method."""
    shared: dict[str, Any] = {
        "model": options["model"], "pretrained": options.path("pretrained"), "freeze": True, "adapters": True,
        "epochs": options["epochs"], "batch_size": options["batch_size"], "participation": options["participation"],
        "batched": options.device != "cpu", **given,
    }  # fmt: skip
    if name == "local-sgd":  # as many epochs as a client trains in the others
        epochs = max(1, round(rounds * options["epochs"] * options["participation"]))
        return LocalSGD(**{**shared, "epochs": epochs, "participation": 1.0})
    if family_of(name) != HEART:
        return make_method(name, rounds=rounds, **shared)
    hda, akt, adapters = next((parts for parts, row in PARTS.items() if row == name), (True, True, True))
    images, steps = server_images(options), {"akt_steps": options["akt_steps"], "akt_batch": options["akt_batch"]}
    if akt:
        shared |= {"proxy": options.path("proxy") or images, "validation": images, "akt_rounds": options["akt_rounds"], **steps}
    if not hda:
        shared["hda"] = 0.0
    return HeartPFL(rounds=rounds, **{**shared, "adapters": adapters, **OPTIONS.get(name, {})})


def measure(options: Options, name: str, seed: int, *tried: Figures) -> Figures:
    best = (
        max(tried, key=lambda one: one["validation_accuracy"])["candidate"] if tried else candidates(options, family_of(name))[0]
    )
    method = make(options, name, options["rounds"], best)
    every = 0 if name.endswith("-ft") else options["evaluate_every"]  # those would train to be tested
    figures = dict(run_method(method, federation(options, seed), options.device, every))
    sizes = [entry["hda_gradient"] for entry in figures["history"] if "hda_gradient" in entry]
    more = {"hda_gradient": float(np.mean(sizes)) if sizes else None, "akt_kept": figures["chosen"].get("akt_kept")}
    return {**figures, **more, "candidate": best}


def measure_candidate(options: Options, family: str, candidate: Mapping[str, float]) -> Figures:
    """A few rounds without AKT, on validation parts of the training data."""
    row = PARTS[True, False, True] if family == HEART else family
    method = make(options, row, options["sweep_rounds"], candidate)
    found = run_method(method, federation(options, options.seeds[0]).validation(), options.device)
    return {"candidate": dict(candidate), "validation_accuracy": found["mean_accuracy"]}


def measure_frozen(options: Options, seed: int) -> Figures:
    data = images_of(options)[0]
    named = data_file(options), options["validation_images"], options["model"], options.path("pretrained"), options.device
    features = Dataset(data.name, _features(*named), data.targets, data.labels, data.train)
    cut = Federation.from_dataset(features, options["clients"], options["partition"], random_state=seed)
    return {name: {k: v for k, v in run_method(make_method(name), cut).items() if k != "history"} for name in FROZEN}


# --- the data ---


def federation(options: Options, seed: int) -> Federation:
    return Federation.from_dataset(images_of(options)[0], options["clients"], options["partition"], random_state=seed)


def images_of(options: Options) -> tuple[Dataset, Dataset]:
    """The clients' images, and those that the server validates on, which no client has."""
    return _split(data_file(options), options["validation_images"])


@lru_cache(maxsize=1)
def _split(path: str, held: int) -> tuple[Dataset, Dataset]:
    data = load(path)
    if data.inputs.ndim == 2:  # a smoke run's digits
        pixels = np.repeat(np.asarray(data.inputs, dtype=np.float64).reshape(-1, 8, 8, 1) * 15, 3, axis=3).astype(np.uint8)
        data = Dataset(data.name, pixels[:400], data.targets[:400], data.labels, None if data.train is None else data.train[:400])
    train = data.train if data.train is not None else np.ones(len(data.inputs), dtype=bool)
    mine = np.sort(seeds.generator(0, "server").choice(np.flatnonzero(train), held, replace=False))
    rest = np.setdiff1d(np.arange(len(data.inputs)), mine)
    split = None if data.train is None else data.train[rest]
    server = Dataset(data.name, data.inputs[mine], data.targets[mine], data.labels, None)
    return Dataset(data.name, data.inputs[rest], data.targets[rest], data.labels, split), server


def server_images(options: Options) -> str:
    """The file that AKT validates with."""
    server = images_of(options)[1]
    path = Path(tempfile.gettempdir()) / f"gramfold-{hashlib.sha256(server.inputs.tobytes()).hexdigest()[:16]}.npz"
    if not path.exists():
        part = path.with_suffix(f".{np.random.default_rng().integers(2**32)}.npz")
        np.savez(part, images=server.inputs, labels=np.array(server.labels)[np.asarray(server.targets)])
        part.replace(path)
    return str(path)


@lru_cache(maxsize=1)
def _features(path: str, held: int, model: str, pretrained: str | None, device: str) -> np.ndarray:
    """The pretrained network's features of the clients' images."""
    import torch

    data = _split(path, held)[0]
    more = {"adapters": False, "freeze": True, "pretrained": pretrained}
    net = networks.build(networks.describe(model, data.inputs.shape[1:], data.outputs, 0, **more), device)
    with torch.no_grad():
        parts = [
            net({}, torch.as_tensor(data.inputs[i : i + 256], device=device), "base") for i in range(0, len(data.inputs), 256)
        ]
    found: np.ndarray = torch.cat(parts).cpu().numpy()
    return found


# --- names ---


def _key(name: str, seed: int) -> str:
    return f"{name}/seed {seed}"


def _swept(family: str, candidate: Mapping[str, float]) -> str:
    return f"sweep/{family}/" + ", ".join(f"{name} {value:g}" for name, value in candidate.items())


def _named(name: str) -> str:
    """
    >>> _named("heart-pfl -HDA -AKT")
    'heart-pfl without HDA, AKT'
    """
    first, *absent = name.split(" -")
    return f"{first} without {', '.join(absent)}" if absent else name


BENCH = HeartPflBench()
