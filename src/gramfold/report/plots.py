"""Figures for papers, by matplotlib: PDF and PNG, with titles of axes."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from gramfold.errors import OptionError
from gramfold.imports import require

KINDS = ("pdf", "png")
INCHES, A_ROW, DOTS = 6.0, 0.4, 300


def intervals(methods: Sequence[Mapping[str, Any]], figure: str, kind: str) -> bytes:
    """The file of a kind with a row for each method: every seed a dot, the mean a tick, its confidence interval a line."""
    if kind not in KINDS:
        raise OptionError(
            f"a plot's file ends in .pdf, .png or .svg, not in {'.' + kind!r}"
            if kind
            else "a plot's file ends in .pdf, .png or .svg"
        )
    known = [method for method in methods if method["mean"] is not None]
    Figure = require("matplotlib.figure", "plots", "writing a plot").Figure
    drawn = Figure(figsize=(INCHES, 1 + A_ROW * len(known)), layout="constrained")
    axes = drawn.subplots()
    for row, method in enumerate(known):
        if method["ci_low"] is not None:
            axes.hlines(row, method["ci_low"], method["ci_high"], color="0.6")
        values = [value for value in method["values"] if value is not None]
        axes.plot(values, [row] * len(values), "o", markersize=4, color="tab:blue", alpha=0.7)
        axes.plot(method["mean"], row, "|", markersize=14, color="black")
    axes.set_yticks(range(len(known)), [method["method"].replace("$", r"\$") for method in known])
    axes.invert_yaxis()
    axes.set_xlabel(f"mean {figure.replace('_', ' ')} of clients; a dot for each seed, line: confidence interval of the mean")
    axes.set_ylabel("method")
    axes.grid(axis="x", alpha=0.3)
    file = io.BytesIO()
    drawn.savefig(file, format=kind, dpi=DOTS, metadata={"CreationDate": None} if kind == "pdf" else None)
    return file.getvalue()
