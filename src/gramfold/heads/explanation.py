"""An explanation: what every column adds to the predictions for some samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.imports import frame

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 15
"""Columns that are printed."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """`effects` (n x columns) are in the unit of the prediction: a value, or for classes log-odds. Where `exact`, those of a
    sample sum to its prediction less the baseline; else they are differences along one column at a time."""

    columns: Sequence[str]
    effects: np.ndarray
    baseline: np.ndarray
    """The prediction for the average sample, n times."""
    prediction: np.ndarray
    of: Sequence[Any]
    """What is explained of each sample: a class, or "value"."""
    exact: bool = True

    def __len__(self) -> int:
        return len(self.effects)

    def __getitem__(self, which: Any) -> "Explanation":
        """The explanation of one sample, or of a slice of them."""
        part = slice(which, which + 1 or None) if isinstance(which, int) else which
        return Explanation(
            self.columns, self.effects[part], self.baseline[part], self.prediction[part], self.of[part], self.exact
        )  # fmt: skip

    @property
    def importance(self) -> dict[str, float]:
        """The mean size of every column's effect, the largest first."""
        sizes = np.abs(self.effects).mean(0)
        return {self.columns[i]: float(sizes[i]) for i in np.argsort(-sizes, kind="stable")}

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary a sample: what is explained, the prediction, the baseline, and every column's effect."""
        return [
            {
                "of": of,
                "prediction": float(told),
                "baseline": float(base),
                **dict(zip(self.columns, map(float, mine), strict=True)),
            }
            for of, told, base, mine in zip(self.of, self.prediction, self.baseline, self.effects, strict=True)
        ]

    def to_frame(self) -> "DataFrame":
        """`rows` as a pandas DataFrame."""
        return frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {"exact": self.exact, "importance": self.importance, "samples": self.rows()}

    def __repr__(self) -> str:
        if len(self) != 1:
            return self._table(f"Mean size of effects on {len(self)} predictions", self.importance, "{:.3f}")
        effects = dict(zip(self.columns, map(float, self.effects[0]), strict=True))
        unit = "" if self.of[0] == "value" else f" (log-odds of {self.of[0]})"
        ordered = dict(sorted(effects.items(), key=lambda item: -abs(item[1])))
        head = f"Prediction {self.prediction[0]:.3f}{unit}, baseline {self.baseline[0]:.3f}"
        return self._table(head, ordered, "{:+.3f}")

    def _table(self, head: str, effects: dict[str, float], form: str) -> str:
        shown = list(effects.items())[:MOST]
        if len(effects) > MOST:
            rest = list(effects.values())[MOST:]
            shown.append((f"{len(rest)} other columns", sum(rest)))
        wide = max((len(name) for name, _ in shown), default=0)
        lines = [f"  {name.ljust(wide)}  {form.format(value)}" for name, value in shown]
        note = [] if self.exact else ["  by differences along one column at a time: they need not add up"]
        return "\n".join([head, *lines, *note])
