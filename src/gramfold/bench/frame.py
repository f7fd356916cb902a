"""What a bench is: cells that can be measured one by one in any order, and tables and plots made from their figures alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gramfold.errors import GramfoldError

Figures = Mapping[str, Any]
"""What a cell measured: plain values, for JSON."""
Found = Mapping[str, Figures]
"""The cells that are finished, by their keys. Others are missing: tables have a gap there."""
Table = dict[str, Any]
"""`title`, `columns`, `rows` ([label, cell, ...]) and `note`; a cell is a number, a text, None or a `Measured.cell`."""
Plot = dict[str, Any]
"""See `lines` and `heat` of `gramfold.bench.figures`."""


@dataclass(frozen=True)
class Options:
    """What the user asked for. `data`: files by name, the one without a name under "". `settings`: the bench's own, complete."""

    data: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[int] = (0, 1, 2)
    device: str = "cpu"
    quick: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, setting: str) -> Any:
        return self.settings[setting]

    def path(self, name: str = "") -> str | None:
        """A file by its name; None where it was not given."""
        return self.data.get(name)

    def identity(self) -> dict[str, Any]:
        """What all cells of a folder have in common: figures under other data or settings do not belong beside them."""
        data = {name: Path(path).name for name, path in self.data.items()}
        return {"data": data, "quick": self.quick, "settings": dict(self.settings)}


@dataclass(frozen=True)
class Cell:
    """One thing to measure. The key is unique and says what it is, as `50 clients/dirichlet:0.1/fedavg/seed 0`.

    `needs` are the keys of cells that come first, such as a sweep; `measure` is called with their figures, in this order.
    """

    key: str
    measure: Callable[..., Figures]
    needs: Sequence[str] = ()


class Bench(ABC):
    """One paper's experiments. `settings` are what `--set` may change, `quick` their values in a smoke run."""

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    quick: ClassVar[Mapping[str, Any]] = {}
    files: ClassVar[Mapping[str, str]] = {}
    """What the command takes as data: file names (the unnamed one is "") and what they hold."""

    def options(
        self, data: Mapping[str, str], seeds: Sequence[int], device: str = "cpu", quick: bool = False, **given: Any
    ) -> Options:
        """The options of a run, checked, with every setting that was not given at its default."""
        for what, known, named in (("setting", self.settings, given), ("file", self.files, data)):
            for key in named:
                if key not in known:
                    names = ", ".join(repr(one) if one else "one without a name" for one in known) or "none"
                    raise GramfoldError(f"bench {self.name} has no {what} {key!r}; there are: {names}")
        settings = {**self.settings, **(self.quick if quick else {}), **given}
        return Options(dict(data), tuple(seeds), device, quick, settings)

    @abstractmethod
    def cells(self, options: Options) -> Sequence[Cell]:
        """All cells, the most important first: what is measured when the time runs out."""

    @abstractmethod
    def tables(self, found: Found, options: Options) -> Sequence[Table]: ...

    def plots(self, found: Found, options: Options) -> Sequence[Plot]:
        return []
