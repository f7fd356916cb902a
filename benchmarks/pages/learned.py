"""Learned features beside pooled models, and what a budget of bytes buys: docs/learned.md."""

from typing import Any

import numpy as np

from benchmarks.kept import load
from benchmarks.pages.data import site_tables
from benchmarks.provenance import ROOT, age
from gramfold.methods.pace.sizes import bytes_of
from gramfold.report.text import size


def learned() -> str:
    """The learned metric: CIFAR-100 beside gradient descent on the pooled data, budgets of bytes, and tables cut by site."""
    found, ceiling = load("learned"), load("ceiling")
    default, large = found["default"], found["large"]
    columns = list(dict.fromkeys((row["clients"], row["alpha"]) for row in default))
    lines = [
        "| | " + " | ".join(f"{clients} clients, {alpha}" for clients, alpha in columns) + " | shared model |",
        "| --- |" + " ---: |" * 7,
    ]

    def line(title: str, rows: list[dict[str, Any]], key: str, bold: bool = False) -> str:
        means = [100 * np.mean([row[key] for row in rows if (row["clients"], row["alpha"]) == cell]) for cell in columns]
        texts = [f"{value:.1f}" for value in [*means, 100 * rows[0]["shared"]]]
        return f"| {title} | " + " | ".join(f"**{text}**" if bold else text for text in texts) + " |"

    for kind, title in (("softmax", "pooled softmax regression, tuned, + prior"), ("mlp", "pooled MLP, tuned, + prior")):
        lines.append(line(title, [row for row in ceiling if row["model"] == kind], "accuracy"))
    for rows in (default, large):
        for name in dict.fromkeys(row["map"] for row in rows):
            lines.append(line(f"PACE, `{name}`", [row for row in rows if row["map"] == name], "pace", bold="@" in name))
    mine = [row for row in [*default, *large] if "@" in row["map"]]
    off, ece = max(abs(row["estimate"] - row["pace"]) for row in mine), max(row["calibration_error"] for row in mine)
    runs = [[row for row in mine if (row["map"], row["clients"], row["alpha"]) == key] for key in cells_of(mine)]
    mean = max(abs(float(np.mean([row["estimate"] - row["pace"] for row in cell]))) for cell in runs)
    says = f"With a learned metric the estimate is off by {100 * mean:.2f} points in the worst of {len(runs)} cells, means over three seeds "
    says += f"({100 * off:.2f} in the worst single run); the worst calibration error is {ece:.3f}."
    aged = age("ceiling", "learned", "site_tables")
    return "\n".join([*lines, "", says, "", frontier(), "", site_tables(), "", aged])


def cells_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys((row["map"], row["clients"], row["alpha"]) for row in rows))


def frontier() -> str:
    """What a budget of bytes buys, now and before."""
    rows = load("learned")["frontier"]
    lines = [
        "| budget | what PACE takes | bytes, mean | rounding | 0.1: before | now | gain | 1.0: before | now | gain |",
        "| --- | --- | ---: |" + " ---: |" * 7,
    ]
    for budget in sorted({row["budget"] for row in rows}, key=bytes_of):
        now = [row for row in rows if (row["budget"], row["which"]) == (budget, "now")]
        first = now[0]
        texts = [budget, f"`{first['features']}`, {first['precision']}", size(int(first["bytes"])), f"{first['rounding']:.1g}"]
        for alpha in (0.1, 1.0):
            found = {which: _frontier_mean(rows, budget, which, alpha) for which in ("before", "now")}
            gain = "" if found["before"] is None else f"{found['now'] - found['before']:+.1f}"
            texts += ["-" if found["before"] is None else f"{found['before']:.1f}", f"{found['now']:.1f}", gain]
        lines.append(f"| {' | '.join(texts)} |")
    (ROOT / "docs" / "frontier.svg").write_text(frontier_plot(rows))
    return "\n".join(lines)


def _frontier_mean(rows: list[dict[str, Any]], budget: str, which: str, alpha: float) -> Any:
    found = [row["pace"] for row in rows if (row["budget"], row["which"], row["alpha"]) == (budget, which, alpha)]
    return 100 * np.mean(found) if found else None


def frontier_plot(rows: list[dict[str, Any]]) -> str:
    """Accuracy over the bytes that may be sent, one panel for each alpha; dashed: the pooled models."""
    width, height, left, top, panel, tall = 760, 300, 46, 30, 300, 210
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    budgets = sorted({row["budget"] for row in rows}, key=bytes_of)
    ends = np.log10(bytes_of(budgets[0])), np.log10(bytes_of(budgets[-1]))
    for i, alpha in enumerate((0.1, 1.0)):
        start = left + i * (panel + 70)
        found = {
            which: [
                (np.log10(bytes_of(budget)), mean)
                for budget in budgets
                if (mean := _frontier_mean(rows, budget, which, alpha)) is not None
            ]
            for which in ("now", "before")
        }
        pooled = {
            kind: 100
            * np.mean(
                [row["accuracy"] for row in load("ceiling") if (row["model"], row["clients"], row["alpha"]) == (kind, 100, alpha)]
            )
            for kind in ("softmax", "mlp")
        }
        values = [value for line in found.values() for _, value in line] + list(pooled.values())
        low, high = np.floor(min(values)), np.ceil(max(values))

        def place(where: float, value: float, start: float = start, low: float = low, high: float = high) -> tuple[float, float]:
            x = start + (where - ends[0]) / (ends[1] - ends[0]) * panel
            return x, top + tall - (value - low) / (high - low) * tall

        parts.append(f'<text x="{start}" y="{top - 12}">100 clients, dirichlet {alpha}: accuracy %</text>')
        for value in np.arange(low, high + 1):
            _, y = place(ends[0], value)
            parts.append(f'<line x1="{start}" x2="{start + panel}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{start - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.0f}</text>')
        for budget in budgets[::2]:
            x, _ = place(np.log10(bytes_of(budget)), low)
            parts.append(f'<text x="{x:.1f}" y="{top + tall + 18}" text-anchor="middle">{budget}</text>')
        for kind, value in pooled.items():
            _, y = place(ends[0], value)
            parts.append(
                f'<line x1="{start}" x2="{start + panel}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="5 4"/>'
            )
            parts.append(
                f'<text x="{start + 4}" y="{y - 4:.1f}" fill="#666">pooled {"softmax" if kind == "softmax" else "MLP"}</text>'
            )
        for which, colour in (("before", "#b5651d"), ("now", "#1f5fa8")):
            points = [place(*point) for point in found[which]]
            parts.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
            )
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    parts.append(f'<text x="{left}" y="{height - 12}" fill="#1f5fa8">PACE(budget=...)</text>')
    parts.append(f'<text x="{left + 130}" y="{height - 12}" fill="#b5651d">PACE before: no metric, float64</text>')
    parts.append(f'<text x="{width - 10}" y="{height - 12}" text-anchor="end">most bytes up and down, per client</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
