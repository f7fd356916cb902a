"""What a site reports of itself in JSON, read strictly: the server computes with it and writes it down. Whatever is not of this
form excludes the site."""

from collections.abc import Mapping
from typing import Any

from gramfold.engines.transport import Finished
from gramfold.errors import RemoteError
from gramfold.evaluation import Scored
from gramfold.evaluation.calibration import BINS
from gramfold.measures import MEASURES

MOST_SAMPLES = 10**9
"""More than any one site has."""
MOST_SECONDS = 1e7
LARGEST = 1e100
"""Of any other number: the squares of many of them still add up."""
MOST_CHOICES, LONGEST = 50, 200
"""Entries of what was chosen, and characters of a key or a text in it."""
UNTRAINED_TESTS, TESTS_PER_SAMPLE = 10_000, 10
"""Test samples of one site: so many at least are believed, and so many for each training sample."""
SHARES = ("auc", "balanced_accuracy", "average_precision")
SCORED = {
    "n", "right", "squared_error", "calibration", "surprise", "variation", "quadratic", "positives", "reliability", "intervals",
    *SHARES,
}  # fmt: skip
LEAST_LIKELY = 1000.0
"""More than -log p of any one sample."""
SUMS = ("count", "confidence", "right")


def number(value: Any, what: str, least: float = -LARGEST, most: float = LARGEST) -> float:
    """A finite number within bounds. A boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RemoteError(f"its {what} is not a number")
    if not least <= value <= most:
        raise RemoteError(f"its {what} is impossible: {value:.6g} is not within {least:g} and {most:g}")
    return float(value)


def whole(value: Any, what: str, least: int = 0, most: int = MOST_SAMPLES) -> int:
    """A whole number within bounds."""
    if not isinstance(value, int):
        raise RemoteError(f"its {what} is not a whole number")
    return int(number(value, what, least, most))


def text(value: Any, what: str) -> str:
    """A short printable text."""
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise RemoteError(f"its {what} is no text of at most {LONGEST} printable characters")
    return value


def seconds(header: Mapping[str, Any]) -> float:
    """The time that a site spent on its answer."""
    return number(header.get("seconds", 0.0), "time", 0.0, MOST_SECONDS)


def finished(site: str, header: Mapping[str, Any], counted: int | None) -> Finished:
    """A site's figures. `counted`: the samples of its upload, where that counts them."""
    if "withheld" in header:
        return _withheld(site, header, counted)
    train = whole(header["train"], "number of samples", 1)
    if counted is not None and train > counted:
        raise RemoteError(f"it reports {train} training samples, its upload has {counted}; if its data changed, run again")
    most = max(UNTRAINED_TESTS, TESTS_PER_SAMPLE * train)
    own, shared = (None if header[key] is None else scored(header[key], most) for key in ("scored", "shared"))
    if own is None or (shared is not None and shared.n != own.n):
        raise RemoteError("its figures cannot be read: both models are tested on the same samples")
    return Finished(site, train, own, shared, choices(header["chosen"]))


def _withheld(site: str, header: Mapping[str, Any], counted: int | None) -> Finished:
    """A site that has its head and keeps what it knows of it; where it asks for noise, the shared model's figures are there."""
    shared = scored(header["shared"], MOST_SAMPLES) if header.get("shared") is not None else None
    if shared is not None and shared.n > max(UNTRAINED_TESTS, TESTS_PER_SAMPLE * (counted or 0)):
        raise RemoteError(f"its number of test samples is impossible: {shared.n}")
    return Finished(site, counted or 0, Scored(0), shared, {})


def scored(value: Any, most: int) -> Scored:
    """A model's figures on at most so many test samples."""
    if not isinstance(value, dict) or value.keys() != SCORED:
        raise RemoteError("its figures cannot be read: they are not " + ", ".join(sorted(SCORED)))
    n = whole(value["n"], "number of test samples", 0, most)
    whole(value["right"], "number of right answers")
    number(value["squared_error"], "squared error", 0.0)
    number(value["variation"], "variation", 0.0)
    for key in SHARES:
        if value[key] is not None:
            number(value[key], key.replace("_", " "), 0.0, 1.0)
    if value["surprise"] is not None:
        number(value["surprise"], "log loss", 0.0, LEAST_LIKELY * n)
    if value["quadratic"] is not None:
        number(value["quadratic"], "Brier score", 0.0, 2.0 * n)
    if value["positives"] is not None:
        whole(value["positives"], "number of samples of a class", 0, n)
    for key in ("calibration", "reliability"):
        if value[key] is not None:
            _check_calibration(value[key], n)
    _check_intervals(value["intervals"])
    return Scored.from_dict(value)


def _check_calibration(value: Any, n: int) -> None:
    if not isinstance(value, dict) or value.keys() != set(SUMS) or any(not _has_bins(part) for part in value.values()):
        raise RemoteError(f"its calibration cannot be read: it has {BINS} bins of {', '.join(SUMS)}")
    for part in value.values():
        sum_ = sum(number(entry, "calibration", 0.0, n * (1 + 1e-9)) for entry in part)
        number(sum_, "calibration", 0.0, n * (1 + 1e-9))


def _check_intervals(value: Any) -> None:
    if not isinstance(value, dict) or not value.keys() <= MEASURES.keys():
        raise RemoteError(f"its intervals cannot be read: they are of {', '.join(MEASURES)}")
    for key, ends in value.items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise RemoteError(f"its interval of {key} has not two ends")
        number(ends[1], f"interval of {key}", number(ends[0], f"interval of {key}"))


def _has_bins(part: Any) -> bool:
    return isinstance(part, list) and len(part) == BINS


def choices(value: Any) -> dict[str, Any]:
    """What a site chose: names with numbers, short texts, or nothing."""
    if not isinstance(value, dict) or len(value) > MOST_CHOICES:
        raise RemoteError(f"what it chose cannot be read: it is no list of at most {MOST_CHOICES} names with values")
    for key, entry in value.items():
        text(key, "name of a choice")
        if isinstance(entry, str):
            text(entry, key)
        elif entry is not None and not isinstance(entry, bool):
            number(entry, key)
        if key.startswith("leave_one_out_accuracy") and entry is not None:
            number(entry, "leave-one-out accuracy", 0.0, 1.0)
    return dict(value)
