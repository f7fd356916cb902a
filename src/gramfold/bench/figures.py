"""Tables and plots as plain values, made of cells' figures. Accuracies become per cent here, and nowhere else."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gramfold.bench.frame import Found, Plot, Table
from gramfold.evaluation import Estimate

OTHER_FEATURES = "Only the order of methods can be compared."


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> Table:
    """Rows begin with their label; those without any figure are left out."""
    kept = [list(row) for row in rows if any(cell is not None for cell in row[1:])]
    return {"title": title, "columns": list(columns), "rows": kept, "note": note}


def lines(title: str, x: str, y: str, series: Iterable[tuple[str, Iterable[Sequence[float | None]]]]) -> Plot:
    """Curves by name; points without a figure are left out, and curves without points."""
    shown = [{"name": name, "points": [list(p) for p in points if None not in p]} for name, points in series]
    return {"kind": "lines", "title": title, "x": x, "y": y, "series": [one for one in shown if one["points"]]}


def heat(title: str, x: str, y: str, columns: Sequence[Any], rows: Sequence[Any], values: Sequence[Sequence[Any]]) -> Plot:
    named = {"columns": [str(name) for name in columns], "rows": [str(name) for name in rows]}
    return {"kind": "heat", "title": title, "x": x, "y": y, **named, "values": [list(row) for row in values]}


def percent(share: float | None) -> float | None:
    """
    >>> percent(0.83125)
    83.125
    """
    return None if share is None else 100 * share


def over_seeds(
    found: Found,
    seeds: Sequence[int],
    key: Callable[[int], str],
    figure: str,
    published: float | str | None = None,
    scale: float = 100.0,
) -> dict[str, Any] | None:
    """A table's cell: mean and standard error over the seeds that are measured, beside the published figure; None where there is
    neither."""
    values = [found[key(seed)].get(figure) for seed in seeds if key(seed) in found]
    seen = Estimate.of([scale * value for value in values if value is not None])
    if seen.mean is None and published is None:
        return None
    return {"mean": seen.mean, "error": seen.standard_error, "published": published, "seeds": seen.n}


def value(found: Found, key: str, figure: str, scale: float = 100.0) -> float | None:
    """One cell's figure; None where it is not measured."""
    got = found.get(key, {}).get(figure)
    return None if got is None else scale * got
