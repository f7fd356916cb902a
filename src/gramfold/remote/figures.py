"""What a site says of its head. Figures are a release like any other: they belong to an upload of the site's, leave it once for
each, say no more digits than their standard error has, and carry noise where the site's policy asks for it.

Exact figures are an oracle: squared errors under weights of the server's choice, on splits of its choice, give every row. See
docs/privacy.md.
"""

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.evaluation import Calibration, Scored
from gramfold.remote import diary
from gramfold.remote.policy import Policy
from gramfold.remote.state import secret

SHARES = ("auc", "balanced_accuracy", "average_precision")
DIGITS = 3
"""Of what a client chose: penalties, temperatures and the like."""


def entitled(state: Path, upload: str, run: str, most: int, figures: str) -> str:
    """Raise unless these figures belong to an upload that left the site, or to a run that one left for, and are the first of it
    (or of so many); returns what they belong to."""
    entries = diary.lines(state)
    sent = [entry for entry in entries if entry.get("bytes") and "upload" in entry]
    if not any((run and entry.get("run") == run) or (upload and entry["upload"] == upload) for entry in sent):
        raise WithheldError("no upload of its is in this sum")
    of = f"run {run}" if run else upload
    told = {str(entry["figures"]) for entry in entries if "figures" in entry and entry.get("of") == of}
    if figures not in told and len(told) >= most:
        raise WithheldError(f"figures for this upload have left it already, {most} of {most} (its `release-figures`)")
    return of


def check_alone(policy: Policy, abstains: str | None, figures: str, released: frozenset[str]) -> None:
    """Raise unless figures may leave that belong to no upload: those of methods without rounds."""
    if policy.require or policy.figures == 0 or abstains is not None:
        raise WithheldError("figures without an upload are not what its policy allows")
    policy.check_times(figures, released)


class WithheldError(GramfoldError):
    """Figures stay at the site; its head is made all the same."""

    code = "site.figures"


def identity(*parts: Any) -> str:
    """Of a set of figures: what was asked, of which samples."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def released(train: int, scored: Scored, shared: Scored | None, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What leaves the site."""
    return {
        "train": train,
        "scored": rounded(scored).to_dict(),
        "shared": None if shared is None else rounded(shared).to_dict(),
        # how a client deviates, number by number, is on its own card and nowhere else
        "chosen": {key: _choice(key, value, train) for key, value in chosen.items() if not isinstance(value, Mapping)},
    }


def with_noise(state: Path, figures: str, shared: Scored | None, eps: float, classification: bool) -> dict[str, Any]:
    """What leaves a site that asks for noise: how often the shared model is right, with Laplace noise for one test sample more or
    less. Its own head and what it chose are made of its training samples, which such noise does not cover: they stay."""
    withheld = "its policy asks for noise: only the shared model's accuracy leaves it"
    if shared is None or not shared.n or not classification:
        return {"withheld": withheld}
    # the same figures always have the same noise: asking again averages nothing out
    seed = int.from_bytes(hmac.digest(secret(state), figures.encode(), "sha256"), "big")
    noise = np.random.Generator(np.random.Philox(seed % 2**128)).laplace(scale=2 / eps, size=2)
    n = max(0, round(shared.n + noise[0]))
    return {"withheld": withheld, "shared": Scored(n, min(max(0, round(shared.right + noise[1])), n)).to_dict()}


def policy_eps(policy: Policy, header: Mapping[str, Any]) -> float | None:
    """The eps of figures; None where they carry no noise."""
    if "dp" not in policy.require:
        return None
    return policy.eps if policy.eps is not None else float(header["dp"]["eps"])


# --- as many digits as there are ---


OF_LOSSES = ("surprise", "quadratic", "rank_errors", "rank_losses", "deviances")


def rounded(scored: Scored) -> Scored:
    """Every figure to the first digit of its standard error. Those of sums of squares and of -log p are of normal and of
    exponential ones: true ones have larger, and would leave less."""
    n = scored.n
    if not n:
        return scored
    told: dict[str, Any] = {key: _share(getattr(scored, key), 0.5 / math.sqrt(n)) for key in (*SHARES, "f1")}
    told |= {key: _sum(getattr(scored, key), math.sqrt(2 / n)) for key in ("squared_error", "variation")}
    told |= {key: _sum(getattr(scored, key), 1 / math.sqrt(n)) for key in OF_LOSSES}
    told |= {key: _count(getattr(scored, key), n) for key in ("right", "positives")}
    told |= {key: _calibration(getattr(scored, key), n) for key in ("calibration", "reliability")}
    told["intervals"] = {key: _ends(*ends) for key, ends in scored.intervals.items()}
    return replace(scored, **told, draws={})


def _share(value: float | None, error: float) -> float | None:
    return None if value is None else min(1.0, max(0.0, to_place(value, error)))


def _sum(value: float | None, error: float) -> float | None:
    """`error`: relative to the value."""
    return None if value is None else to_place(value, abs(value) * error)


def _count(value: int | None, n: int) -> int | None:
    part = ((value or 0) + 1) / (n + 2)
    return None if value is None else min(n, round(to_place(value, math.sqrt(n * part * (1 - part)))))


def _ends(low: float, high: float) -> tuple[float, float]:
    """An interval of about four standard errors."""
    error = (high - low) / 4 or 0.01
    return to_place(low, error), to_place(high, error)


def _calibration(found: Calibration | None, n: int) -> Calibration | None:
    return None if found is None else Calibration(*(_bins(part, n) for part in vars(found).values()))


def to_place(value: float, error: float) -> float:
    """The value to the decimal place of the first digit of its standard error.

    >>> to_place(0.84321, 0.0213), to_place(1234.5, 37.0), to_place(7.0, 0.0)
    (0.84, 1230.0, 7.0)
    """
    if not (math.isfinite(error) and error > 0):
        return float(value)
    return round(float(value), -math.floor(math.log10(error)))


def _bins(sums: np.ndarray, n: int) -> np.ndarray:
    """Sums over bins; rounded up they may be of more samples than there are, which nobody would believe."""
    found = np.array([to_place(value, 0.5 * math.sqrt(max(value, 1.0))) for value in sums.tolist()])
    return found if found.sum() <= n else found * (n / found.sum())


def _choice(key: str, value: Any, train: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, float) or not math.isfinite(value) or not value:
        return value
    if key.startswith("leave_one_out_accuracy"):
        return min(1.0, to_place(value, 0.5 / math.sqrt(max(train, 1))))
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
