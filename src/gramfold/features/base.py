"""What a feature map is: a small description, and what it becomes once drawn for a given input size and seed."""

import functools
import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.moments import Implied
from gramfold.numerics import arrays, stopwatch, work
from gramfold.numerics.arrays import Array

Function = Callable[[Array], Array]
Gradient = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class FeatureMap(ABC):
    """The description of a map; `draw` makes it concrete. Subclasses register themselves under their name."""

    kinds: ClassVar[dict[str, type["FeatureMap"]]] = {}

    def __init_subclass__(cls) -> None:
        FeatureMap.kinds[cls.__name__.lower()] = cls

    @abstractmethod
    def width(self, inputs: int) -> int:
        """How many features it gives for `inputs` numbers."""

    def drawn(self, inputs: int) -> int:
        """How many numbers its matrices have for `inputs` numbers; raises if it cannot be drawn for them."""
        return 0

    @abstractmethod
    def function(self, inputs: int, seed: int, name: str) -> Function:
        """The map on float64 rows. `name` is its place in a stack: equal maps at different places differ."""

    def gradient(self, inputs: int, seed: int, name: str) -> Gradient:
        """How a linear function of its features changes with its inputs: (rows, directions) -> n x inputs numbers, the gradient
        of <features(x_i), direction_i> for every row."""
        raise FeaturesError(f"{type(self).__name__} features have no gradient here; learn a metric with linear and Fourier ones")

    def implied(self, inputs: int, length: float | None) -> Implied:
        """What holds for its features of every sample. `length`: the most that the squares of an input's numbers sum to; None:
        anything."""
        return Implied()

    def one_unit(self, inputs: bool | None) -> bool | None:
        """Whether its features share a unit, where its inputs do, do not, or nobody knows."""
        return inputs

    def describe(self) -> dict[str, Any]:
        """A small dict from which `from_description` makes an equal map."""
        return {"kind": type(self).__name__.lower(), **asdict(self)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "FeatureMap":
        return cls(**fields)

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> "FeatureMap":
        fields = dict(description)
        kind = FeatureMap.kinds.get(str(fields.pop("kind", None)))
        if kind is None:
            raise FeaturesError(f"unknown feature map {description.get('kind')!r}; known: {', '.join(sorted(FeatureMap.kinds))}")
        try:
            return kind.from_fields(fields)
        except (OverflowError, TypeError, KeyError, ValueError) as error:
            raise FeaturesError(f"cannot read feature map {description.get('kind')!r}: {error}") from None


class Map(Protocol):
    """A map ready for use: drawn from a seed alone, or holding arrays that were learned."""

    kind: ClassVar[str]
    """Its name in the registry, and `description["kind"]`."""
    inputs: int
    dim: int
    description: dict[str, Any]

    @property
    def implied(self) -> Implied:
        """What holds for the features of every sample; nothing, where that is not known."""

    @property
    def tabular(self) -> bool:
        """Whether it standardises columns by what all samples say of them."""

    @property
    def saw_labels(self) -> bool:
        """Whether samples' labels had a say in what was learned."""

    def one_unit(self, inputs: bool | None) -> bool | None:
        """Whether its features share a unit, where its inputs do, do not, or nobody knows."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """What was learned."""

    @property
    def fingerprint(self) -> str:
        """Equal for maps that are the same: moments under different ones do not add. It covers description and arrays."""

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim)."""


def fingerprint_of(described: Mapping[str, Any], learned: Mapping[str, Array]) -> str:
    """A hash of a description and of the numbers of all learned arrays."""
    digest = hashlib.sha256(json.dumps(dict(described), sort_keys=True).encode())
    for name in sorted(learned):
        numbers = np.asarray(arrays.to_numpy(learned[name]), dtype="<f8", order="C")
        digest.update(json.dumps([name, numbers.shape]).encode())
        digest.update(numbers.data if numbers.size else b"")
    return digest.hexdigest()[:16]


MOST_DRAWN = 2**27
"""Numbers in the matrices of a map, beyond inputs x features: 1 GiB."""


class DrawnMap:
    """A map ready for use: callable on rows, with its output size, its description and the fingerprint of that.

    Its matrices are drawn when it is first called: a description from elsewhere, however short, costs nothing until there are
    rows of its size.

    `description` is {"kind": "drawn", "map": a feature map's description, "inputs": number, "seed": number, "name": text}.
    """

    kind: ClassVar[str] = "drawn"
    tabular: ClassVar[bool] = False
    saw_labels: ClassVar[bool] = False

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.description = {"kind": self.kind, **description}
        self._spec = FeatureMap.from_description(self.description["map"])
        self.inputs = whole(self.description["inputs"], "inputs")
        whole(self.description["seed"], "seed")
        name = self.description.get("name")
        if not isinstance(name, str) or not name.isprintable():  # half a character is no text
            raise FeaturesError("a feature map without a readable name cannot be drawn")
        self.dim = self._spec.width(self.inputs)
        if self._spec.drawn(self.inputs) > max(self.inputs * self.dim, MOST_DRAWN):
            raise FeaturesError(f"a feature map from {self.inputs} to {self.dim} numbers with matrices far larger than that")
        self.implied = self._spec.implied(self.inputs, None)
        drawn_from = {key: value for key, value in self.description.items() if key != "kind"}
        self.fingerprint = fingerprint_of(drawn_from, {})
        self._drawing = threading.Lock()

    @property
    def spec(self) -> FeatureMap:
        """The map that was drawn."""
        return self._spec

    @functools.cached_property
    def _drawn(self) -> Function:
        return self._spec.function(self.inputs, self.description["seed"], str(self.description["name"]))

    @property
    def drawn_numbers(self) -> int:
        """How many numbers are drawn when it is first called, at the most."""
        return max(self._spec.drawn(self.inputs), 0)

    @property
    def _function(self) -> Function:
        with self._drawing:  # once, whoever asks first
            return self._drawn

    @classmethod
    def restore(cls, description: Mapping[str, Any], arrays: Mapping[str, Array], fingerprint: str | None) -> "DrawnMap":
        return draw_described(description)

    def implied_of(self, length: float | None) -> Implied:
        """What holds for its features where the squares of an input's numbers sum to at most `length`."""
        return self._spec.implied(self.inputs, length)

    def one_unit(self, inputs: bool | None) -> bool | None:
        return self._spec.one_unit(inputs)

    def gradients(self, rows: Array, directions: Array) -> Array:
        """The gradient of <features(x_i), direction_i> with respect to x_i, for every float64 row (n x inputs)."""
        work.add(features=rows.shape[0] * self.dim)
        return self._spec.gradient(self.inputs, self.description["seed"], str(self.description["name"]))(rows, directions)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Nothing: its seed says it all."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also in another process, is the same map drawn again."""
        return draw_described, (self.description,)

    def __repr__(self) -> str:
        return f"DrawnMap({self.inputs} -> {self.dim}: {FeatureMap.from_description(self.description['map'])!r})"

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim) of rows (n x inputs), of the same kind and on the same device."""
        require_rows(inputs, self.inputs)
        function = self._function
        work.add(features=inputs.shape[0] * self.dim)
        with stopwatch.phase("features"):
            if arrays.is_sparse(inputs):  # dense a block at a time: the rows may be far wider than the features
                blocks = arrays.blocks(inputs.shape[0], self.inputs) or [slice(0, 0)]
                return arrays.concatenate([function(arrays.float64(inputs[block])) for block in blocks])
            return function(arrays.float64(inputs))


class LearnedMap:
    """A map that holds arrays which were learned. A `fingerprint` that is given is trusted."""

    kind: ClassVar[str]
    inputs: int
    arrays: Mapping[str, Array]

    def __init__(self, description: Mapping[str, Any], learned: Mapping[str, Array], fingerprint: str | None = None) -> None:
        self.description = {"kind": self.kind, **description}
        self._fingerprint = fingerprint

    @classmethod
    def restore(cls, description: Mapping[str, Any], arrays: Mapping[str, Array], fingerprint: str | None) -> Self:
        return cls(description, arrays, fingerprint)

    @functools.cached_property
    def fingerprint(self) -> str:
        return self._fingerprint or fingerprint_of(self.description, self.arrays)


def require_rows(inputs: Array, width: int) -> None:
    """Raise unless these are rows of so many numbers."""
    if inputs.ndim != 2 or inputs.shape[1] != width:
        raise FeaturesError(f"expected rows of {width} numbers, got an array of shape {tuple(inputs.shape)}")


def whole(value: Any, what: str) -> int:
    """The value, which must be a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**63:
        raise FeaturesError(f"a feature map's {what} must be a whole number, got {str(value)[:40]}")
    return value


def draw(spec: FeatureMap, inputs: int, seed: int, name: str = "features") -> DrawnMap:
    """The map for rows of `inputs` numbers: the same on every machine and in every order for one seed and name."""
    return draw_described({"map": spec.describe(), "inputs": inputs, "seed": seed, "name": name})


def draw_described(description: Mapping[str, Any]) -> DrawnMap:
    """The map with a DrawnMap's `description`."""
    return _draw_canonical(json.dumps({"kind": DrawnMap.kind, **description}, sort_keys=True))


@functools.lru_cache(maxsize=16)  # heads by the hundred share one map; its matrices are drawn once
def _draw_canonical(canonical: str) -> DrawnMap:
    return DrawnMap(json.loads(canonical))


def constant(matrix: np.ndarray) -> Function:
    """A function that gives the matrix as an array of its argument's kind, moved there once."""
    moved: dict[str | None, Array] = {None: matrix}

    def on(other: Array) -> Array:
        device = arrays.device_of(other)
        if device not in moved:
            if arrays.is_traced():  # what a trace sees is of no use to anybody later
                return arrays.like(matrix, other)
            moved[device] = arrays.like(matrix, other)
        return moved[device]

    return on
