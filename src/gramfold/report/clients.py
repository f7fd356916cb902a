"""Every client's figures as the page's script reads them: columns of numbers, rounded to what can be seen.

Accuracies are in per cent. Clients are compared by the measure that fits the task. A client's skew is the total variation
distance between its training labels and everybody's: 0 where its class shares are those of all, near 1 where it has hardly any of
the classes that most samples are of.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gramfold.measures import MEASURES, main_measure
from gramfold.report.text import MISSING

Method = Mapping[str, Any]
ALONE = ("local", "local-sgd")
"""The methods in which every client learns alone: what others are measured against."""
MOST_INTERVALS = 300
"""Clients up to which a page has their intervals: with more it would be large, and they are in result.json."""
ESTIMATE = "leave_one_out_accuracy"


def figure_of(methods: Sequence[Method]) -> str:
    return main_measure(methods).key


def rounded(value: Any, figure: str = "") -> Any:
    """A number with the digits that a figure shows; what is no number stays as it is."""
    if not isinstance(value, float):
        return value
    return round(100 * value, 2) if figure.endswith("accuracy") else float(f"{value:.4g}")


def clients_of(methods: Sequence[Method], labels: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The clients of methods that ran on the same ones. `labels` are their label counts, where the run knew them."""
    figure, clients = figure_of(methods), methods[0]["clients"]
    counts = None
    if labels is not None and all(client["name"] in labels["counts"] for client in clients):
        counts = [{int(code): n for code, n in labels["counts"][client["name"]].items()} for client in clients]
    return {
        "figure": figure,
        "names": [str(client["name"]) for client in clients],
        "train": [client["train"] for client in clients],
        "test": [client["test"] for client in clients],
        "skew": None if counts is None else skew(counts),
        "classes": None if counts is None else [str(label) for label in labels["classes"]],  # type: ignore[index]
        "counts": None if counts is None else [[part for pair in sorted(mine.items()) for part in pair] for mine in counts],
        "methods": _sharing([_method(method, figure) for method in methods]),
        "alone": alone(methods),
    }


def _method(method: Method, figure: str) -> dict[str, Any]:
    clients = method["clients"]
    shared = [client.get(f"shared_{figure}") for client in clients]
    keys = dict.fromkeys(key for client in clients for key in client.get("chosen", {}))
    nested = {key for client in clients for key, value in client.get("chosen", {}).items() if isinstance(value, Mapping)}
    shown = [key for key in keys if key == ESTIMATE or not (key in nested or key.startswith("leave_one_out"))]
    return {
        "name": method["name"],
        "mean": rounded(method[f"mean_{figure}"], figure),
        "values": [rounded(client[figure], figure) for client in clients],
        "ends": _ends(clients, figure),
        "shared": None if all(value is None for value in shared) else [rounded(value, figure) for value in shared],
        "groups": _groups(method),
        "chosen": {key: _once([_plain(client.get("chosen", {}).get(key), key) for client in clients]) for key in shown},
    }


def _groups(method: Method) -> dict[str, Any] | None:
    """The groups that a method found or was given: their names, the tree of their centres, and what sets each apart."""
    said = method.get("chosen", {})
    count = said.get("groups")
    if not isinstance(count, int):
        return None
    columns = said.get("group_columns") or [{}] * count
    why = [", ".join(f"column {name} {value:+.2g}" for name, value in own.items()) for own in columns]
    evidence = said.get("group_evidence") or {}
    return {
        "names": said.get("group_names") or [f"group {i}" for i in range(count)],
        "tree": said.get("group_tree") or [],
        "why": why,
        "nats": rounded(float(evidence[str(count)])) if str(count) in evidence else None,
    }


def _ends(clients: Sequence[Mapping[str, Any]], figure: str) -> list[list[Any] | None] | None:
    """The clients' confidence intervals; None where there are none."""
    if len(clients) > MOST_INTERVALS:
        return None
    found = [client.get("intervals", {}).get(figure) for client in clients]
    return [ends and [rounded(end, figure) for end in ends] for ends in found] if any(found) else None


def _sharing(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Many methods have the same shared model: its figures are written once, and by others the place of who has them."""
    for i, method in enumerate(methods):
        if method["shared"] is not None:
            method["shared"] = next((j for j in range(i) if methods[j]["shared"] == method["shared"]), method["shared"])
    return methods


def _plain(value: Any, key: str) -> Any:
    value = rounded(value, key)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _once(values: list[Any]) -> Any:
    """What all clients chose alike is written once."""
    return values[0] if all(value == values[0] for value in values) else values


def skew(counts: Sequence[Mapping[int, int]]) -> list[float]:
    """How far each client's class shares are from everybody's.

    >>> skew([{0: 5, 1: 5}, {0: 5, 1: 5}]), skew([{0: 4}, {1: 4}])
    ([0.0, 0.0], [0.5, 0.5])
    """
    pooled: dict[int, int] = {}
    for mine in counts:
        for code, n in mine.items():
            pooled[code] = pooled.get(code, 0) + n
    total = max(sum(pooled.values()), 1)
    return [
        round(0.5 * sum(abs(mine.get(code, 0) / max(sum(mine.values()), 1) - n / total) for code, n in pooled.items()), 3)
        for mine in counts
    ]


def alone(methods: Sequence[Method]) -> int | None:
    """Which of the methods is the one where clients learn alone."""
    names = [str(method["name"]).rsplit(": ", 1)[-1] for method in methods]  # after a run's name, where there are several
    return next((names.index(name) for name in ALONE if name in names), None)


# --- who gains and who loses ---


def gains(methods: Sequence[Method]) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """A table: how many clients each method serves better and worse than learning alone, and than its own shared model.

    Only the header's first column where there is nothing to compare with.
    """
    figure, lone = figure_of(methods), alone(methods)
    base = [] if lone is None else [client[figure] for client in methods[lone]["clients"]]
    against = {
        "Local": [[] if i == lone else base for i in range(len(methods))],
        "its shared model": [[client.get(f"shared_{figure}") for client in method["clients"]] for method in methods],
    }
    counted = {
        name: [_counted(m, other, figure) for m, other in zip(methods, others, strict=True)] for name, others in against.items()
    }
    kept = {name: column for name, column in counted.items() if any(column)}
    header = [("method", "")]
    for name in kept:
        header += [
            (f"better than {name}", "clients that this method serves better"), ("same", "clients that it serves exactly as well"),
            ("worse", "clients that it serves worse"), ("mean gain", "over clients, in points; for errors, what they shrink by"),
        ]  # fmt: skip
    rows = [
        [method["name"], *(cell for column in kept.values() for cell in column[i] or [MISSING] * 4)]
        for i, method in enumerate(methods)
    ]
    return header, rows


def _counted(method: Method, other: Sequence[float | None], figure: str) -> list[str]:
    """Clients better, same and worse, and the mean gain; empty where no client has both figures."""
    measure = MEASURES[figure]
    own, sign = [client[figure] for client in method["clients"]], -1 if measure.less_is_better else 1
    steps = [sign * (a - b) for a, b in zip(own, other, strict=False) if a is not None and b is not None]
    if not steps:
        return []
    mean = sum(steps) / len(steps)
    shown = "0" if not mean else f"{100 * mean:+.1f}" if measure.percent else f"{mean:+.3g}"
    return [str(sum(s > 0 for s in steps)), str(sum(s == 0 for s in steps)), str(sum(s < 0 for s in steps)), shown]
