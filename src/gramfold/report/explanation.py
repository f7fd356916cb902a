"""The page of an explanation: which columns count for a head, and what they add to each prediction."""

from collections.abc import Sequence

from gramfold.heads import Explanation
from gramfold.report.sheet import WIDE, Sheet, cells, table

MOST_COLUMNS, MOST_SAMPLES, NAMED = 30, 500, 6
"""Columns in the figure, samples in the table, and columns that are named for each of them."""


def render_explanation(title: str, found: Explanation, names: Sequence[str]) -> str:
    """`names`: of the samples."""
    sheet = Sheet(title)
    what = "the value" if found.of[0] == "value" else f"the log-odds of {found.of[0]}" if len(set(found.of)) == 1 else "log-odds"
    sheet.soft(f"What every column adds to {what}, against the average sample: {len(found)} samples.")
    if found.exact:
        sheet.soft("A sample's effects sum to its prediction less the baseline.")
    else:
        sheet.soft("Effects are what the prediction loses with one column at its average: they need not add up.")
    bars = [{"name": name, "parts": [float(f"{size:.3g}")]} for name, size in list(found.importance.items())[:MOST_COLUMNS]]
    sheet.figure("Mean size of effects", "", WIDE, kind="bars", parts=["mean size"], form="number", rows=bars)
    sheet.heading("Sample by sample")
    header = [
        ("sample", ""), ("of", "the class that is explained"), ("prediction", ""), ("baseline", "of the average sample"),
        ("largest effects", ""),
    ]  # fmt: skip
    rows = []
    for name, row in list(zip(names, found.rows(), strict=True))[:MOST_SAMPLES]:
        effects = sorted(((key, row[key]) for key in found.columns), key=lambda item: -abs(item[1]))[:NAMED]
        words = ", ".join(f"{key} {value:+.2f}" for key, value in effects)
        rows.append(("", cells([name, str(row["of"]), f"{row['prediction']:.3f}", f"{row['baseline']:.3f}", words])))
    sheet.html(table(header, rows, "sortable"))
    if len(found) > MOST_SAMPLES:
        sheet.soft(f"And {len(found) - MOST_SAMPLES} more.")
    return sheet.render()
