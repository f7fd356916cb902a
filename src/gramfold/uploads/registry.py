"""An upload back from its packet or its vector: which kind it is stands in the metadata."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramfold.errors import MessageError
from gramfold.moments import Moments
from gramfold.uploads.base import Upload
from gramfold.uploads.grouped_moments import GroupedMoments
from gramfold.uploads.named_sums import NamedSums
from gramfold.uploads.per_client import PerClient
from gramfold.wire import Packet

KINDS: dict[str, type[Upload]] = {kind.kind: kind for kind in (Moments, GroupedMoments, NamedSums, PerClient)}


def register(kind: type[Upload]) -> type[Upload]:
    """A class of uploads of somebody else's, found from then on by its `kind`: a decorator."""
    if KINDS.setdefault(kind.kind, kind) is not kind:
        raise MessageError(f"there is a kind of upload {kind.kind!r} already")
    return kind


def unpack(packet: Packet, *, exact_counts: bool = True) -> Any:
    """The upload in a packet, checked as far as it can be checked alone.

    >>> import numpy as np
    >>> unpack(NamedSums({"w": np.ones(2)}).pack())["w"].tolist()
    [1.0, 1.0]
    """
    return _kind(packet.meta).unpack(packet, exact_counts=exact_counts)


def from_vector(vector: np.ndarray, public: Mapping[str, Any]) -> Any:
    """The upload whose `vector()` and `public()` these are."""
    return _kind(public).from_vector(vector, public)


def _kind(metadata: Mapping[str, Any]) -> type[Upload]:
    tag = metadata.get("kind")
    kind = KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise MessageError(f"unknown kind of upload {tag!r}; known: {', '.join(KINDS)}")
    return kind
