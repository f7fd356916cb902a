"""A linear head as a packet: what is written of it, and what is read again."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramfold import features
from gramfold.features import Map
from gramfold.heads.errors import Errors
from gramfold.heads.novelty import Novelty
from gramfold.heads.streams import Stream, key_of
from gramfold.numerics.arrays import Array
from gramfold.origin import Origin
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import KINDS as TERMS
from gramfold.solve.evidence import Evidence, Term
from gramfold.wire import Packet

if TYPE_CHECKING:
    from gramfold.heads.head import Head


def packed(head: "Head") -> Packet:
    both = [*head.streams, *head.refinement]
    keys = [key_of(stream.map) for stream in both]
    places = [keys.index(key) for key in keys]  # streams of one map: it is in the file once, with the first of them
    streams = [
        {"features": stream.map.description, "scale": stream.scale, "map": place}
        for stream, place in zip(both, places, strict=True)
    ]
    parts = {f"weights.{i}": stream.weights for i, stream in enumerate(both)}
    parts |= {f"map.{i}.{key}": array for i in set(places) for key, array in both[i].map.arrays.items()}
    parts |= {name: value for name in ("offset", "bounds") if (value := getattr(head, name)) is not None}
    evidence = None
    if head.evidence is not None:
        weighed = zip(head.evidence.terms, head.evidence.weights, strict=True)
        evidence = [{"term": term.name, "weight": weight, **vars(term)} for term, weight in weighed]
        parts |= {f"discriminant.{key}": value for key, value in vars(head.evidence.discriminant).items()}
    for name, kept in (("errors", head.errors), ("familiar", head.familiar)):
        if kept is not None:
            parts |= {f"{name}.{key}": value for key, value in vars(kept).items()}
    meta = {
        "streams": streams, "refinement": len(head.refinement), "evidence": evidence, "probabilistic": head.probabilistic,
        "temperature": head.temperature, **description(head),
    }  # fmt: skip
    return Packet(parts, meta)


def description(head: "Head") -> dict[str, Any]:
    """What the file of any head says; of its origin nothing, where that is unknown."""
    return {
        "head": head.kind, "labels": None if head.labels is None else list(head.labels), "method": head.method,
        "chosen": json.loads(json.dumps(dict(head.chosen))), "unforeseen": head.unforeseen,
        **({} if head.origin is None else {"origin": json.loads(head.origin.to_json())}),
        **({"ordered": True} if head.ordered else {}),
    }  # fmt: skip


def described(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a head that the file of any head has."""
    return {
        "labels": None if meta["labels"] is None else tuple(list_of(meta["labels"])), "method": meta["method"],
        "chosen": meta["chosen"], "unforeseen": float(meta.get("unforeseen", 0.0)),
        "origin": None if meta.get("origin") is None else Origin.from_dict(meta["origin"]),
        "ordered": meta.get("ordered") is True,
    }  # fmt: skip


def unpacked(packet: Packet) -> dict[str, Any]:
    """The fields of a linear head, its arrays used as they are."""
    meta, given = packet.meta, packet.arrays
    maps: list[Map] = []
    for i, stream in enumerate(meta["streams"]):
        place = stream.get("map", i)
        maps.append(maps[place] if place < i else features.restore(stream["features"], _under(f"map.{i}.", packet)))
    streams = [Stream(maps[i], packet[f"weights.{i}"], stream["scale"]) for i, stream in enumerate(meta["streams"])]
    first = len(streams) - meta["refinement"]
    if not 0 <= first <= len(streams):
        raise ValueError(f"{meta['refinement']} of {len(streams)} streams are a refinement")
    evidence = None
    if meta["evidence"] is not None:
        discriminant = Discriminant(*(packet[f"discriminant.{key}"] for key in ("mean", "axes", "centroids")))
        evidence = Evidence(discriminant, *_terms(meta["evidence"]))
    return {
        "streams": streams[:first], "refinement": streams[first:], "evidence": evidence,
        "offset": given.get("offset"), "bounds": given.get("bounds"),
        "probabilistic": meta["probabilistic"], "temperature": float(meta.get("temperature", 1.0)),
        "errors": Errors(packet["errors.left_out"], packet["errors.spread"]) if "errors.spread" in given else None,
        "familiar": Novelty(packet["familiar.root"], packet["familiar.usual"]) if "familiar.root" in given else None,
        **described(meta),
    }  # fmt: skip


def list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list was expected")
    return value


def _terms(listed: Any) -> tuple[tuple[Term, ...], tuple[float, ...]]:
    """The terms of evidence that a file names, and their weights."""
    found, weights = [], []
    for entry in list_of(listed):
        given = {name: _number(value) for name, value in entry.items() if name != "term"}
        weights.append(given.pop("weight"))
        found.append(TERMS[entry["term"]](**given))
    return tuple(found), tuple(weights)


def _under(prefix: str, packet: Packet) -> dict[str, Array]:
    """The arrays whose names begin so, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in packet.arrays.items() if name.startswith(prefix)}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")
    return float(value)
