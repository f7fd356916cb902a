"""Which sites' descriptions of their data fit together. Whoever differs from most is excluded by name, before there is a task."""

from collections.abc import Callable, Mapping
from typing import Any

from gramfold.errors import GramfoldError, RemoteError
from gramfold.origin import Origin
from gramfold.remote import reports, table_agreement
from gramfold.remote.majority import inflating, minority

Description = Mapping[str, Any]
MOST_INPUTS = 10**8
"""Numbers per sample."""
CRITERIA: Mapping[str, Callable[[Description], Any]] = {
    "numbers per sample": lambda site: None if "table" in site else site["inputs"],
    "sample shape": lambda site: tuple(site["shape"]),
    "kind of targets": lambda site: "continuous" if site["labels"] is None else "classes",
    "number of targets": lambda site: site["outputs"] if site["labels"] is None else None,
    "kind of labels": lambda site: "names" if isinstance((site["labels"] or [0])[0], str) else "numbers",
    "form": lambda site: "a table" if "table" in site else "features",
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
        odd |= minority(what, {name: of(described[name]) for name in described if name not in odd})
    tables = {name: site["table"] for name, site in described.items() if "table" in site and name not in odd}
    odd |= table_agreement.odd_ones_out(tables)
    labels = {name: site["labels"] for name, site in described.items() if name not in odd and site["labels"] is not None}
    for name, own in inflating(labels, most_classes).items():
        odd[name] = f"with its labels there are more than {most_classes} classes, {own} of them its own; see `max-classes`"
    return odd


def _check(site: Description, most_classes: int) -> None:
    reports.whole(site["inputs"], "number of inputs", 1, MOST_INPUTS)
    reports.whole(site["samples"], "number of samples", 1)
    if reports.whole(site["outputs"], "number of targets", 1) > most_classes:
        raise RemoteError(f"{site['outputs']} classes or targets, more than {most_classes}; see `max-classes`")
    if not isinstance(site["shape"], list) or len(site["shape"]) > 8 or not isinstance(site["declared"], bool):
        raise RemoteError("no sample shape, or no word on whether its classes are a list")
    for side in site["shape"]:
        reports.whole(side, "sample shape", 1, MOST_INPUTS)
    if "origin" in site:
        Origin.from_dict(site["origin"])
    if "table" in site:
        table_agreement.check(site["table"], site["samples"])
    labels = site["labels"]
    if labels is None:
        return
    if not isinstance(labels, list) or not 0 < len(labels) <= most_classes:
        raise RemoteError(f"its labels are no list of 1 to {most_classes}; see `max-classes`")
    if len({type(label) for label in labels}) != 1 or len(set(labels)) != len(labels):
        raise RemoteError("its labels are not all numbers, or all names, each of them once")
    for label in labels:
        if isinstance(label, str):
            reports.text(label, "label")
        else:
            reports.whole(label, "label", -(2**53), 2**53)
