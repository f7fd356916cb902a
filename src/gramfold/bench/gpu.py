"""The same federation on the CPU and on an accelerator: whether they agree, and how close the accelerator is to its limit."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gramfold.bench import made_up, speed
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Table
from gramfold.bench.machine import clock, described, share
from gramfold.engines import run
from gramfold.engines.inprocess import on_device
from gramfold.features import parse
from gramfold.methods import AFL, APFL, PACE, ClientData, FedHiP, Local, LocalClasses, Method

FOURIER = "bias+linear+fourier:4096"
TIMED: Mapping[str, Method] = {
    **speed.LARGE, "pace, 4096 Fourier": PACE(features=FOURIER),
    "pace, 4096 Fourier, fixed": PACE(features=FOURIER, penalty=50.0, weights=(14.0, 0.02)),
}  # fmt: skip
AGREEING: Mapping[str, Method] = {
    "local": Local(), "afl": AFL(), "localclasses": LocalClasses(), "fedhip": FedHiP(),
    "fedhip at the server": FedHiP(at="server"), "apfl": APFL(), "pace": PACE(features="bias+linear+fourier:200"),
    "pace, sketch": PACE(features="bias+linear+fourier:400", regime="sketch"),
}  # fmt: skip
AGREEMENT, FOLD = "agreement", "fold"


class Gpu(Bench):
    name: ClassVar[str] = "gpu"
    paper: ClassVar[str] = ""
    summary: ClassVar[str] = "an accelerator beside the CPU (same heads?) and beside its own limit; --device cuda"
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": 100, "samples": 50_000, "inputs": 768, "classes": 100, "fourier": 8192, "turns": 3, "methods": list(TIMED),
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 4, "samples": 300, "inputs": 12, "classes": 4, "fourier": 50, "turns": 1, "methods": ["apfl", "pace linear"],
    }  # fmt: skip

    def cells(self, options: Options) -> Sequence[Cell]:
        return [
            Cell(speed.MACHINE, partial(described, options.device, options.quick)),
            *(Cell(name, partial(_timed, options, TIMED[name]), (speed.MACHINE,)) for name in options["methods"]),
            Cell(FOLD, partial(_fold, options), (speed.MACHINE,)),
            *(Cell(f"{AGREEMENT}/{name}", partial(_agreement, options, method)) for name, method in AGREEING.items()),
        ]

    def tables(self, found: Found, options: Options) -> Sequence[Table]:
        names = {"seconds": "seconds", "limit_share": "share of the limit", "fold_ratio": "in folds at the limit",
                 "transferred_megabytes": "MB moved to and fro", "calls": "calls"}  # fmt: skip
        rows = [[key, *(found[key].get(name) for name in names)] for key in found if key in TIMED or key == FOLD]
        apart = [[key.partition("/")[2], found[key]["difference"]] for key in found if key.startswith(f"{AGREEMENT}/")]
        about = "{clients} clients, {samples} x {inputs}, {classes} classes.".format(**options.settings)
        return [
            {"title": "Speed", "columns": ["", *names.values()], "rows": rows, "note": about},
            {"title": "Heads beside the CPU's", "columns": ["", "largest relative difference"], "rows": apart,
             "note": "Of any client's scores on 200 samples, relative to the largest."},
        ]  # fmt: skip


def _timed(options: Options, method: Method, limit: Figures) -> Figures:
    found = speed.timed(method, speed.clients_of(options), limit, options.device, None, options["turns"])
    counts = found["work"]
    moved = {"transferred_megabytes": counts.get("transfers", 0) / 1e6, "calls": counts.get("calls", 0)}
    return {**found, **moved, **_peak(options.device)}


def _peak(device: str) -> Figures:
    if not device.startswith("cuda"):
        return {}
    import torch

    return {"peak_gigabytes": torch.cuda.max_memory_allocated() / 1e9}


def _fold(options: Options, limit: Figures) -> Figures:
    """One round of moments alone, rows on the device."""
    federation, device = speed.clients_of(options), options.device
    method = AFL(features=f"bias+linear+fourier:{options['fourier']}", penalty=1.0)
    begin = method.begin(federation.task)
    parts = [on_device(client.train(), device) for client in federation]

    def folded() -> None:
        total = None
        for part in parts:
            upload = method.local(ClientData("x", part), begin)
            total = upload if total is None else total.__iadd__(upload)
        assert total is not None
        total.lower_gram.sum()

    seconds, rows = clock(folded, device, options["turns"]), sum(part.n for part in parts)
    width = parse(str(method.features)).width(options["inputs"])
    # a device multiplies both halves of a symmetric matrix
    operations = rows * width**2 * (1.0 if device == "cpu" else 2.0)
    return {"seconds": seconds, "width": width, "limit_share": share(limit, seconds, operations), "load": os.getloadavg()[0]}


def _agreement(options: Options, method: Method) -> Figures:
    federation = made_up.embeddings(2500, 48, 12, 12)
    probe = np.random.default_rng(1).standard_normal((200, 48)).astype(np.float32)
    here, there = (run(method, federation, device=device, progress=False) for device in ("cpu", options.device))
    worst = 0.0
    for client, head in here.heads.items():
        one, other = np.asarray(head.scores(probe)), np.asarray(there.heads[client].scores(probe))
        known = np.isfinite(one)
        worst = max(worst, float(np.abs(one[known] - other[known]).max() / np.abs(one[known]).max()))
    return {"difference": worst}


BENCH = Gpu()
