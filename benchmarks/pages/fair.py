"""Every method under one protocol: the README's table, and the section of docs/results.md."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import kept
from benchmarks.provenance import age

NAMES = {
    "local": "Local", "afl": "AFL", "localclasses": "LocalClasses", "fedhip": "FedHiP", "apfl": "APFL", "fedcgs": "FedCGS",
    "gh-ofl": "GH-OFL, LDA", "fedcof": "FedCOF", "safle": "SAFLe", "fedavg": "FedAvg, linear head",
    "fedavg-ft": "FedAvg-FT, linear head", "fedavg-mlp": "FedAvg, `mlp:256`", "lp-ft": "LP-FT, `mlp:256`",
    "fedrep": "FedRep, `mlp:256`", "feddbe": "FedDBE, `mlp:256`", "pace-linear": "PACE, linear map", "pace": "PACE",
}  # fmt: skip
OURS = ("pace-linear", "pace")
COLUMNS = [(clients, alpha) for clients in (50, 100) for alpha in (0.1, 0.5, 1.0)]
SPLITS = {
    "shares": "Test images in each client's training shares",
    "fresh": "A fresh draw: each client's images split at random",
}
WAYS = ("plain", "masked", "with_prior")
"""A rival as it is, among a client's own classes, and with the class prior."""


def load() -> dict[str, Any]:
    return kept.load("fair")


def found() -> dict[str, dict[str, Any]]:
    return {row["cell"]: row for row in load()["rows"]}


def table(split: str, ways: tuple[str, ...] = WAYS) -> str:
    """A row a method, a column a cell; PACE has a prior of its own."""
    rows = found()
    lines = ["| | " + " | ".join(f"{clients} clients, {alpha}" for clients, alpha in COLUMNS) + " |", "| --- |" + " ---: |" * 6]
    for name, title in NAMES.items():
        cells = [rows.get(f"{split}/{clients}/{alpha}/{name}") for clients, alpha in COLUMNS]
        if any(cells):
            texts = [_text(row, ("plain",) if name in OURS else ways, bold=name in OURS) for row in cells]
            lines.append(f"| {title} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _text(row: dict[str, Any] | None, ways: tuple[str, ...], bold: bool) -> str:
    if row is None:
        return "-"
    text = " / ".join(f"{100 * np.mean(row[way]):.1f}" if way in row else "-" for way in ways)
    return f"**{text}**" if bold else text


def best_rival(split: str, clients: int, alpha: float) -> tuple[float, str] | None:
    """The best that any other method reaches in a cell, however it is helped, and which."""
    start, scores = f"{split}/{clients}/{alpha}/", list[tuple[float, str]]()
    for cell, row in found().items():
        if cell.startswith(start) and row["method"] not in OURS:
            scores += [(100 * float(np.mean(row[way])), row["method"]) for way in WAYS if way in row]
    return max(scores, default=None)


def leads(split: str, ours: str = "pace") -> list[float]:
    """By how many points PACE is ahead of the best of the others, their help included, in every cell that was measured."""
    rows, away = found(), []
    for clients, alpha in COLUMNS:
        mine, best = rows.get(f"{split}/{clients}/{alpha}/{ours}"), best_rival(split, clients, alpha)
        if mine is not None and best is not None:
            away.append(100 * float(np.mean(mine["plain"])) - best[0])
    return away


def measured(split: str) -> bool:
    """Whether there is a rival with the prior, as well as PACE, in every cell of a kind of split."""
    return len(leads(split)) == len(COLUMNS)


def seeds() -> str:
    """How many seeds cells have."""
    counts = sorted({len(row["plain"]) for row in load()["rows"]})
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def front() -> str:
    """The README's."""
    away = leads("shares")
    says = f"PACE is {min(away):+.1f} to {max(away):+.1f} points from the best of the others, prior included." if away else ""
    return "\n\n".join([table("shares", ("plain", "with_prior")), f"{says} {age('fair')}".strip()])


def section() -> str:
    """The section of docs/results.md."""
    figures = load()
    parts = [
        "## One protocol for all",
        "CIFAR-100 as frozen DINOv2-small features. Each rival as it is / among a client's own classes alone / with the class prior, a temperature and a weight of the prior, fitted on a fifth of every client's "
        f"training images, held out from a run of its own; {seeds()}; gradient methods {figures['rounds']} rounds of three local epochs, rates and other parameters swept on the same held-out images, each cell for "
        "itself. PACE has a prior of its own, and nothing fitted. `python -m benchmarks.fair FILE.npz --device cuda`.",
    ]
    for split, title in SPLITS.items():
        parts += [f"### {title}", table(split), *_says(split)]
    edges = at_an_edge()
    if edges:
        parts.append(f"Sweeps whose winner is the last value that was tried: {', '.join(edges)}.")
    return "\n\n".join([*filter(None, parts), age("fair")])


def _says(split: str) -> Iterator[str]:
    for ours, called in (("pace", "PACE"), ("pace-linear", "PACE with a linear map")):
        away = leads(split, ours)
        if away:
            yield f"{called} from the best of the others, cell by cell: {', '.join(f'{lead:+.1f}' for lead in away)}."


def at_an_edge() -> list[str]:
    """Methods whose sweep ended at the least or the largest value in some cell, where more could have been tried."""
    edges: dict[str, int] = {}
    for row in load()["rows"]:
        tried = [json.loads(key) for key in row.get("swept", {})]
        for name, value in (row.get("chosen") or {}).items():
            values = sorted({each[name] for each in tried})
            if len(values) > 1 and value in (values[0], values[-1]):
                edges[f"{NAMES[row['method']]} ({name})"] = edges.get(f"{NAMES[row['method']]} ({name})", 0) + 1
    return [f"{name} in {count} cells" for name, count in sorted(edges.items())]
