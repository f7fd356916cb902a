"""Labels that a comparison makes of a column: "num > 0" is 1 where it holds and 0 where it does not."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import LabelsError
from gramfold.sources.cells import as_numbers, as_words, number_of

WRITTEN = re.compile(r"\s*(.+?)\s*(>=|<=|==|!=|=|>|<)\s*(.+?)\s*")
ORDER: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A column beside a value."""

    column: str
    sign: str
    value: str

    @classmethod
    def read(cls, text: str) -> "Comparison | None":
        """What a text such as "num > 0" or "outcome = ill" says; None for the name of a column."""
        found = WRITTEN.fullmatch(text)
        if found is not None and found[3][0] in "<>=!":
            raise LabelsError(f"cannot read the comparison {text!r}; write it as in 'num > 0' or 'outcome = ill'")
        return None if found is None else cls(*found.groups())

    def __call__(self, values: np.ndarray, whose: str) -> np.ndarray:
        """1 where it holds, 0 where it does not. What is missing is neither, and said."""
        words = as_words(values)
        gap = next((i for i, word in enumerate(words) if word is None), None)
        if gap is not None:
            raise LabelsError(f"{whose}: sample {gap} has no label: nothing in column {self.column!r}; leave it out")
        numbers, value = as_numbers(values), number_of(self.value)
        if self.sign in ORDER:
            if numbers is None or value is None:
                raise LabelsError(self._no_order(words, whose, value))
            return np.asarray(ORDER[self.sign](numbers, value), dtype=np.int64)
        same = np.array([word == self.value for word in words]) if numbers is None or value is None else numbers == value
        return np.asarray(~same if self.sign == "!=" else same, dtype=np.int64)

    def _no_order(self, words: list[str | None], whose: str, value: float | None) -> str:
        if value is None:
            return f"{whose}: {self.value!r} is no number, and {self.sign} compares numbers; for words write {self.column}=WORD"
        i = next(i for i, word in enumerate(words) if number_of(word) is None)
        return (
            f"{whose}: sample {i} has a word in column {self.column!r}, and {self.sign} compares numbers; for words write "
            f"{self.column}=WORD"
        )
