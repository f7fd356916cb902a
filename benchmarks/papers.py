"""Writes the tables of docs/papers.md, and docs/leaderboard.md, from the figures that `gramfold bench` and the benchmarks left.

gramfold bench apfl FILE.npz --out build/apfl && cp build/apfl/bench.json benchmarks/results/bench_apfl.json
python -m benchmarks.papers
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.provenance import age
from benchmarks.tables import END, ROOT
from benchmarks.timing import RESULTS, load
from gramfold.bench import open_bench
from gramfold.report.table import bench_cell
from gramfold.report.text import duration, size

BEGIN = "<!-- made by benchmarks/papers.py -->"
COLUMNS = ["method", "mean", "worst 10 %", "seconds", "up / client", "down / client"]
Row = Sequence[Any]


def bench(name: str) -> dict[str, Any] | None:
    """What `gramfold bench` left, its tables and plots made anew of its cells; None where it has not run."""
    path = RESULTS / f"bench_{name}.json"
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    made, kept = open_bench(name), content["options"]
    options = made.options(kept["data"], content["seeds"], quick=kept["quick"], **kept["settings"])
    return {**content, "tables": made.tables(content["cells"], options), "plots": made.plots(content["cells"], options)}


def markdown(columns: Sequence[str], rows: Iterable[Row]) -> str:
    lines = [list(columns), ["---", *["---:"] * (len(columns) - 1)], *([str(row[0]), *map(bench_cell, row[1:])] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def heat(plot: Mapping[str, Any]) -> str:
    rows = [[name, *values] for name, values in zip(plot["rows"], plot["values"], strict=True)]
    return markdown([f"{plot['y']} / {plot['x']}", *plot["columns"]], rows)


def paper(name: str) -> str:
    """A bench's tables and heat maps."""
    content = bench(name)
    if content is None:
        return ""
    machine, seeds = content["machine"], ", ".join(map(str, content["seeds"]))
    data = ", ".join(content["options"]["data"].values())
    clock = "are the processor's" if name == "fedacnnl" else "were measured in one go"
    parts = [
        f"### {content['paper']}",
        f"`gramfold bench {name}` on {data}, seeds {seeds}, measured on {' and '.join(machine['devices'])}; {len(content['cells'])} "
        "cells. Where several were measured at a time, their seconds are not those of a free machine; the times that are compared "
        f"below {clock}. Mean and standard error over seeds; published figures in brackets.",
    ]
    for table in content["tables"]:
        parts += [f"**{table['title']}**", markdown(table["columns"], table["rows"]), table["note"]]
    for plot in content["plots"]:
        if plot["kind"] == "heat":
            parts += [f"**{plot['title']}**", heat(plot)]
        elif "dimension" in plot["x"]:
            points = plot["series"][0]["points"] if len(plot["series"]) == 1 else []
            if points:
                parts += [f"**{plot['title']}**", markdown(["dimension", "accuracy %"], [[x, y] for x, y in points])]
    return "\n\n".join(part for part in [*parts, age(f"bench_{name}")] if part)


# --- the leaderboard ---


def row(name: str, entry: Mapping[str, Any], clients: int) -> list[Any]:
    """A method's line from its entry in a result file, where bytes are those of all clients."""
    seconds = sum(spent for phase, spent in entry["seconds"].items() if phase not in ("evaluate", "tuning"))
    sent = [size(entry[f"{way}_bytes"] / clients) for way in ("uplink", "downlink")]
    return [name, 100 * entry["mean_accuracy"], 100 * entry["worst_decile_accuracy"], duration(seconds), *sent]


def ranked(rows: Iterable[Row]) -> str:
    return markdown(COLUMNS, sorted(rows, key=lambda row: -(row[1]["mean"] if isinstance(row[1], Mapping) else row[1])))


def on_cifar() -> list[str]:
    """From APFL's bench: all that is measured there, cell by cell."""
    content = bench("apfl")
    if content is None:
        return []
    means = [table for table in content["tables"] if table["title"].startswith("Accuracy, ")]
    worst = [table for table in content["tables"] if table["title"].startswith("Accuracy of the worst")]
    parts = []
    for mean, low in zip(means, worst, strict=True):
        clients = mean["title"].rpartition(", ")[2]
        lows = {line[0]: line[1:] for line in low["rows"]}
        for at, cut in enumerate(mean["columns"][1:]):
            rows = []
            for line in mean["rows"]:
                figures = [
                    figures for key, figures in content["cells"].items() if key.startswith(f"{clients}/{cut}/{line[0]}/seed ")
                ]  # fmt: skip
                if not figures:
                    continue
                average = [
                    sum(one[key] for one in figures) / len(figures) for key in ("seconds", "uplink_bytes", "downlink_bytes")
                ]
                cells = [None if cell is None else {**cell, "published": None} for cell in (line[1 + at], lows[line[0]][at])]
                rows.append([line[0], *cells, duration(average[0]), *map(size, average[1:])])
            parts += [f"### CIFAR-100, DINOv2-small: {clients}, {cut}", ranked(rows)]
    rounds = content["options"]["settings"]["rounds"]
    note = f"From `gramfold bench apfl`; gradient methods: {rounds} rounds. Several cells at a time, so that seconds are no more than an order."
    return [note, *parts, age("bench_apfl")]


def leaderboard() -> str:
    head = (
        "# Leaderboard\n\nEvery method on every data set at hand, with nothing set by hand but the network where one is named. Mean over clients of the accuracy of each client's final model on its "
        "own test split, in per cent (standard error over seeds where there are several); the mean over the worst tenth of the clients; seconds without evaluation; bytes of a client. "
        "Made by `python -m benchmarks.papers` from `benchmarks/results/*.json`. Seconds of different tables are of different machines.\n\n"
        "**PACE alone has a class prior here, and sweeps are short.** What is left of its lead where every method has the prior: "
        "[one protocol for all](results.md#one-protocol-for-all)."
    )
    parts = [head, "## Features and tables"]
    content = bench("leaderboard")
    if content is not None:
        settings = content["options"]["settings"]
        devices = " and ".join(content["machine"]["devices"])
        parts.append(
            f"`gramfold bench leaderboard` on {devices}, over the seeds that all methods of a table were measured with; gradient methods: "
            f"{settings['rounds']} rounds, parameters swept on validation data, {settings['sweep_rounds']} rounds for each value."
        )
        for table in content["tables"]:
            parts += [f"### {table['title']}", ranked(table["rows"]), table["note"].partition(". ")[0] + "."]
        parts.append(age("bench_leaderboard"))
    parts += on_cifar()
    images, layerwise = load("gradient_images"), load("convolution_cifar100_20_classes")["runs"]
    seen = {entry["cell"] for entry in images}
    entries = [*images, *(entry for entry in layerwise if entry["cell"] not in seen)]  # those of fewer rounds are left out
    twenty = [row(entry["cell"].partition("/")[2], entry, 20) for entry in entries]
    digits = [row(entry["cell"].partition("/")[2], entry, entry["client_count"]) for entry in load("convolution_digits")["runs"]]
    parts += [
        "## Images",
        "From `benchmarks.gradient_images` (a GPU, 40 rounds) and `benchmarks.convolution` (a CPU; FedAvg on digits: 30 rounds). Networks without "
        "gradients as they were before labels had a code for each class and place ([convolution_results.md](convolution_results.md)).",
        "### CIFAR-100, 20 classes as images: 20 clients, dirichlet:0.1",
        ranked(twenty),
        "### Digits as images: 20 clients, dirichlet:0.1",
        ranked(digits),
        age("gradient_images", "convolution_cifar100_20_classes", "convolution_digits"),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    page = ROOT / "docs" / "papers.md"
    before, rest = page.read_text().split(BEGIN)
    made = map(paper, ("apfl", "fedhip", "fedacnnl", "heart-pfl"))
    tables = "\n\n".join(filter(None, made))
    page.write_text(f"{before}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}")
    (ROOT / "docs" / "leaderboard.md").write_text(leaderboard())


if __name__ == "__main__":
    main()
