"""One method's result, small: a few lines of text, a few lines of HTML, a data frame."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramfold.report.charts import client_strips
from gramfold.report.columns import columns
from gramfold.report.text import MISSING, aligned, number, percent, setting, size

CELL = "padding: 4px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884"
LEFT_OUT = ("weighted", "balanced", "Brier")
"""Columns that a line of text has no room for."""
UNSHOWN = ("balanced_accuracy", "brier")
"""Figures of a client that a line of text has no room for."""
FIGURES = ("rmse", "auc", "log_loss", "r2", "brier", "average_precision")
"""How keys end of figures that are no shares."""
SVG = """
svg { max-width: 900px; font: 13px system-ui, sans-serif; }
svg text { fill: currentColor; }
svg .axis { font-size: 12px; opacity: .7; }
svg .grid { stroke: currentColor; stroke-opacity: .15; }
svg .dot { fill: #3b82c4; fill-opacity: .5; }
svg .mean, svg .interval { stroke: #c2410c; stroke-width: 2.5; }
svg .value { font-weight: 600; }
"""
"""For charts that stand alone: in a notebook, or as a file."""


SCREEN = 130
"""Characters of a line, and what goes first where there are more."""
SPARED_TEXT = ("rounds", "ECE", "worst")


def summary_text(method: Mapping[str, Any]) -> str:
    """The figures of a method's entry in result.json, under their names."""
    shown = [column for column in columns([method]) if not column.title.startswith(LEFT_OUT)]
    lines = aligned([[column.title for column in shown], [column.cell(method) for column in shown]])
    for spared in SPARED_TEXT:
        if max(map(len, lines)) > SCREEN:
            shown = [column for column in shown if not column.title.startswith(spared)]
            lines = aligned([[column.title for column in shown], [column.cell(method) for column in shown]])
    return "\n".join([f"Result of {method['name']} on {len(method['clients'])} clients", *lines, *_private(method)])


def _private(method: Mapping[str, Any]) -> list[str]:
    """What the server did not see, in words."""
    private = method.get("privacy", {})
    words = ["the server saw the sum of the uploads only"] if "secure_sum" in private else []
    if "dp" in private:
        eps, delta, where = (private["dp"][key] for key in ("eps", "delta", "noise"))
        words.append(f"noise on {where}: eps {eps:g}, delta {delta:g} for every training sample")
    return words


def summary_html(method: Mapping[str, Any]) -> str:
    """The same for a notebook, with a dot for each client."""
    shown = columns([method])
    title = f"{method['name']}: {len(method['clients'])} clients"
    table = html_table([(column.title, column.meaning) for column in shown], [[column.cell(method) for column in shown]])
    return embedded(f"<p><b>{escape(title)}</b></p>{table}{client_strips([method])}")


def client_table(rows: Sequence[Mapping[str, Any]], most: int) -> str:
    """The clients' rows as text."""
    if not rows:
        return "no clients"
    keys = [key for key in rows[0] if _is_shown(key)]
    shown = [[_title(key) for key in keys], *([_cell_of(row, key) for key in keys] for row in rows[:most])]
    more = [f"and {len(rows) - most} more"] if len(rows) > most else []
    return "\n".join([*aligned(shown), *more])


def _cell_of(row: Mapping[str, Any], key: str) -> str:
    """A figure, with its interval where it has one."""
    shown, low, high = _cell(key, row.get(key)), row.get(f"{key}_low"), row.get(f"{key}_high")
    return shown if low is None or high is None else f"{shown} [{_cell(key, low)}, {_cell(key, high)}]"


def _is_shown(key: str) -> bool:
    return not key.startswith((*UNSHOWN, "chosen.")) and not key.endswith(("_low", "_high"))


def _title(key: str) -> str:
    words = key.replace("_bytes", "").replace("_", " ").replace("rmse", "RMSE").replace("auc", "AUC").replace("r2", "R2")
    words = words.replace("brier", "Brier").replace("average precision", "AP")
    return f"{words} %" if key.endswith("accuracy") else words


def _cell(key: str, value: Any) -> str:
    if value is None:
        return MISSING
    if key.endswith("accuracy"):
        return percent(value)
    if key.endswith(FIGURES):
        return number(value)
    return size(value) if key.endswith("_bytes") else setting(value)


# --- HTML that stands in somebody else's page ---


def html_table(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table with its style in every cell; titles come with what they mean."""
    head = "".join(f'<th style="{CELL}" title="{escape(meaning)}">{escape(title)}</th>' for title, meaning in header)
    cells = ["".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    style = "border-collapse: collapse; font-variant-numeric: tabular-nums"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def embedded(content: str) -> str:
    """Content with its own style, which reaches nothing else on the page."""
    style = SVG.replace("svg ", ".gramfold svg ")
    return f'<div class="gramfold" style="overflow-x: auto"><style>{style}</style>{content}</div>'


def standing_alone(svg: str) -> str:
    """A chart as a file of its own."""
    opened = '<svg xmlns="http://www.w3.org/2000/svg" width="900" style="color: #1d2430; background: #fff" '
    inner = svg.replace("<svg ", opened, 1)
    head, body = inner.split(">", 1)
    return f"{head}><style>{SVG}</style>{body}\n"


def safe(text: str) -> str:
    return escape(text)
