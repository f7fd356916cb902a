"""A comparison over seeds as tables: for a terminal, a paper, a spreadsheet. Made from its plain values alone."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramfold.report.charts import intervals
from gramfold.report.columns import Column
from gramfold.report.summary import embedded, html_table
from gramfold.report.text import MISSING, aligned, cell, duration, number, percent, size

Row = Mapping[str, Any]


def note(comparison: Row) -> str:
    """What the figures are, in a sentence or two."""
    n, level = len(comparison["seeds"]), round(100 * comparison["confidence"])
    if n < 2:
        return "One seed: no standard errors or intervals."
    return (
        f"Mean over {n} seeds. s.e.: standard error over seeds; CI: {level} % confidence interval from Student's t; "
        f"differences to {comparison['baseline']} are paired by seed, p from the paired t-test, not corrected for how many "
        "methods are compared. Seeds cut the same data anew: the intervals speak of cuts and draws, not of other data "
        "sets, and do not know that an accuracy ends at 100 %."
    )


def columns_of(comparison: Row) -> list[Column]:
    """The columns of a comparison; those that no method has a figure for are left out."""
    classes, level = comparison["figure"] == "accuracy", round(100 * comparison["confidence"])
    baseline = comparison["baseline"]
    show = percent if classes else number

    def spread(value: float | None) -> str:
        return show(value) if not classes or value is None else f"{100 * value:.2f}"

    def signed(value: float | None) -> str:
        return MISSING if value is None else f"{100 * value:+.2f}" if classes else f"{value:+.3f}"

    def between(row: Row | None, text: Any) -> str:
        if row is None or row["ci_low"] is None:
            return MISSING
        return f"[{text(row['ci_low'])}, {text(row['ci_high'])}]"

    def of(row: Row, key: str) -> float | None:
        return None if row["difference"] is None else row["difference"][key]

    unit = "accuracy %" if classes else "RMSE"
    found = [
        Column(unit, "of each client's final model on its own test split: mean over clients, then over seeds",
               lambda r: show(r["mean"])),
        Column("s.e.", "standard error of that mean over seeds", lambda r: spread(r["standard_error"])),
        Column(f"{level} % CI", "confidence interval of the mean, from Student's t", lambda r: between(r, spread)),
        Column("worst 10 %", "mean over the worst tenth of the clients, then over seeds", lambda r: show(r["worst_decile"])),
        Column("shared model %" if classes else "shared model", "the shared model on all clients' test samples, mean over seeds",
               lambda r: show(r["shared"])),
        Column(f"diff. to {baseline}", "paired by seed, mean", lambda r: signed(of(r, "mean"))),
        Column(f"{level} % CI of diff.", "confidence interval of the paired difference",
               lambda r: between(r["difference"], signed)),
        Column("p", "paired t-test over seeds, two-sided, not corrected for many methods", lambda r: p_value(of(r, "p_value"))),
        Column("up / client", "bytes a client sends, as serialised", lambda r: size(r["uplink_bytes"])),
        Column("down / client", "bytes a client receives, as serialised", lambda r: size(r["downlink_bytes"])),
        Column("time", "wall-clock, evaluation included, mean over seeds", lambda r: duration(r["seconds"])),
    ]  # fmt: skip
    return [column for column in found if any(column.cell(row) != MISSING for row in comparison["methods"])]


def p_value(value: float | None) -> str:
    """
    >>> p_value(0.0312), p_value(1e-9)
    ('0.031', '<0.001')
    """
    return MISSING if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def cells(comparison: Row) -> tuple[list[str], list[list[str]]]:
    """Header and rows."""
    shown = columns_of(comparison)
    rows = [[row["method"], *(column.cell(row) for column in shown)] for row in comparison["methods"]]
    return ["method", *(column.title for column in shown)], rows


def text(comparison: Row) -> str:
    header, rows = cells(comparison)
    return "\n".join(aligned([header, *rows]))


def markdown(comparison: Row) -> str:
    header, rows = cells(comparison)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
    return f"{table}\n{note(comparison)}\n"


def latex(comparison: Row) -> str:
    r"""A tabular with the rules of the package booktabs."""
    header, rows = cells(comparison)
    lines = [
        " & ".join([_tex(line[0]), *(_SIGN.sub("$-$", _tex(cell)) for cell in line[1:])]) + r" \\" for line in (header, *rows)
    ]
    parts = [
        f"% {note(comparison)}", "% needs \\usepackage{booktabs}", f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


_TEX = {"\\": r"\textbackslash{}", MISSING: "--", "<": "$<$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SIGN = re.compile(r"-(?=\d)")
_TEX |= {letter: "\\" + letter for letter in "&%$#_{}"}


def _tex(cell: str) -> str:
    safe = "".join(_TEX.get(letter, letter) for letter in cell)
    return "{" + safe + "}" if safe.startswith("[") else safe  # after \\ a bracket would be an argument


def flat_rows(comparison: Row) -> list[dict[str, Any]]:
    """A row of plain values for each method: shares, not per cent; bytes are those of a client."""
    figure, nothing = comparison["figure"], dict.fromkeys(("mean", "standard_error", "ci_low", "ci_high", "p_value"))
    return [
        {
            "method": row["method"], "seeds": row["n"], f"mean_{figure}": row["mean"], "standard_error": row["standard_error"],
            "ci_low": row["ci_low"], "ci_high": row["ci_high"], f"worst_decile_{figure}": row["worst_decile"],
            f"global_{figure}": row["shared"], "baseline": comparison["baseline"],
            "difference": (row["difference"] or nothing)["mean"],
            **{f"difference_{key}": (row["difference"] or nothing)[key] for key in ("standard_error", "ci_low", "ci_high")},
            "p_value": (row["difference"] or nothing)["p_value"],
            "uplink_bytes": row["uplink_bytes"], "downlink_bytes": row["downlink_bytes"], "seconds": row["seconds"],
        }
        for row in comparison["methods"]
    ]  # fmt: skip


def as_csv(comparison: Row) -> str:
    rows = flat_rows(comparison)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: cell(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def html(comparison: Row) -> str:
    """For a notebook: the table, the intervals, and what they are."""
    shown = columns_of(comparison)
    header = [("method", ""), *((column.title, column.meaning) for column in shown)]
    rows: Sequence[Sequence[str]] = cells(comparison)[1]
    chart = intervals(comparison["methods"], comparison["figure"])
    return embedded(f"{html_table(header, rows)}{chart}<p>{escape(note(comparison))}</p>")
