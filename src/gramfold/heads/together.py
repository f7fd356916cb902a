"""Heads of several clients, each on samples of its own, in one go: what a map makes of all samples once, products and evidence as
stacks. The scores are those that `Head.scores` gives, one head after another."""

from collections.abc import Sequence

import numpy as np

from gramfold.features import Map
from gramfold.heads.head import Head
from gramfold.heads.streams import Mapped, Stream, key_of
from gramfold.numerics import arrays, memory
from gramfold.numerics import inputs as check
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.numerics.stacks import lifted
from gramfold.solve.evidence import Term, weighed


class Together:
    """Samples of several clients, one client's after another's, moved to a device, and what maps have made of them. `heads` say
    whether samples are such as they take."""

    def __init__(self, heads: Sequence[Head], inputs: Sequence[Array], device: str = "cpu") -> None:
        parts = [head.rows(part) for head, part in zip(heads, inputs, strict=True)]
        for head, part in zip(heads, parts, strict=True):
            check.require_finite(part, head.whose)
        self.padding = Padding([part.shape[0] for part in parts])
        widest = max((stream.map.dim for head in heads for stream in head.streams), default=0)
        samples = sum(self.padding.sizes)
        memory.ask(8 * samples * widest, f"{widest} features of {samples} samples", "predict them in parts")
        rows = arrays.concatenate(parts)
        self.rows = rows if device == "cpu" else arrays.to_device(rows, device)
        self._mapped: Mapped = {}
        self._stacked: Mapped = {}
        self._alone: list[Mapped] = [{} for _ in parts]

    def features(self, map: Map) -> Array:
        """N x m."""
        if (key := key_of(map)) not in self._mapped:
            self._mapped[key] = map(self.rows)
        return self._mapped[key]

    def stacked(self, map: Map) -> Array:
        """The same with zeros behind each client's (clients x most x m)."""
        if (key := key_of(map)) not in self._stacked:
            self._stacked[key] = self.padding(self.features(map))
        return self._stacked[key]

    def scores(self, heads: Sequence[Head]) -> list[np.ndarray]:
        """Of each client's samples, by its head."""
        if all(type(head) is Head for head in heads) and len({_shape(head) for head in heads}) == 1:
            return self.padding.split(arrays.to_numpy(self._of_all(heads)))
        ends = np.cumsum(self.padding.sizes)
        parts = [self.rows[end - size : end] for end, size in zip(ends, self.padding.sizes, strict=True)]
        each = zip(heads, parts, self._alone, strict=True)
        return [np.asarray(arrays.to_numpy(head.forward(rows, mapped))) for head, rows, mapped in each]

    def _of_all(self, heads: Sequence[Head]) -> Array:
        """Clients x most x classes."""
        total = _evident(heads, self._summed([head.streams for head in heads]))
        if any(head.refinement for head in heads):
            total = total + self._summed([head.refinement for head in heads])
        if heads[0].offset is not None:
            total = total + arrays.like(np.stack([np.asarray(head.offset) for head in heads])[:, None], total)
        bounds = [head.bounds for head in heads if head.bounds is not None]
        if not bounds:
            return total
        ends = arrays.like(np.stack(bounds)[:, None], total)
        return total.clip(ends[..., 0], ends[..., 1])

    def _summed(self, streams: Sequence[Sequence[Stream]]) -> Array:
        """The sums of each client's streams."""
        total, by_map = None, dict[object, list[tuple[int, Stream]]]()
        for client, own in enumerate(streams):
            for stream in own:
                by_map.setdefault(key_of(stream.map), []).append((client, stream))
        for each in by_map.values():
            part = self._products(each)
            total = part if total is None else total + part
        return total

    def _products(self, each: Sequence[tuple[int, Stream]]) -> Array:
        """What streams of some clients on one map make (clients x most x classes)."""
        first = each[0][1]
        if len(each) == self.padding.clients and all(s.weights is first.weights and s.scale == first.scale for _, s in each):
            part = self.features(first.map) @ arrays.like(first.weights, self.rows)
            return self.padding(part if first.scale == 1.0 else first.scale * part)
        weights: list[Array] = [None] * self.padding.clients
        for client, stream in each:
            own = arrays.like(stream.weights, self.rows)
            own = own if stream.scale == 1.0 else stream.scale * own
            weights[client] = own if weights[client] is None else weights[client] + own
        nothing = arrays.zeros(first.weights.shape, self.features(first.map))
        return self.stacked(first.map) @ arrays.stack([nothing if own is None else own for own in weights])


def _shape(head: Head) -> tuple[bool, bool, bool, tuple[Term, ...]]:
    """What must be the same for heads whose scores are one stack."""
    return head.evidence is None, head.offset is None, head.bounds is None, head.evidence.terms if head.evidence else ()


def _evident(heads: Sequence[Head], scores: Array) -> Array:
    """The evidence in stacked scores: at once for all heads that share a discriminant."""
    evidence = [head.evidence for head in heads if head.evidence is not None]
    if not evidence:
        return scores
    alike: dict[int, list[int]] = {}
    for client, each in enumerate(evidence):
        alike.setdefault(id(each.discriminant), []).append(client)
    parts = list[Array]()
    for own in alike.values():
        first = evidence[own[0]]
        place = first.discriminant.place(scores if len(alike) == 1 else scores[arrays.like(np.array(own), scores)])
        weights = np.array([evidence[client].weights for client in own])
        parts.append(weighed(first.terms, [lifted(weight, place.products) for weight in weights.T], place))
    if len(parts) == 1:
        return parts[0]
    order = np.concatenate([np.array(own) for own in alike.values()])
    return arrays.concatenate(parts)[arrays.like(np.argsort(order), scores)]
