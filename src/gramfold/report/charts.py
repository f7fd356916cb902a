"""Small SVG charts for notebooks and files of their own; those of the page are drawn in the browser (`assets/`)."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from gramfold.measures import MEASURES, main_measure

WIDTH, LEFT, RIGHT = 760, 120, 50
MAX_DOTS = 600


def _svg(height: int, body: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(body)}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'


def client_strips(methods: Sequence[Mapping[str, Any]]) -> str:
    """One dot per client, one row per method: how good the final models are, and how unequal. Accuracies, or errors."""
    measure = main_measure(methods)
    figure = measure.key
    known = [c[figure] for m in methods for c in m["clients"] if c[figure] is not None]
    if measure.most is not None and not measure.less_is_better:
        low, high = float(np.floor(10 * max(min(known, default=0.0) - 0.02, 0.0)) / 10), measure.most
    else:
        low, high = 0.0, max(known, default=1.0)
    span = max(high - low, 0.1 if measure.most is not None else 1e-12)
    row, top = 46, 14

    def x(value: float) -> float:
        return LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT)

    height = top + row * len(methods) + 34
    body = _ticks(np.linspace(low, low + span, 6), x, top, height, figure)
    for i, method in enumerate(methods):
        y = top + row * (i + 0.5)
        values = np.sort([c[figure] for c in method["clients"] if c[figure] is not None])
        if len(values) > MAX_DOTS:  # evenly spaced quantiles show the same with fewer dots
            values = np.quantile(values, np.linspace(0, 1, MAX_DOTS))
        spread = np.random.default_rng(0).uniform(-12, 12, len(values))
        body.append(_text(LEFT - 12, y + 5, method["name"], "end", "name"))
        body += [f'<circle cx="{x(v):.1f}" cy="{y + d:.1f}" r="3.2" class="dot"/>' for v, d in zip(values, spread, strict=True)]
        average = method[f"mean_{figure}"]
        if average is not None:
            body.append(f'<line x1="{x(average):.1f}" x2="{x(average):.1f}" y1="{y - 18}" y2="{y + 18}" class="mean"/>')
            body.append(_text(WIDTH - RIGHT + 8, y + 5, _shown(average, figure), "start", "value"))
    return _svg(height, body, f"{figure} of every client's final model, by method")


def _shown(value: float, figure: str) -> str:
    return MEASURES[figure].shown(value) if figure in ("accuracy", "auc") else f"{value:.3g}"


def _ticks(ticks: Sequence[float] | np.ndarray, x: Callable[[float], float], top: int, height: int, figure: str) -> list[str]:
    """Lines from top to bottom, with what they stand for below."""
    body = []
    for tick in map(float, ticks):
        body.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height - 30}" class="grid"/>')
        label = f"{100 * tick:.3g} %" if MEASURES[figure].percent else f"{tick:.3g}"
        body.append(_text(x(tick), height - 14, label, "middle", "axis"))
    return body


def intervals(methods: Sequence[Mapping[str, Any]], figure: str) -> str:
    """A row for each method of a comparison: every seed a dot, the mean a tick, its confidence interval a line."""
    row, top, known = 38, 14, [m for m in methods if m["mean"] is not None]
    ends = [end for m in known for end in (*m["values"], m["ci_low"], m["ci_high"]) if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = max(0.05 * (high - low), 1e-3 * max(abs(high), 1e-9))
    start, end = MEASURES[figure].within(low - room), MEASURES[figure].within(high + room)
    span = max(end - start, 1e-12)

    def x(value: float) -> float:
        return float(LEFT + (value - start) / span * (WIDTH - LEFT - RIGHT))

    height = top + row * len(known) + 34
    body = _ticks(np.linspace(start, start + span, 6), x, top, height, figure)
    body.append(_text((LEFT + WIDTH - RIGHT) / 2, height + 4, "; ".join(axis_title(figure)), "middle", "axis"))
    for i, method in enumerate(known):
        y = top + row * (i + 0.5)
        body.append(_text(LEFT - 12, y + 5, method["method"], "end", "name"))
        if method["ci_low"] is not None:
            ends = [x(method["ci_low"]), x(method["ci_high"])]
            body.append(f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="interval"/>')
        body += [f'<circle cx="{x(v):.1f}" cy="{y:.1f}" r="3.2" class="dot"/>' for v in method["values"] if v is not None]
        at = x(method["mean"])
        body.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - 9:.1f}" y2="{y + 9:.1f}" class="mean"/>')
        body.append(_text(WIDTH - RIGHT + 8, y + 5, _shown(method["mean"], figure), "start", "value"))
    return _svg(height + 14, body, f"mean {figure} over seeds and its confidence interval, by method")


def axis_title(figure: str) -> tuple[str, str]:
    """What a comparison's figure has on its axis, and what its marks are."""
    return f"{MEASURES[figure].unit}, mean over clients", "dots: seeds, tick: their mean, line: its 95 % confidence interval"
