"""The pictures of docs/differ.md, from the rows of `benchmarks.differ`."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

Row = dict[str, Any]
BLUE, ORANGE, GREY = "#2463a6", "#b93a06", "#888888"
PLAIN, ASKED, ALONE = "PACE, without", "PACE", "Local"


def svg(width: int, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def groups_plot(rows: Sequence[Row]) -> str:
    """How likely left-out clients are by the number of groups, and the tree of the groups found in the first of the rows."""
    found = [row for row in rows if row["method"] == ASKED and row.get("group_evidence")]
    parts, left, right, top, bottom = [], 60, 370, 30, 250
    most = max(max(row["group_evidence"].values()) for row in found)
    counts = sorted({int(count) for row in found for count in row["group_evidence"]})

    def x(count: float) -> float:
        return left + (right - left) * (count - 1) / (counts[-1] - 1)

    def y(nats: float) -> float:
        return bottom - (bottom - top) * nats / most

    for mark in np.arange(0, most + 1, 200):
        parts += [f'<path d="M{left} {y(mark):.1f}H{right}" stroke="#ddd"/>', text(left - 8, y(mark) + 4, f"{mark:g}", "end")]
    parts += [text(x(count), bottom + 18, str(count), "middle") for count in counts if count in (1, 4, 8, 12, 16)]
    parts += [text((left + right) / 2, bottom + 36, "groups", "middle"), text(12, 16, "nats")]
    for row, colour in zip(found, (BLUE, ORANGE), strict=False):
        points = [
            (x(int(count)), y(nats)) for count, nats in sorted(row["group_evidence"].items(), key=lambda pair: int(pair[0]))
        ]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        chosen = row["groups"]
        nats = row["group_evidence"][str(chosen)]
        parts.append(f'<circle cx="{x(chosen):.1f}" cy="{y(nats):.1f}" r="5" fill="{colour}"/>')
        parts.append(text(x(chosen), y(nats) - 10, f"{row['cut']}: {chosen} groups", "middle", colour))
    return svg(720, 300, [*parts, *tree_parts(found[0]["group_tree"], found[0]["groups"], 430, 700, 40, bottom)])


def tree_parts(tree: Sequence[Sequence[float]], count: int, left: float, right: float, top: float, bottom: float) -> list[str]:
    members: dict[int, list[int]] = {g: [g] for g in range(count)}
    for k, (a, b, _) in enumerate(tree):
        members[count + k] = members.pop(int(a)) + members.pop(int(b))
    order, tallest, parts = next(iter(members.values())), max(height for *_, height in tree), []
    nodes = {g: (left + (right - left) * (order.index(g) + 0.5) / count, bottom) for g in range(count)}
    parts += [text(nodes[g][0], bottom + 18, str(g), "middle") for g in range(count)]
    for k, (a, b, height) in enumerate(tree):
        (xa, ya), (xb, yb) = nodes[int(a)], nodes[int(b)]
        level = bottom - (bottom - top) * height / tallest
        parts.append(
            f'<path d="M{xa:.1f} {ya:.1f}V{level:.1f}H{xb:.1f}V{yb:.1f}" fill="none" stroke="{GREY}" stroke-width="1.5"/>'
        )
        parts.append(text(min(xa, xb) - 4, level + 4, f"{height:.1f}", "end"))
        nodes[count + k] = ((xa + xb) / 2, level)
    return [*parts, text((left + right) / 2, bottom + 36, "group", "middle")]


def gains_plot(rows: Sequence[Row]) -> str:
    """Errors beside those of a client alone: without these questions, and with them."""
    cuts, width, left, right = list(dict.fromkeys((row["data"], row["cut"]) for row in rows)), 720, 300, 690
    parts, y, top = [], 44.0, 30

    def mean(cut: tuple[str, str], method: str) -> float:
        found = [row["figure"] for row in rows if (row["data"], row["cut"]) == cut and row["method"] == method]
        return float(np.mean(found)) if found else float("nan")

    def x(value: float) -> float:
        return left + (right - left) * value / 1.2

    for cut in cuts:
        alone, plain, asked = (mean(cut, method) for method in (ALONE, PLAIN, ASKED))
        if np.isnan(alone):
            continue
        if cut[0] in ("eight domains", "heart disease"):  # accuracies
            alone, plain, asked = 1 - alone, 1 - plain, 1 - asked
        parts.append(text(left - 12, y + 4, ", ".join(cut), "end"))
        parts.append(f'<path d="M{x(plain / alone):.1f} {y}H{x(asked / alone):.1f}" stroke="{BLUE}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(plain / alone):.1f}" cy="{y}" r="5" fill="white" stroke="{BLUE}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(asked / alone):.1f}" cy="{y}" r="5" fill="{BLUE}"/>')
        y += 26
    marks = [f'<path d="M{x(mark):.1f} {top}V{y}" stroke="{GREY if mark == 1 else "#ddd"}"/>' for mark in (0, 0.25, 0.5, 0.75, 1)]
    marks += [text(x(mark), y + 16, f"{mark:g}", "middle") for mark in (0, 0.25, 0.5, 0.75, 1)]
    return svg(width, round(y + 28), [*marks, text(x(1), 20, "alone", "middle"), *parts])
