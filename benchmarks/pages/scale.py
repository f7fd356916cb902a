"""What docs/scale.md has of `gramfold bench scale` beside its tables: how cost grows, as a picture, and a plan for more clients
than were run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pages.differ import BLUE, GREY, svg, text

Cells = Mapping[str, Mapping[str, Any]]
CLIENTS = 10**8
FAN = 100
"""Files that a merge reads."""
MACHINES = 100


def growth(cells: Cells) -> str:
    """Processor's milliseconds a client, against what is varied, both in steps of ten."""
    panels = [("clients", [cell for key, cell in cells.items() if key.endswith(" clients")])]
    panels += [(what, [cell for key, cell in cells.items() if key.startswith(f"{what}/")]) for what in _varied(cells)]
    parts = [text(12, 20, "processor's milliseconds a client")]
    for k, (what, found) in enumerate(panels):
        points = sorted((float(cell[what]), float(cell["cpu_milliseconds_per_client"])) for cell in found)
        parts += _panel(what, points, 52 + 178 * k)
    return svg(52 + 178 * len(panels), 250, parts)


def _varied(cells: Cells) -> list[str]:
    return list(dict.fromkeys(key.partition("/")[0] for key in cells if "/" in key))


def _panel(what: str, points: Sequence[tuple[float, float]], left: float, width: float = 130.0) -> list[str]:
    top, bottom, low, high = 40.0, 200.0, -1, 2  # 0.1 ms to 100 ms
    first, last = math.log10(points[0][0]), math.log10(points[-1][0])

    def x(value: float) -> float:
        return left + width * (math.log10(value) - first) / max(last - first, 1e-9)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (min(max(math.log10(value), low), high) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        parts.append(f'<path d="M{left:.1f} {y(10.0**power):.1f}h{width:.1f}" stroke="#ddd"/>')
        parts.append(text(left - 6, y(10.0**power) + 4, f"{10.0**power:g}", "end", GREY))
    line = "L".join(f"{x(value):.1f} {y(spent):.1f}" for value, spent in points)
    parts.append(f'<path d="M{line}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    for value, spent in points:
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y(spent):.1f}" r="4" fill="{BLUE}"/>')
        parts.append(text(x(value), bottom + 18, short(value), "middle"))
    return [*parts, text(left + width / 2, bottom + 40, what, "middle")]


def short(value: float) -> str:
    """
    >>> short(10_000), short(1_000_000), short(1024)
    ('10k', '1M', '1,024')
    """
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if not value % unit:
            return f"{value / unit:g}{name}"
    return f"{value:,.0f}"


def powers(cells: Cells) -> str:
    """By what power of each varied number the processor's time of a client grows from its last step but one to its last."""
    said = []
    for what in _varied(cells):
        found = sorted((cell for key, cell in cells.items() if key.startswith(f"{what}/")), key=lambda cell: float(cell[what]))
        (before, after), name = found[-2:], "cpu_milliseconds_per_client"
        power = math.log(after[name] / before[name]) / math.log(after[what] / before[what])
        said.append(f"{what} from {before[what]:,} to {after[what]:,}: to the power {power:.1f}")
    return f"What a client costs grows with {'; with '.join(said)}."


def plan(cells: Cells) -> list[str]:
    """Bytes, trees and seconds of CLIENTS clients like those of the largest size that was run, at that run's rates."""
    cell = max((cell for key, cell in cells.items() if key.endswith(" clients")), key=lambda cell: int(cell["clients"]))
    each, width, classes = int(cell["clients"]), int(cell["features"]), int(cell["classes"])
    parts = -(-CLIENTS // each)
    triangle = 8 * (width * (width + 1) // 2 + width * classes)
    data = CLIENTS * cell["samples"] * (4 * cell["inputs"] + 8)
    levels, files, left = [], 0.0, parts
    while left > 1:
        files += left * triangle + 8 * CLIENTS
        left = -(-left // FAN)
        levels.append(left)
    fold, heads = (CLIENTS / each * float(cell[f"{name}_seconds"]) for name in ("fold", "personalize"))
    merging = 2 * files / float(cell["limits"]["bytes_per_second"])
    tree = ", then ".join(f"{count:,} merge{'s' if count > 1 else ''}" for count in levels) or "nothing to merge"
    rows = [
        ("data, read twice", f"{CLIENTS:,} x {cell['samples']} x ({cell['inputs']} x 4 + 8) bytes", _bytes(data), ""),
        ("fold", f"{parts:,} parts of {each:,} clients, {float(cell['fold_seconds']):,.0f} s each", "", _hours(fold)),
        ("part files", f"{triangle:,} bytes each, and 8 for every client", _bytes(parts * triangle + 8 * CLIENTS), ""),
        (f"tree of merges, {FAN} files each", f"{tree}; what they read, at least as long as a copy of it", _bytes(files), _hours(merging)),
        ("solve", f"one system of {width} features", "", "below a second"),
        ("heads", f"{cell['bytes_per_head']:,.0f} bytes and {1000 * float(cell['personalize_seconds']) / each:.2f} ms each",
         _bytes(CLIENTS * cell["bytes_per_head"]), _hours(heads)),
        ("index of names", "16 bytes for every client", _bytes(16 * CLIENTS), ""),
    ]  # fmt: skip
    lines = ["| | | bytes | on one machine |", "| --- | --- | ---: | ---: |", *(f"| {' | '.join(row)} |" for row in rows)]
    total, least = fold + heads + merging, data / MACHINES
    return [
        f"### {CLIENTS:,} clients, on paper", "",
        f"Arithmetic, not a run: clients as above, at the rates of the run of {each:,}, on machines like the one it ran on.", "",
        *lines, "",
        f"In all {_hours(total)} on one machine; on {MACHINES}, which fold and personalise parts of their own, {_hours(total / MACHINES)}, "
        f"as long as each reads its {_bytes(least)} of data as fast as these clients were made. Memory is that of the run above, on each. "
        "Folding parts and merging them are steps of [files](#files); heads in few numbers are `run_streamed`'s alone so far, where "
        "`gramfold personal` writes a file for every client of a part.",
    ]  # fmt: skip


def _bytes(count: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count / 1e3:.1f} kB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
