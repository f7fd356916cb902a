"""Measure what is missing, or older than the code of its methods.

    python -m benchmarks                                        what is stale, cheapest first, with the time that takes
    python -m benchmarks natural noise --data FOLDER --jobs 2   measure these
    python -m benchmarks all --data FOLDER --minutes 60         measure all benches, until an hour is over
    python -m benchmarks all --adopt FOLDER                     take in the cells that another machine measured

Options: `--only "TEXT;TEXT"` cells with one of these in their names; `--seeds 1` fewer seeds; `--again` whether stale or not;
`--device cuda`.
"""

import argparse
import math
import sys
from pathlib import Path

from benchmarks import kept, provenance
from benchmarks.bench import Given, open_bench, run

BENCHES = (
    "sensors", "clean_tables", "binary", "texts", "noise", "natural", "untouched", "site_tables", "more_tables", "joining",
    "pace", "fair", "every_data", "learned",
)  # fmt: skip


def listed(given: Given) -> None:
    """What is stale: scripts that are no benches yet, and benches."""
    for name in BENCHES:
        cells = open_bench(name).stale(given)
        if cells:
            minutes = sum(cell.seconds for cell in cells) / 60
            print(
                f"{name:12} {len(cells):5} cells, at most {minutes:.0f} min of a core   python -m benchmarks {name} --data FOLDER"
            )
    provenance.listed()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}, or all")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--rounds", type=int, help="of gradient methods, where a bench leaves that open")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--folder", type=Path, default=kept.KEPT, help="where cells are kept")
    parser.add_argument("--adopt", type=Path)
    given = parser.parse_args()
    names = BENCHES if given.names == ["all"] else given.names
    asked = Given(given.data, given.seeds, given.device, given.rounds, given.folder)
    if not names:
        listed(asked)
        return 0
    if given.adopt:
        for name in names:
            lines = kept.read(name, given.adopt)
            kept.append(name, lines.values(), given.folder)
            print(f"{name}: {len(lines)} cells")
    benches = [open_bench(name) for name in names]
    if given.adopt:
        return 0
    failed = run(benches, asked, given.jobs, given.minutes, given.only, given.again)
    left = sum(len(bench.stale(asked)) for bench in benches)
    print(f"{failed} cells failed, {left} are still to be measured" if failed or left else "all done", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
