"""The page of a bench: its tables with published figures beside measured ones, and its plots."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramfold.report.sheet import WIDE, Sheet, table
from gramfold.report.text import MISSING, setting

WIDE_HEAT = 8
"""A heat map of more columns takes the whole width of the page."""


def render_bench(content: Mapping[str, Any]) -> str:
    """The page for the content of a bench's JSON."""
    sheet = Sheet(f"Bench {content['bench']}")
    if content.get("paper"):
        sheet.soft(str(content["paper"]))
    sheet.soft(_about(content))
    sheet.html('<div class="blocks">', *(_section(entry) for entry in content.get("tables", [])), "</div>")
    if content.get("plots"):
        sheet.heading("Figures")
    for plot in content.get("plots", []):
        wide = plot["kind"] == "heat" and len(plot["columns"]) > WIDE_HEAT
        sheet.figure(str(plot["title"]), str(plot.get("note", "")), WIDE if wide else "", **_drawable(plot))
    options = {**_plain(content.get("options")), **_plain(content.get("versions"))}
    if options:
        listed = "".join(f"<dt>{escape(key)}</dt><dd>{escape(_words(value))}</dd>" for key, value in options.items())
        sheet.html(f"<details><summary>Options and versions</summary><dl>{listed}</dl></details>")
    return sheet.render()


def _section(entry: Mapping[str, Any]) -> str:
    """A table under its title, with its note: as wide as it needs to be, so that small ones stand side by side."""
    rows = [("", [_cell(value) for value in row]) for row in entry["rows"]]
    header = _with_label([(str(name), "") for name in entry["columns"]], rows)
    note = f'<p class="soft">{escape(str(entry["note"]))}</p>' if entry.get("note") else ""
    return f"<section><h2>{escape(str(entry['title']))}</h2>{table(header, rows, 'sortable')}{note}</section>"


def _about(content: Mapping[str, Any]) -> str:
    seeds = content.get("seeds")
    count = len(seeds) if isinstance(seeds, list) else seeds
    parts = [f"{len(content.get('cells', {}))} cells", "" if count is None else f"{count} seed{'' if count == 1 else 's'}"]
    machine = _plain(content.get("machine"))
    devices = machine.pop("devices", [])
    parts += [f"{key} {_words(value)}" for key, value in machine.items()]
    parts += [f"measured on {' and '.join(map(str, devices))}"] if devices else []
    return ", ".join(part for part in parts if part) + "."


def _words(value: Any) -> str:
    """Whatever an option or a machine is described by, on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(one)}".strip() for key, one in value.items())
    return " ".join(map(_words, value)) if isinstance(value, list | tuple) else setting(value)


def _plain(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {}


def _with_label(header: list[tuple[str, str]], rows: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, str]]:
    """The columns may or may not name that of the rows' labels."""
    longest = max((len(cells) for _, cells in rows), default=len(header))
    return [("", "")] * (longest - len(header)) + header


def _cell(value: Any) -> str:
    """A cell of a table: what was measured, with its error, and below it what was published."""
    if isinstance(value, Mapping):
        error, published = value.get("error"), value.get("published")
        measured = _number(value.get("mean"))
        if error is not None:  # to the mean's own decimals
            measured += f" \N{PLUS-MINUS SIGN} {error:.2f}" if abs(value["mean"]) >= 1 else f" \N{PLUS-MINUS SIGN} {error:.3f}"
        beside = "" if published is None else f"<small>published {escape(_number(published))}</small>"
        seeds = f' title="seeds: {escape(str(value["seeds"]))}"' if value.get("seeds") else ""
        return f"<td{seeds}>{escape(measured)}{beside}</td>"
    return f"<td>{escape(_number(value))}</td>"


def _number(value: Any) -> str:
    """
    >>> _number(0.98765), _number(93.456), _number(12345), _number(None) == MISSING
    ('0.988', '93.46', '12345', True)
    """
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:.2f}" if 1 <= abs(value) < 10_000 else f"{value:.3g}"
    return str(value)


def _drawable(plot: Mapping[str, Any]) -> dict[str, Any]:
    """A plot as the script draws it. Its x axis is logarithmic where it spans three decades and nothing else is said."""
    if plot["kind"] != "lines":
        return {key: value for key, value in plot.items() if key not in ("title", "note")}
    xs = [x for one in plot["series"] for x, _ in one["points"] if isinstance(x, int | float) and x > 0]
    spread = bool(xs) and max(xs) / min(xs) >= 1000
    return {"log": spread, **{key: value for key, value in plot.items() if key not in ("title", "note")}}
