"""Networks without gradients: docs/convolution_results.md."""

from typing import Any

from benchmarks.kept import load
from benchmarks.pages.gradient import ranked
from benchmarks.provenance import age

OLDER = (
    "**Older than the present networks**: measured when labels had one code for each class, not one for each class and place, and before networks became quicker. `five` and `lenet` are more "
    "accurate now: [papers.md](papers.md#measured) has them, and so has *Which filters* below."
)


def convolution(name: str) -> str:
    """Networks without gradients on one set of images."""
    figures = load(f"convolution_{name}")
    rows, older = figures["runs"], [] if figures.get("codes") == "place" else [OLDER]
    parts = [*older, ranked(rows), *_against_fedavg(rows, figures["device"]), age(f"convolution_{name}")]
    return "\n\n".join(parts)


def filters() -> str:
    """Where solved filters come from, on validation images."""
    runs = load("filters")["runs"]
    columns = list(dict.fromkeys((run["data"], run["images"]) for run in runs))
    found = {(run["way"], run["data"], run["images"]): f"{100 * run['accuracy']:.1f}" for run in runs}
    rows = [[way, *(found.get((way, *column), "") for column in columns)] for way in dict.fromkeys(run["way"] for run in runs)]
    head = ["", *(f"{data}, {images:,} images" for data, images in columns)]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * len(columns)], *sorted(rows))]
    return "\n".join([*lines, "", age("filters")])


def layers() -> str:
    """What `five` is made of, on validation images."""
    runs = load("layers")["runs"]
    columns, networks = (list(dict.fromkeys(run[key] for run in runs)) for key in ("data", "network"))
    figures = {(run["network"], run["data"]): f"{100 * run['accuracy']:.1f}" for run in runs}
    rows = [[name, *(figures.get((name, data), "") for data in columns)] for name in networks]
    lines = [f"| {' | '.join(row)} |" for row in (["", *columns], ["---", *["---:"] * len(columns)], *rows)]
    return "\n".join([*lines, "", age("layers")])


def _against_fedavg(rows: list[dict[str, Any]], device: str) -> list[str]:
    """Each network against FedAvg's curve: at equal seconds, and to equal accuracy."""
    curve: list[tuple[float, float]] = []
    for row in rows:
        if row["name"] == "fedavg":
            evaluated = [entry for entry in row["history"] if entry.get("mean_accuracy") is not None]
            scale = _trained(row, device) / evaluated[-1]["seconds"]
            curve = [(entry["seconds"] * scale, entry["mean_accuracy"]) for entry in evaluated]
    if not curve:
        return []
    lines = ["| | accuracy % | seconds | FedAvg then % | FedAvg reaches it |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if row["name"] != "fedavg":
            seconds, wanted = _trained(row, device), f"not in {curve[-1][0]:.0f} s"
            so_far = [accuracy for when, accuracy in curve if when <= seconds]
            reached = [when for when, accuracy in curve if accuracy >= row["mean_accuracy"]]
            if reached:
                wanted = f"in {reached[0]:.0f} s: {100 * (1 - seconds / reached[0]):.0f} % saved"
            then = f"{100 * max(so_far):.1f}" if so_far else "not yet evaluated"
            lines.append(
                f"| {row['cell'].partition('/')[2]} | {100 * row['mean_accuracy']:.1f} | {seconds:.1f} | {then} | {wanted} |"
            )
    clock = "processor seconds" if device == "cpu" else "wall-clock seconds"
    words = f"Beside FedAvg's CNN (`cnn:32`, 3 epochs a round), by its best accuracy so far on the same test images; {clock}, without evaluation:"
    return [words, "\n".join(lines)]


def _trained(row: dict[str, Any], device: str) -> float:
    """Seconds without evaluation: of the processor, or on an accelerator of the clock."""
    trained = sum(seconds for phase, seconds in row["seconds"].items() if phase not in ("evaluate", "tuning"))
    return float(trained / sum(row["seconds"].values()) * row["cpu_seconds"] if device == "cpu" else trained)
