"""Model cards: what a head is, what it was made of and how good it is, beside its file, for people and for machines."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.heads import Head
from gramfold.origin import TABLE, Origin
from gramfold.report.text import number, percent, setting
from gramfold.sources import TableEncoder
from gramfold.version import __version__

FORMAT = 1
EXACT = "exact moments, added up in the clear: no secure sum, no noise"
"""The privacy mode of a run without protections."""


def make_card(
    head: Head,
    *,
    whose: str,
    data: Mapping[str, Any],
    figures: Mapping[str, Any],
    federation: Mapping[str, Any],
    protections: Sequence[str] = (),
) -> dict[str, Any]:
    """A card's content. `data` are numbers of samples and clients, `figures` accuracies and the like, None where unknown;
    `federation` says of which state of the shared model the head is, `protections` what the run had, such as a secure sum."""
    maps = [repr(stream.map) for stream in (*head.streams, *head.refinement)]
    estimates = {key: head.chosen[key] for key in head.chosen if "leave_one_out" in key}
    return {
        "gramfold": __version__,
        "format": FORMAT,
        "whose": whose,
        "method": head.method,
        "inputs": list(head.shape),
        "origin": None if head.origin is None else _origin(head.origin),
        "map": list(dict.fromkeys(maps)) or ["a trained network"],
        "classes": None if head.labels is None else list(head.labels),
        "probabilities": head.probabilistic,
        "least_probability": head.unforeseen / len(head.labels) if head.probabilistic and head.labels else None,
        "novelty": None if head.familiar is None else f"against {len(head.familiar.usual)} quantiles of its training samples",
        "data": dict(data),
        "figures": {**figures, **estimates},
        "chosen": {key: value for key, value in head.chosen.items() if key not in estimates},
        "federation": dict(federation),
        "privacy": f"the run had {' and '.join(protections)}" if protections else EXACT,
    }


def _origin(origin: Origin) -> dict[str, Any]:
    columns = {"columns": TableEncoder.reopen(origin).names} if origin.kind == TABLE else {}
    return {"name": origin.name, "fingerprint": origin.fingerprint, **columns}


SAID = ("gained_by_joining", "group", "deviations")
"""What of the chosen has rows of its own."""


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card as a page."""
    classes = card["classes"]
    origin = "unknown: whoever gives samples to this head knows"
    if card["origin"] is not None:
        columns = card["origin"].get("columns")
        origin = card["origin"]["name"] if columns is None else f"the columns {', '.join(columns)} of a table"
        origin += f" (fingerprint `{card['origin']['fingerprint']}`)"
    kinds = (
        f"{len(classes)} classes: {', '.join(map(str, classes[:20]))}{', ...' if len(classes) > 20 else ''}" if classes else ""
    )
    rows = {
        "method": f"{card['method']} (gramfold {card['gramfold']})",
        "gives": (kinds or "numbers") + _probabilities(card),
        **({"novelty": f"it says how unusual a sample is, {card['novelty']}"} if card.get("novelty") else {}),
        "takes": f"{' x '.join(map(str, card['inputs']))} numbers from {origin}",
        "feature map": "; ".join(f"`{entry}`" for entry in card["map"]),
        **{key.replace("_", " "): f"{value}" for key, value in card["data"].items() if value is not None},
        **{
            key.replace("_", " "): _figure(key, value, card["figures"].get(f"{key}_interval"))
            for key, value in card["figures"].items()
            if value is not None and not key.endswith("_interval")
        },
        **_differing(card["chosen"], card["federation"].get("groups")),
        "chosen": ", ".join(f"{key} {_told(value)}" for key, value in card["chosen"].items() if key not in SAID) or "nothing",
        **{
            f"federation's {key}": ", ".join(value) if isinstance(value, list) else f"{value}"
            for key, value in card["federation"].items()
            if value is not None
        },
        "privacy": card["privacy"],
    }
    lines = [f"# A head for {card['whose']}", "", "| | |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {key} | {value.replace('|', ' ')} |" for key, value in rows.items())]) + "\n"


def _differing(chosen: Mapping[str, Any], groups: Sequence[str] | None) -> dict[str, str]:
    """How this client differs from the others, as far as that was asked."""
    rows = {}
    if "gained_by_joining" in chosen:
        gain = f"{chosen['gained_by_joining']:+.3g} nats a sample"
        rows["gained by joining"] = f"{gain}: by so much are its left-out samples likelier than in a model of its own alone"
    if "group" in chosen:
        rows["group"] = f"{groups[chosen['group']] if groups else chosen['group']}, of clients that resemble it"
    if "deviations" in chosen:
        told = [
            f"{name if name == 'offset' else f'column {name}'} {value:+.3g} ± {sure:.2g}"
            for name, (value, sure) in chosen["deviations"].items()
        ]
        rows["its own deviations"] = f"{', '.join(told)} (95 % confidence)"
    return rows


def _told(value: object) -> str:
    """What was chosen; a weight that an optimum has at its bound, but for the last digits, is 0."""
    return "0" if isinstance(value, float) and abs(value) < 1e-9 else setting(value)


def _probabilities(card: Mapping[str, Any]) -> str:
    if not card["probabilities"]:
        return ""
    least = card.get("least_probability")
    return ", with probabilities" + (f", none of them less than {100 * least:.2g} %" if least else "")


def _figure(key: str, value: float, interval: Sequence[float] | None) -> str:
    """With its interval, where it has one: 100 % of ten samples is not 100 %."""
    share = "accuracy" in key or "calibration" in key
    shown = f"{percent(value)} %" if share else number(value)
    if interval is None:
        return shown
    low, high = (percent(end) if share else number(end) for end in interval)
    return f"{shown} (95 % confidence: {low} to {high}{' %' if share else ''})"


def card_files(path: Path) -> tuple[Path, Path]:
    """Where the card of the head at a path lies: JSON and Markdown."""
    return path.with_suffix(".card.json"), path.with_suffix(".card.md")


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write the card of the head whose file is at this path."""
    as_json, as_text = card_files(path)
    wire.write_sealed(as_json, json.loads(json.dumps(card, default=str)))
    wire.write_atomically(as_text, card_markdown(card).encode())
