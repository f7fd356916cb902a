"""Figures for papers, by matplotlib: PDF and PNG, with titles of axes."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from gramfold.errors import OptionError
from gramfold.imports import require
from gramfold.measures import MEASURES
from gramfold.report.charts import axis_title

KINDS = ("pdf", "png")
INCHES, A_ROW, DOTS = 6.0, 0.4, 300
MARGIN = 1.2
"""Inches for the axis and its title."""


def intervals(methods: Sequence[Mapping[str, Any]], figure: str, kind: str) -> bytes:
    """The file of a kind with a row for each method: every seed a dot, the mean a tick, its confidence interval a line."""
    if kind not in KINDS:
        raise OptionError(
            f"a plot's file ends in .pdf, .png or .svg, not in {'.' + kind!r}"
            if kind
            else "a plot's file ends in .pdf, .png or .svg"
        )
    known, unit = [method for method in methods if method["mean"] is not None], 100 if MEASURES[figure].percent else 1
    Figure = require("matplotlib.figure", "plots", "writing a plot").Figure
    drawn = Figure(figsize=(INCHES, MARGIN + A_ROW * len(known)), layout="constrained")
    axes = drawn.subplots()
    for row, method in enumerate(known):
        if method["ci_low"] is not None:
            axes.hlines(row, unit * method["ci_low"], unit * method["ci_high"], color="0.6")
        values = [unit * value for value in method["values"] if value is not None]
        axes.plot(values, [row] * len(values), "o", markersize=4, color="tab:blue", alpha=0.7)
        axes.plot(unit * method["mean"], row, "|", markersize=14, color="black")
    axes.set_yticks(range(len(known)), [method["method"].replace("$", r"\$") for method in known])
    axes.set_ylim(len(known) - 0.5, -0.5)
    axes.set_xlabel("\n".join(axis_title(figure)))
    axes.set_ylabel("method")
    axes.grid(axis="x", alpha=0.3)
    file = io.BytesIO()
    drawn.savefig(file, format=kind, dpi=DOTS, metadata={"CreationDate": None} if kind == "pdf" else None)
    return file.getvalue()
