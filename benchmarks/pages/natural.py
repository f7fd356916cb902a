"""Clients that nobody cut, data that no constant saw, and wrong labels: tables of docs/data.md."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks import kept
from benchmarks.provenance import age

Row = dict[str, Any]
OURS = ("PACE", "APFL", "FedHiP", "AFL", "Local")
POOLED = ("mixed model", "boosted trees", "pooled line")


def lines(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each data set, in order."""
    return [[row for row in rows if row["data"] == name] for name in dict.fromkeys(row["data"] for row in rows)]


def mean(rows: Iterable[Row], key: str) -> float | None:
    values = [row[key] for row in rows if key in row]
    return float(np.mean(values)) if values else None


def of(rows: Iterable[Row], model: str) -> list[Row]:
    return [row for row in rows if row["model"] == model]


def table(rows: Sequence[Row], models: Sequence[str]) -> str:
    """A row a data set, a column a model: root mean square error over all test rows, or log loss / AUC."""
    out = [f"| | seeds | {' | '.join(models)} |", "| --- | ---: |" + " ---: |" * len(models)]
    for mine in lines(rows):
        texts = []
        for model in models:
            found = [mean(of(mine, model), key) for key in ("rmse", "log_loss", "auc")]
            texts.append(" / ".join(f"{value:.4g}" for value in found if value is not None) or "-")
        first = mine[0]
        about = f"{first['data']}: {first['rows']} rows, {first['clients']} clients"
        out.append(f"| {about} | {len({row['seed'] for row in mine})} | {' | '.join(texts)} |")
    return "\n".join(out)


def away(mine: Sequence[Row], model: str, ours: str = "PACE") -> list[float]:
    """By what part of the other's error (or log loss) PACE's is smaller, seed by seed."""
    key = "rmse" if "rmse" in mine[0] else "log_loss"
    theirs, own = ({row["seed"]: row[key] for row in of(mine, each)} for each in (model, ours))
    return [1 - own[seed] / theirs[seed] for seed in theirs if seed in own]


def standing(rows: Sequence[Row], model: str) -> tuple[int, int, int]:
    """In how many data sets PACE's error is lower than another's by more than one in a hundred, within that, or higher."""
    gaps = [float(np.mean(gap)) for mine in lines(rows) if (gap := away(mine, model))]
    return sum(gap > 0.01 for gap in gaps), sum(abs(gap) <= 0.01 for gap in gaps), sum(gap < -0.01 for gap in gaps)


def said(rows: Sequence[Row], models: Sequence[str]) -> str:
    """How PACE stands beside each of these."""
    counts = {model: standing(rows, model) for model in models}
    told = ", ".join(f"{model} {won} / {level} / {lost}" for model, (won, level, lost) in counts.items())
    return f"PACE's error is lower by more than 1 % / within 1 % / higher by more: {told}."


def says(rows: Sequence[Row], models: Sequence[str]) -> str:
    if not of(rows, "PACE"):
        return "PACE and the other federated methods are not measured yet."
    return f"Counting tables, {said(rows, models)}"


def natural() -> str:
    rows = kept.load("natural")
    models = [*OURS, *POOLED]
    return "\n\n".join([table(rows, models), says(rows, models[1:]), age("natural")])


def front() -> str:
    """The README's: natural clients, and data that no constant saw, in a sentence each."""
    told = []
    for name, called in (("natural", "clients that nobody cut"), ("untouched", "data that no constant saw")):
        rows = [row for row in kept.load(name) if "accuracy" not in row or "auc" in row]
        if name == "untouched":
            rows = [row for row in rows if row["release"] == rows[-1]["release"]]
        sets = [mine for mine in lines(rows) if of(mine, "PACE")]
        link = f"[{called}](docs/data.md#{called.replace(' ', '-')})"
        if not sets:
            told.append(f"- On {link} PACE is not measured yet.")
            continue
        rows = [row for mine in sets for row in mine]
        told.append(
            f"- Of {len(sets)} tables of {link} {said(rows, ('Local', 'AFL', *POOLED))} The last three have the pooled rows."
        )
    return "\n".join(told)


def heart() -> str:
    """Accuracy on FLamby's split, beside what FLamby stores for it."""
    from benchmarks.natural import FLAMBY

    rows = [row for row in kept.load("natural") if row["data"] == "heart disease, by hospital"]
    found = {model: mean(of(rows, model), "accuracy") for model in (*OURS, *POOLED)}
    told = [f"| {model} | {100 * value:.1f} | |" for model, value in found.items() if value is not None]
    told += [f"| FLamby: {name} | | {100 * value:.1f} |" for name, value in FLAMBY.items()]
    return "\n".join(
        ["| accuracy %, mean over four hospitals | measured here | stored by FLamby |", "| --- | ---: | ---: |", *told]
    )


def untouched() -> str:
    """Of the last release that has figures."""
    rows = kept.load("untouched")
    release = rows[-1]["release"]
    rows = [row for row in rows if row["release"] == release]
    classes = [row for row in rows if "accuracy" in row and "auc" not in row]
    tables = [row for row in rows if row not in classes]
    parts = [f"Release {release}."]
    if classes:
        parts.append(embedded(classes))
    models = [*OURS, *POOLED]
    return "\n\n".join([*parts, table(tables, models), says(tables, models[1:]), age("untouched")])


def embedded(rows: Sequence[Row]) -> str:
    """Accuracy in per cent / log loss: a row a method, a column a data set and its cut."""
    sets = lines(rows)
    heads = [f"{mine[0]['data']} ({mine[0]['clients']} clients)" for mine in sets]
    out = [f"| accuracy % / log loss | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for model in dict.fromkeys(row["model"] for row in rows):
        pairs = [(mean(of(mine, model), "accuracy"), mean(of(mine, model), "log_loss")) for mine in sets]
        texts = ["-" if right is None or lost is None else f"{100 * right:.1f} / {lost:.3f}" for right, lost in pairs]
        out.append(f"| {model} | {' | '.join(texts)} |")
    return "\n".join(out)


def noise() -> str:
    """Accuracy of clients with wrong labels / of the others, by the part that is wrong."""
    rows = kept.load("noise")
    sets = list(dict.fromkeys((row["data"], row["flipped"]) for row in rows))
    heads = [f"{data}, {100 * part:.0f} % wrong" for data, part in sets]
    out = [f"| accuracy % of clients with wrong labels / others | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for method in dict.fromkeys(row["method"] for row in rows):
        texts = []
        for key in sets:
            mine = [row for row in rows if (row["data"], row["flipped"]) == key and row["method"] == method]
            pair = [mean(mine, each) for each in ("wrong", "others")]
            texts.append(" / ".join("-" if value is None else f"{100 * value:.1f}" for value in pair) if mine else "-")
        out.append(f"| {method} | {' | '.join(texts)} |")
    seeds = sorted(
        {len([row for row in rows if (row["data"], row["flipped"]) == key and row["method"] == "PACE"]) for key in sets}
    )
    return "\n".join([*out, "", f"Seeds: {' or '.join(map(str, seeds))}. {age('noise')}"])
