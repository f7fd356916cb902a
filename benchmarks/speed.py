"""What methods cost beside a pooled fit and the machine's limit, in seconds and in memory, from the benches' files into the page.

    gramfold bench speed FILE.npz schools=FILE.npz --out build/speed
    gramfold bench memory FILE.npz --out build/memory
    python -m benchmarks.speed build/speed/bench.json build/memory/bench.json

FILE holds features of 100 classes or so, the other one schools' (see the README). Some ten minutes on two quiet cores.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.marks import SCALE, fill
from benchmarks.provenance import age
from benchmarks.timing import RESULTS, keep, load

RIVALS = {"schools": "boosted trees with early stopping"}
TITLES = {
    "apfl": "APFL, parameters given", "pace linear": "PACE, linear map", "pace": "PACE",
    "small clients": "PACE, small clients", "schools": "PACE, schools",
}  # fmt: skip


def page() -> None:
    """Write the figures that there are into the page."""
    lines: list[str] = []
    for name, section in (("speed", _speed), ("memory", _memory)):
        if (RESULTS / f"{name}.json").exists():
            lines += [*section(load(name)), "", age(name), ""]
    if lines:
        fill(SCALE, "speed", lines)


def _speed(found: Mapping[str, Any]) -> list[str]:
    cells, limit = found["cells"], found["cells"]["machine"]
    lines = [
        f"On {found['machine']['cores']} cores that multiply matrices at {limit['product_per_second'] / 1e9:,.0f} GFLOP/s in "
        f"float64 and copy {limit['bytes_per_second'] / 1e9:,.0f} GB/s:", "",
        "| | clients | seconds | clients a second | pooled fit | seconds | ratio | in folds at the limit | share of the limit "
        "| load |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for key, cell in cells.items():
        if key not in TITLES:
            continue
        rival = "RidgeClassifier" if "ratio" in cell and key not in RIVALS else RIVALS.get(key, "")
        beside = [f"{cell[name]:.2f}" if name in cell else "" for name in ("rival_seconds", "ratio")]
        row = [
            TITLES[key], f"{cell['clients']:,}", f"{cell['seconds']:.2f}", f"{cell['clients_per_second']:,.0f}", rival, *beside,
            f"{cell['fold_ratio']:.2f}", f"{cell['limit_share']:.2f}", f"{cell['load']:.1f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _memory(found: Mapping[str, Any]) -> list[str]:
    lines = ["| | MB of the run | in features | MB in all |", "| --- | ---: | ---: | ---: |"]
    for key, cell in found["cells"].items():
        lines.append(f"| {key} | {cell['run_megabytes']:,.0f} | {cell['in_data']:.2f} | {cell['peak_megabytes']:,.0f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    for file in parser.parse_args().files:
        content = json.loads(file.read_text())
        assert content["bench"] in ("speed", "memory"), content["bench"]
        keep(content["bench"], content)
    page()


if __name__ == "__main__":
    main()
