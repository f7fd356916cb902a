"""What very many clients cost, from a bench's file into the page.

    gramfold bench scale --set full=true --out build/scale
    python -m benchmarks.scale build/scale/bench.json

Some fifteen minutes on two quiet cores, most of them for the million clients.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.provenance import age
from benchmarks.timing import keep, load

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
MARKS = ("<!-- made by benchmarks/scale.py -->", "<!-- end of scale -->")


def page(found: dict[str, Any]) -> None:
    """Write the figures into the page."""
    cells = found["cells"]
    sizes = sorted((cell for key, cell in cells.items() if key.endswith(" clients")), key=lambda cell: cell["clients"])
    first = sizes[0]
    lines = [
        f"PACE, {first['samples']} samples of {first['inputs']} numbers a client, {first['features']} features, "
        f"{first['classes']} classes (`gramfold bench scale --set full=true`), on {found['machine']['cores']} cores; "
        "`load` is how many processes wanted these, ours among them:", "",
        "| clients | a second | seconds | processor's seconds | a processor's second | load | peak memory, MB "
        "| bytes a head | ms to read one, median | 99 of 100 |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {cell['clients']:,} | {cell['clients_per_second']:,.0f} | {cell['seconds']:,.0f} | {cell['cpu_seconds']:,.0f} | "
            f"{cell['clients_per_cpu_second']:,.0f} | {cell['load']:.1f} | {cell['peak_megabytes']:,.0f} | "
            f"{cell['bytes_per_head']:,.0f} | {cell['read_milliseconds']:.2f} | {cell['slow_read_milliseconds']:.2f} |"
            for cell in sizes
        ),
    ]  # fmt: skip
    lines += _phases(sizes)
    for what in ("samples", "features", "classes"):
        lines += _growth(what, {key: cell for key, cell in cells.items() if key.startswith(f"{what}/")})
    lines += ["", age("scale")]
    text = PAGE.read_text()
    before, after = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    PAGE.write_text(text[:before] + "\n" + "\n".join(lines) + "\n" + text[after:])


def _phases(sizes: list[dict[str, Any]]) -> list[str]:
    rows = [
        f"| {cell['clients']:,} | {cell['look_seconds']:,.1f} | {cell['fold_seconds']:,.1f} "
        f"| {cell['personalize_seconds']:,.1f} |"
        for cell in sizes
    ]
    return ["", "| clients | seconds to look through them | to fold | for heads |", "| ---: | ---: | ---: | ---: |", *rows]


def _growth(what: str, cells: dict[str, Any]) -> list[str]:
    if not cells:
        return []
    rows = [
        f"| {cell[what]:,} | {cell['cpu_milliseconds_per_client']:.2f} | {cell['bytes_per_head']:,.0f} | "
        f"{cell['peak_megabytes']:,.0f} |"
        for cell in sorted(cells.values(), key=lambda cell: int(cell[what]))
    ]
    many = next(iter(cells.values()))["clients"]
    head = f"| {what}, {many:,} clients | processor's ms a client | bytes a head | peak memory, MB |"
    return ["", head, "| ---: | ---: | ---: | ---: |", *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path)
    given = parser.parse_args().file
    if given is not None:
        keep("scale", json.loads(given.read_text()))
    page(load("scale"))


if __name__ == "__main__":
    main()
