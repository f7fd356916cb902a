"""Which sites' descriptions of their data fit together. Whoever differs from most is excluded by name, before there is a task."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.origin import Origin
from gramfold.remote import reports
from gramfold.sources import TableStatistics
from gramfold.sources.encoder import MOST_CATEGORIES

Description = Mapping[str, Any]
MOST_COLUMNS = 10_000
"""Of a site's table."""
MOST_INPUTS = 10**8
"""Numbers per sample."""
CRITERIA: Mapping[str, Callable[[Description], Any]] = {
    "numbers per sample": lambda site: site["inputs"],
    "sample shape": lambda site: tuple(site["shape"]),
    "kind of targets": lambda site: "continuous" if site["labels"] is None else "classes",
    "number of targets": lambda site: site["outputs"] if site["labels"] is None else None,
    "kind of labels": lambda site: "names" if isinstance((site["labels"] or [0])[0], str) else "numbers",
    "columns": lambda site: _columns_of(site["table"]) if "table" in site else None,
    "backbone": lambda site: site["origin"]["fingerprint"] if "origin" in site else None,
    "list of classes": lambda site: tuple(site["labels"]) if site["declared"] else None,
}
"""What sites must have in common. None: that site has no say in it."""


def odd_ones_out(described: Mapping[str, Description], most_classes: int) -> dict[str, str]:
    """The sites that cannot take part, and why. Where two opinions have equally many sites, all of them stay: there can be no
    task then, and `agreed_task` says so."""
    odd: dict[str, str] = {}
    for name in sorted(described):
        try:
            _check(described[name], most_classes)
        except (GramfoldError, KeyError, TypeError) as error:
            reason = str(error) if isinstance(error, GramfoldError) else repr(error)
            odd[name] = f"its description of its data is refused: {reason}"
    for what, of in CRITERIA.items():
        odd |= _minority(what, {name: of(described[name]) for name in described if name not in odd})
    return odd | _most_inflating({name: described[name] for name in described if name not in odd}, most_classes)


def _check(site: Description, most_classes: int) -> None:
    reports.whole(site["inputs"], "number of inputs", 1, MOST_INPUTS)
    reports.whole(site["samples"], "number of samples", 1)
    if reports.whole(site["outputs"], "number of targets", 1) > most_classes:
        raise GramfoldError(f"{site['outputs']} classes or targets, more than {most_classes}; see `max-classes`")
    if not isinstance(site["shape"], list) or len(site["shape"]) > 8 or not isinstance(site["declared"], bool):
        raise GramfoldError("no sample shape, or no word on whether its classes are a list")
    for side in site["shape"]:
        reports.whole(side, "sample shape", 1, MOST_INPUTS)
    if "origin" in site:
        Origin.from_dict(site["origin"])
    if "table" in site:
        statistics = TableStatistics.from_dict(site["table"])
        sizes = [len(column.counts or ()) for column in statistics.by_column.values()]
        if len(sizes) > MOST_COLUMNS or max(sizes, default=0) > MOST_CATEGORIES:
            raise GramfoldError(f"a table of more than {MOST_COLUMNS} columns, or {MOST_CATEGORIES} categories in one")
    labels = site["labels"]
    if labels is None:
        return
    if not isinstance(labels, list) or not 0 < len(labels) <= most_classes:
        raise GramfoldError(f"its labels are no list of 1 to {most_classes}; see `max-classes`")
    if len({type(label) for label in labels}) != 1 or len(set(labels)) != len(labels):
        raise GramfoldError("its labels are not all numbers, or all names, each of them once")
    for label in labels:
        if isinstance(label, str):
            reports.text(label, "label")
        else:
            reports.whole(label, "label", -(2**53), 2**53)


def _columns_of(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The names of a table's columns, and whether they hold numbers or words; a column without anything in it holds neither."""
    statistics = TableStatistics.from_dict(table).by_column
    return tuple(sorted((name, "numbers" if column.counts is None else "words") for name, column in statistics.items()))


def _minority(what: str, opinions: Mapping[str, Any]) -> dict[str, str]:
    """The sites whose opinion is not that of most; none where there is no most."""
    counts = Counter(opinion for opinion in opinions.values() if opinion is not None).most_common(2)
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return {}
    (usual, many), _ = counts
    return {
        name: f"its {what} ({_short(opinion)}) is not that of {many} other sites ({_short(usual)})"
        for name, opinion in opinions.items()
        if opinion is not None and opinion != usual
    }


def _most_inflating(described: Mapping[str, Description], most_classes: int) -> dict[str, str]:
    """The sites to leave out for the others to have few enough classes: first those that bring most labels nobody else has."""
    labels = {name: set(site["labels"]) for name, site in described.items() if site["labels"] is not None}
    odd: dict[str, str] = {}
    while len(set().union(*labels.values())) > most_classes:
        held = Counter(label for mine in labels.values() for label in mine)
        own = {name: sum(held[label] == 1 for label in mine) for name, mine in labels.items()}
        worst = max(sorted(own), key=lambda name: own[name])
        del labels[worst]
        odd[worst] = (
            f"with its labels there are more than {most_classes} classes, {own[worst]} of them its own; see `max-classes`"
        )
    return odd


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
