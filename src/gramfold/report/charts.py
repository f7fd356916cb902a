"""Small SVG charts, written by hand so that the page is self-contained."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from gramfold.report.text import duration, size

WIDTH, LEFT, RIGHT = 760, 120, 50
MAX_DOTS = 600


def _svg(height: int, body: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(body)}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'


def client_strips(methods: Sequence[Mapping[str, Any]]) -> str:
    """One dot per client, one row per method: how good the final models are, and how unequal. Accuracies, or errors."""
    figure = "accuracy" if all("mean_accuracy" in method for method in methods) else "rmse"
    known = [c[figure] for m in methods for c in m["clients"] if c[figure] is not None]
    if figure == "accuracy":
        low, high = float(np.floor(10 * max(min(known, default=0.0) - 0.02, 0.0)) / 10), 1.0
    else:
        low, high = 0.0, max(known, default=1.0)
    span = max(high - low, 0.1 if figure == "accuracy" else 1e-12)
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
    return f"{100 * value:.1f}" if figure == "accuracy" else f"{value:.3g}"


def _ticks(ticks: Sequence[float] | np.ndarray, x: Callable[[float], float], top: int, height: int, figure: str) -> list[str]:
    """Lines from top to bottom, with what they stand for below."""
    body = []
    for tick in map(float, ticks):
        body.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height - 30}" class="grid"/>')
        label = f"{100 * tick:.3g} %" if figure == "accuracy" else f"{tick:.3g}"
        body.append(_text(x(tick), height - 14, label, "middle", "axis"))
    return body


def intervals(methods: Sequence[Mapping[str, Any]], figure: str) -> str:
    """A row for each method of a comparison: every seed a dot, the mean a tick, its confidence interval a line."""
    row, top, known = 38, 14, [m for m in methods if m["mean"] is not None]
    ends = [end for m in known for end in (*m["values"], m["ci_low"], m["ci_high"]) if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = max(0.05 * (high - low), 1e-3 * max(abs(high), 1e-9))
    start, span = low - room, high - low + 2 * room

    def x(value: float) -> float:
        return float(LEFT + (value - start) / span * (WIDTH - LEFT - RIGHT))

    height = top + row * len(known) + 34
    body = _ticks(np.linspace(start, start + span, 6), x, top, height, figure)
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
    return _svg(height, body, f"mean {figure} over seeds and its confidence interval, by method")


def phase_bars(methods: Sequence[Mapping[str, Any]]) -> str:
    """Seconds per phase, by method."""
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
    if len(sizes) > MAX_DOTS:
        sizes = np.quantile(sizes, np.linspace(1, 0, MAX_DOTS))
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


def round_curves(methods: Sequence[Mapping[str, Any]]) -> str:
    """Accuracy against rounds, seconds and bytes, one line per method; a method of one round is a dot. Empty without curves."""
    tested = [
        (method["name"], len(method["clients"]), [entry for entry in method.get("history", []) if entry.get("mean_accuracy")])
        for method in methods
    ]
    if not any(len(entries) > 1 for _, _, entries in tested):
        return ""
    axes: list[tuple[str, Callable[[float], str] | None, Callable[[Mapping[str, Any], int], float]]] = [
        ("rounds", None, lambda entry, _: float(entry["round"])),
        ("time", duration, lambda entry, _: float(entry["seconds"])),
        ("bytes sent and received per client", size, lambda e, n: float(e["uplink_bytes"] + e["downlink_bytes"]) / max(n, 1)),
    ]
    return "".join(
        _curves(label, format_end, [(name, [(at(e, n), e["mean_accuracy"]) for e in entries]) for name, n, entries in tested])
        for label, format_end, at in axes
    )


def _curves(
    label: str, format_end: Callable[[float], str] | None, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
) -> str:
    """One chart; an axis with a format for its ends is logarithmic."""
    logarithmic = format_end is not None
    height, top, bottom, right = 260, 14, 220, 130
    place = (lambda value: float(np.log10(max(value, 1e-6)))) if logarithmic else float
    shown = [(name, points) for name, points in lines if points]
    all_x = [place(x) for _, points in shown for x, _ in points]
    all_y = [y for _, points in shown for _, y in points]
    low, span = min(all_x), max(max(all_x) - min(all_x), 1e-9)
    floor = float(np.floor(10 * min(all_y)) / 10)
    rise = max(max(all_y) - floor, 0.05)

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + (place(x) - low) / span * (WIDTH - LEFT - right), bottom - (y - floor) / rise * (bottom - top)

    body = [_text(LEFT, bottom + 34, label + (", logarithmic" if logarithmic else ""), css="axis")]
    for tick in np.linspace(floor, floor + rise, 5):
        y = bottom - (tick - floor) / rise * (bottom - top)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        body.append(_text(LEFT - 8, y + 4, f"{100 * tick:.0f} %", "end", "axis"))
    for value, anchor in ((low, "start"), (low + span, "end")):
        x = LEFT + (value - low) / span * (WIDTH - LEFT - right)
        body.append(_text(x, bottom + 16, format_end(10**value) if format_end else f"{value:.0f}", anchor, "axis"))
    ends = np.array([at(*points[-1])[1] for _, points in shown])
    for i, (rank, (name, points)) in enumerate(zip(np.argsort(np.argsort(ends)), shown, strict=True)):
        colour = f"hsl({int(360 * i / len(shown))} 60% 45%)"
        xy = [at(*point) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in xy)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body.append(f'<circle cx="{xy[-1][0]:.1f}" cy="{xy[-1][1]:.1f}" r="3.5" fill="{colour}"/>')
        body.append(f'<text x="{WIDTH - right + 12}" y="{top + 4 + 14 * int(rank)}" style="fill: {colour}">{escape(name)}</text>')
    return _svg(max(height, top + 14 * len(shown) + 10), body, f"accuracy against {label}, by method")
