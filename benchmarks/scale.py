"""What very many clients cost, from a bench's file into the page.

    gramfold bench scale --set full=true --out build/scale
    python -m benchmarks.scale build/scale/bench.json

Some fifteen minutes on two quiet cores, most of them for the million clients.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.marks import SCALE, fill
from benchmarks.pages import scale as pages
from benchmarks.provenance import age
from benchmarks.timing import keep, load

PICTURE = SCALE.parent / "scale_growth.svg"


def page(found: dict[str, Any]) -> None:
    """Write the figures into the page."""
    cells = found["cells"]
    sizes = sorted((cell for key, cell in cells.items() if key.endswith(" clients")), key=lambda cell: cell["clients"])
    first = sizes[0]
    lines = [
        f"PACE, {first['samples']} samples of {first['inputs']} numbers a client, {first['features']} features, "
        f"{first['classes']} classes (`gramfold bench scale --set full=true`), on {found['machine']['cores']} cores; "
        "`load` is how many processes wanted these, ours among them; the share is of the operations of the fold and of every "
        "sample's way through the shared triangle, at the machine's rate of products:", "",
        "| clients | a second | seconds | processor's seconds | a processor's second | load | share of the machine's limit "
        "| peak memory, MB | bytes a head | ms to read one, median | 99 of 100 |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {cell['clients']:,} | {cell['clients_per_second']:,.0f} | {cell['seconds']:,.0f} | {cell['cpu_seconds']:,.0f} | "
            f"{cell['clients_per_cpu_second']:,.0f} | {cell['load']:.1f} | "
            f"{cell['limit_share']:.2f} | {cell['peak_megabytes']:,.0f} | "
            f"{cell['bytes_per_head']:,.0f} | {cell['read_milliseconds']:.2f} | {cell['slow_read_milliseconds']:.2f} |"
            for cell in sizes
        ),
    ]  # fmt: skip
    lines += _phases(sizes)
    varied = [what for what in ("samples", "features", "classes") if any(key.startswith(f"{what}/") for key in cells)]
    if varied:
        lines += ["", "### How cost grows", "", f"![Processor's time of a client, by what is varied]({PICTURE.name})", ""]
        lines.append(pages.powers(cells))
        PICTURE.write_text(pages.growth(cells))
    for what in varied:
        lines += _growth(what, {key: cell for key, cell in cells.items() if key.startswith(f"{what}/")})
    lines += ["", *pages.plan(cells), "", age("scale")]
    fill(SCALE, "scale", lines)


def _phases(sizes: list[dict[str, Any]]) -> list[str]:
    rows = [
        f"| {cell['clients']:,} | {cell['look_seconds']:,.1f} | {cell['fold_seconds']:,.1f} "
        f"| {cell['personalize_seconds']:,.1f} |"
        for cell in sizes
    ]
    return ["", "| clients | seconds to look through them | to fold | for heads |", "| ---: | ---: | ---: | ---: |", *rows]


def _growth(what: str, cells: dict[str, Any]) -> list[str]:
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
