"""Every method under one protocol: the README's table, and the section of docs/results.md."""

import json
from collections.abc import Iterable, Sequence
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
CLOSED = ("local", "afl", "localclasses", "fedhip", "apfl", "fedcgs", "gh-ofl", "fedcof", "safle")
"""Rivals without gradients."""
FRONT = ("local", "afl", "localclasses", "fedhip", "apfl", "fedcof", "fedavg", "fedavg-ft", "pace-linear", "pace")
"""The README's rows: the methods of the papers, and of the others those that come closest."""
Columns = Sequence[tuple[int, float]]
COLUMNS = [(clients, alpha) for clients in (50, 100) for alpha in (0.1, 0.5, 1.0)]
SPLITS = {
    "shares": "Test images in each client's training shares",
    "fresh": "A fresh draw: each client's images split at random",
}
WAYS = ("plain", "masked", "with_prior")
"""A rival as it is, among a client's own classes, and with the class prior."""


Row = dict[str, Any]


def load() -> dict[str, Any]:
    return kept.load("fair")


def found() -> dict[str, dict[str, Any]]:
    return {row["cell"]: row for row in load()["rows"]}


def table(split: str, ways: tuple[str, ...] = WAYS, names: Iterable[str] = NAMES, columns: Columns = COLUMNS) -> str:
    """A row a method, a column a cell; PACE has a prior of its own."""
    rows = found()
    heads = [f"{clients} clients, {alpha}" for clients, alpha in columns]
    lines = [f"| | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for name in names:
        cells = [rows.get(f"{split}/{clients}/{alpha}/{name}") for clients, alpha in columns]
        if any(cells):
            texts = [_text(row, ("plain",) if name in OURS else ways, bold=name in OURS) for row in cells]
            lines.append(f"| {NAMES[name]} | {' | '.join(texts)} |")
    told = [estimate(rows.get(f"{split}/{clients}/{alpha}/pace"), split) for clients, alpha in columns]
    if any(told):
        lines.append(f"| PACE's own estimate, without test images | {' | '.join(told)} |")
    return "\n".join(lines)


def estimate(row: Row | None, split: str) -> str:
    """What heads said of themselves, of the seeds in which that was kept."""
    told = [each[key] for each in (row or {}).get("by_seed", {}).values() if (key := f"estimate_{split}") in each]
    return f"{100 * np.mean(told):.1f}" if told else ""


def _text(row: Row | None, ways: tuple[str, ...], bold: bool) -> str:
    if row is None:
        return "-"
    means = [scores(row, way) for way in ways]
    text = " / ".join(f"{np.mean(list(each.values())):.1f}" if each else "-" for each in means)
    return f"**{text}**" if bold else text


def scores(row: Row, way: str) -> dict[int, float]:
    """Accuracy in per cent by seed."""
    return {seed: 100 * each[way] for seed, each in row["by_seed"].items() if way in each}


def lead(split: str, clients: int, alpha: float, ours: str = "pace", among: Iterable[str] = NAMES) -> tuple[float, str] | None:
    """By how many points PACE is ahead of the best of the others, however it is helped, in the seeds that both have; and which
    that is."""
    start, mine, away = f"{split}/{clients}/{alpha}/", found().get(f"{split}/{clients}/{alpha}/{ours}"), list[tuple[float, str]]()
    for cell, row in found().items():
        if mine is None or not cell.startswith(start) or row["method"] in OURS or row["method"] not in among:
            continue
        for way in WAYS:
            theirs, own = scores(row, way), scores(mine, "plain")
            gaps = [own[seed] - theirs[seed] for seed in theirs if seed in own]
            away += [(float(np.mean(gaps)), row["method"])] if gaps else []
    return min(away, default=None)


def leads(split: str, ours: str = "pace", among: Iterable[str] = NAMES) -> list[float]:
    """In every cell that was measured."""
    return [one[0] for one in _leads(split, ours, among)]


def best(split: str) -> str:
    """Who is closest to PACE, of all cells of a kind of split."""
    return ", ".join(dict.fromkeys(NAMES[name] for _, name in _leads(split, "pace")))


def _leads(split: str, ours: str, among: Iterable[str] = NAMES) -> list[tuple[float, str]]:
    return [one for clients, alpha in COLUMNS if (one := lead(split, clients, alpha, ours, among)) is not None]


def measured(split: str) -> bool:
    """Whether there is a rival with the prior, as well as PACE, in every cell of a kind of split."""
    return len(leads(split)) == len(COLUMNS)


def front() -> str:
    """The README's."""
    return "\n\n".join([table("shares", ("plain", "with_prior"), FRONT), age("fair")])


def choosing() -> str:
    """The guide's: the most and the least different of a hundred clients."""
    return "\n\n".join([table("shares", ("plain", "with_prior"), FRONT, [(100, 0.1), (100, 1.0)]), age("fair")])


def says(split: str) -> str:
    """Leads, cell by cell."""
    lines = []
    for ours, called in (("pace", "PACE"), ("pace-linear", "PACE with a linear map")):
        away = ", ".join(f"{gap:+.1f}" for gap in leads(split, ours))
        lines.append(f"{called} from the best of the others, cell by cell: {away}.")
    return " ".join(lines) + f" The best of the others: {best(split)}."


def section(split: str) -> str:
    """A table of docs/results.md."""
    return f"{table(split)}\n\n{says(split)}"


def edges() -> str:
    """Where a sweep ended at the last value that was tried, and how old the figures are."""
    found_at = at_an_edge()
    said = f"Sweeps whose winner is the last value that was tried: {', '.join(found_at)}." if found_at else ""
    return f"{said}\n\n{age('fair')}".strip()


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
