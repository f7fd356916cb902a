"""Named arrays that add: what gradient methods send."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MessageError, NotFiniteError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


class NamedSums:
    """Named arrays that add entry by entry. Sent in their own precision, summed in float64.

    >>> import numpy as np
    >>> total = NamedSums({"w": np.ones(2, np.float32)})
    >>> total += NamedSums({"w": np.full(2, 2, np.float32)})
    >>> total["w"].tolist()
    [3.0, 3.0]
    """

    kind: ClassVar[str] = "named-sums"

    def __init__(self, parts: Mapping[str, Array]) -> None:
        self._parts = dict(parts)
        self._own = False  # whether the arrays are a float64 total that may be written to

    def __getitem__(self, name: str) -> Array:
        return self._parts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __setitem__(self, name: str, part: Array) -> None:
        self._parts[name], self._own = part, False

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(part.shape) for name, part in self._parts.items()}

    def require_shapes(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Raise unless these are sums of just these names and shapes."""
        require_shapes(self._parts, expected)

    def __iadd__(self, other: "NamedSums") -> "NamedSums":
        mine, theirs = self._shapes(), other._shapes()
        if mine != theirs:
            wrong = min(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
            raise MessageError(f"sums differ in {wrong}: shape {mine.get(wrong)} and {theirs.get(wrong)}")
        if not self._own:
            self._parts, self._own = {name: arrays.copy(arrays.float64(part)) for name, part in self._parts.items()}, True
        for name, part in other._parts.items():
            self._parts[name] += arrays.like(part, self._parts[name])
        return self

    def copy(self) -> "NamedSums":
        """Another; arrays are shared until one of the two is added to, so a total gives away copies of its own."""
        if self._own:
            return NamedSums({name: arrays.copy(part) for name, part in self._parts.items()})
        return NamedSums(self._parts)

    def settle(self) -> "NamedSums":
        return self

    def rounded(self, precision: str) -> "NamedSums":
        """In float32 whatever is asked: sums of very different sizes are beside each other."""
        return NamedSums({name: arrays.cast(part, "float32") for name, part in self._parts.items()})

    # --- as a message ---

    @property
    def wire_bytes(self) -> int:
        return self.pack().wire_bytes

    def pack(self) -> Packet:
        return Packet(self._parts, {"kind": self.kind})

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> "NamedSums":
        """The sums in a packet, which must be finite."""
        require_finite(packet)
        return cls(packet.arrays)

    # --- as a vector ---

    def vector(self) -> np.ndarray:
        """The arrays one after another, by name."""
        flat = [np.asarray(arrays.to_numpy(self._parts[name]), np.float64).reshape(-1) for name in sorted(self._parts)]
        return np.concatenate([np.empty(0), *flat])

    def public(self) -> dict[str, Any]:
        shapes = self._shapes()
        return {"kind": self.kind, "shapes": {name: list(shapes[name]) for name in sorted(shapes)}}

    @classmethod
    def from_vector(cls, vector: np.ndarray, public: Mapping[str, Any]) -> "NamedSums":
        """In float64, whatever precision the sums were sent in."""
        try:
            shapes = {name: tuple(public["shapes"][name]) for name in sorted(public["shapes"])}
            sizes = [prod(shape) for shape in shapes.values()]
            if vector.shape != (sum(sizes),) or any(side < 0 for shape in shapes.values() for side in shape):
                raise ValueError(f"an array of shape {vector.shape}, where {sum(sizes)} numbers were expected")
        except (KeyError, TypeError, ValueError) as error:
            raise MessageError(f"not a vector of named sums: {error}") from None
        if not arrays.all_finite(vector):
            raise NotFiniteError("an upload must be finite; found NaN or infinity")
        parts = np.split(np.array(vector, np.float64), np.cumsum(sizes))
        return cls({name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=False)})


def require_shapes(parts: Mapping[str, Array], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless the arrays have just these names and shapes."""
    for name in sorted(parts.keys() ^ expected.keys()):
        raise MessageError(f"an upload {'lacks' if name in expected else 'holds something else:'} {name[:60]}")
    for name, shape in expected.items():
        if tuple(parts[name].shape) != shape:
            raise MessageError(f"{name} has shape {tuple(parts[name].shape)}, the model's {shape}")


def require_finite(packet: Packet) -> None:
    for name, part in packet.arrays.items():
        if not arrays.all_finite(part):
            raise NotFiniteError(f"an upload must be finite; found NaN or infinity in {name}")
