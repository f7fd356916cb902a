"""A head that is made of several: each of its own columns of targets, on one feature map; together they say one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from gramfold.errors import MALFORMED, HeadError
from gramfold.heads.head import Head
from gramfold.heads.novelty import Novelty
from gramfold.heads.packing import described, description, list_of
from gramfold.heads.soundness import require_description, require_sound
from gramfold.heads.streams import Mapped, Stream
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


@dataclass(frozen=True, repr=False)
class Combined(Head):
    """`parts`: heads of the same inputs. What they say together is for the kind of head to say."""

    kind: ClassVar[str] = ""

    streams: Sequence[Stream] = ()
    """Those of the first part, which say what inputs are and how unusual they may be."""
    labels: tuple[int | str, ...] | None = None
    parts: tuple[Head, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.parts:
            raise HeadError("not a gramfold head: it has no parts")
        object.__setattr__(self, "streams", self.parts[0].streams)

    def __repr__(self) -> str:
        what = f"{self.kind}: {len(self.labels)}" if self.labels is not None else self.kind
        return f"Head({self.method}: {what}, {self.inputs} inputs, {len(self.parts)} parts)"

    def said(self, inputs: Array, mapped: Mapped | None) -> list[np.ndarray]:
        """The scores of every part; what maps make of the inputs is made once."""
        mapped = {} if mapped is None else mapped
        return [np.asarray(arrays.to_numpy(part.forward(inputs, mapped))) for part in self.parts]

    def forward(self, inputs: Array, mapped: Mapped | None = None) -> Array:
        """n x labels, classes or values, in NumPy."""
        return self.together(self.said(inputs, mapped))

    def together(self, said: list[np.ndarray]) -> np.ndarray:
        """The scores of all, from those of every part."""
        raise NotImplementedError

    def to_torch(self) -> Any:
        raise HeadError(f"a head of {self.kind} is no torch module yet; export each of its `parts`")

    # --- as a file ---

    own: ClassVar[tuple[str, ...]] = ()
    """Fields of its own that are plain values."""

    def pack(self) -> Packet:
        places: dict[int, str] = {}
        kept, metas, same = dict[str, Array](), [], dict[str, str]()
        for i, part in enumerate(self.parts):
            packet = part.pack()
            metas.append(dict(packet.meta))
            for name, array in packet.arrays.items():
                place = f"{i}/{name}"
                if id(array) in places:  # a map that parts have in common is in the file once
                    same[place] = places[id(array)]
                else:
                    places[id(array)] = place
                    kept[place] = array
        if self.familiar is not None:
            kept |= {f"familiar.{key}": value for key, value in vars(self.familiar).items()}
        own = {name: _plain(getattr(self, name)) for name in self.own}
        meta = {"parts": metas, "same": same, "probabilistic": self.probabilistic, **own, **description(self)}
        return Packet(kept, meta)

    @classmethod
    def assemble(cls, packet: Packet) -> Self:
        meta = packet.meta
        held = {**packet.arrays, **{place: packet[first] for place, first in _mapping(meta["same"]).items()}}
        parts = tuple(Head.assemble(Packet(_of_part(held, i), one)) for i, one in enumerate(list_of(meta["parts"])))
        familiar = Novelty(held["familiar.root"], held["familiar.usual"]) if "familiar.root" in held else None
        return cls(
            probabilistic=meta["probabilistic"], familiar=familiar, parts=parts, **described(meta), **cls.read_own(meta)
        )  # fmt: skip

    @classmethod
    def read_own(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {name: meta[name] for name in cls.own}

    @classmethod
    def unpack(cls, packet: Packet) -> Self:
        """The head in a packet, checked."""
        try:
            head = cls.assemble(packet)
            head._require_sound()
        except MALFORMED as error:
            raise HeadError(f"not a gramfold head: {error}") from None
        return head

    def _require_sound(self) -> None:
        for part in self.parts:
            require_sound(part)
            if part.inputs != self.inputs:
                raise HeadError("the parts of this head take different inputs")
        require_description(self)
        if self.familiar is not None:
            self.familiar.check(self.streams[0].map.dim)
        self.check_parts()

    def check_parts(self) -> None:
        """Raise unless parts that came from elsewhere fit what the head says."""

    def require_outputs(self, *counts: int) -> None:
        """Raise unless the parts say so many numbers, in turn."""
        found = [part.streams[0].weights.shape[1] for part in self.parts]
        if found != list(counts):
            raise HeadError(f"a head of {self.kind} cannot have parts of {found} outputs")


def _of_part(held: Mapping[str, Array], i: int) -> dict[str, Array]:
    return {name.removeprefix(f"{i}/"): array for name, array in held.items() if name.startswith(f"{i}/")}


def _mapping(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__} where a mapping was expected")
    return value


def _plain(value: Any) -> Any:
    return [float(one) for one in value] if isinstance(value, np.ndarray | tuple) else value
