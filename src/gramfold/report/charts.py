"""Small SVG charts, drawn by hand so that the page needs nothing but itself."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from gramfold.report.text import duration

WIDTH, LEFT, RIGHT = 760, 120, 50
MOST_DOTS = 600


def _svg(height: int, body: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(body)}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'


def accuracy_strips(methods: Sequence[Mapping[str, Any]]) -> str:
    """Every client a dot, every method a row: how accurate the final models are, and how unequal."""
    row, top = 46, 14
    low = min((c["accuracy"] for m in methods for c in m["clients"] if c["accuracy"] is not None), default=0.0)
    low = float(np.floor(10 * max(low - 0.02, 0.0)) / 10)
    span = max(1.0 - low, 0.1)

    def x(accuracy: float) -> float:
        return LEFT + (accuracy - low) / span * (WIDTH - LEFT - RIGHT)

    height = top + row * len(methods) + 34
    body = []
    for tick in np.linspace(low, 1.0, 6):
        body.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height - 30}" class="grid"/>')
        body.append(_text(x(tick), height - 14, f"{100 * tick:.0f} %", "middle", "axis"))
    for i, method in enumerate(methods):
        y = top + row * (i + 0.5)
        values = np.sort([c["accuracy"] for c in method["clients"] if c["accuracy"] is not None])
        if len(values) > MOST_DOTS:  # evenly spaced quantiles tell the same with fewer dots
            values = np.quantile(values, np.linspace(0, 1, MOST_DOTS))
        spread = np.random.default_rng(0).uniform(-12, 12, len(values))
        body.append(_text(LEFT - 12, y + 5, method["name"], "end", "name"))
        body += [f'<circle cx="{x(v):.1f}" cy="{y + d:.1f}" r="3.2" class="dot"/>' for v, d in zip(values, spread, strict=True)]
        average = method["mean_accuracy"]
        if average is not None:
            body.append(f'<line x1="{x(average):.1f}" x2="{x(average):.1f}" y1="{y - 18}" y2="{y + 18}" class="mean"/>')
            body.append(_text(WIDTH - RIGHT + 8, y + 5, f"{100 * average:.1f}", "start", "value"))
    return _svg(height, body, "accuracy of every client's final model, by method")


def phase_bars(methods: Sequence[Mapping[str, Any]]) -> str:
    """Where the seconds went."""
    row, top = 30, 26
    phases = list(methods[0]["seconds"])
    most = max(sum(m["seconds"].values()) for m in methods) or 1.0
    scale = (WIDTH - LEFT - RIGHT - 30) / most
    body, cursor = [], float(LEFT)
    for j, phase in enumerate(phases):
        body.append(
            f'<rect x="{cursor:.1f}" y="4" width="11" height="11" class="phase{j}"/>{_text(cursor + 16, 14, phase, css="axis")}'
        )
        cursor += 30 + 8 * len(phase)
    for i, method in enumerate(methods):
        y, start = top + row * i, float(LEFT)
        body.append(_text(LEFT - 12, y + 16, method["name"], "end", "name"))
        for j, phase in enumerate(phases):
            width = method["seconds"][phase] * scale
            body.append(f'<rect x="{start:.1f}" y="{y + 3}" width="{width:.1f}" height="{row - 10}" class="phase{j}"/>')
            start += width
        body.append(_text(start + 6, y + 17, duration(sum(method["seconds"].values())), css="value"))
    return _svg(top + row * len(methods) + 6, body, "seconds per phase, by method")


def size_bars(clients: Sequence[Mapping[str, Any]]) -> str:
    """How many training samples each client has, largest first."""
    sizes = np.sort([client["train"] for client in clients])[::-1]
    if len(sizes) > MOST_DOTS:
        sizes = np.quantile(sizes, np.linspace(1, 0, MOST_DOTS))
    height, base = 130, 108
    step = (WIDTH - LEFT - RIGHT) / max(len(sizes), 1)
    most = max(float(sizes[0]) if len(sizes) else 1.0, 1.0)
    body = [_text(LEFT - 12, 18, f"{most:.0f}", "end", "axis"), _text(LEFT - 12, base, "0", "end", "axis")]
    for i, count in enumerate(sizes):
        tall = 96 * float(count) / most
        place = f'x="{LEFT + i * step:.2f}" y="{base - tall:.1f}"'
        body.append(f'<rect {place} width="{max(step * 0.8, 0.6):.2f}" height="{tall:.1f}" class="size"/>')
    body.append(_text(LEFT, base + 17, f"{len(clients)} clients by training samples", css="axis"))
    return _svg(height, body, "training samples of each client, largest first")
