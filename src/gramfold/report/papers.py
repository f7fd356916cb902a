"""A comparison over seeds as tables: for a terminal, a paper, a spreadsheet. Made from its plain values alone."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from gramfold.errors import OptionError
from gramfold.measures import MEASURES, Measure
from gramfold.report.charts import intervals
from gramfold.report.columns import Column
from gramfold.report.summary import embedded, html_table
from gramfold.report.text import MISSING, aligned, cell, duration, size

Row = Mapping[str, Any]


def note(comparison: Row) -> str:
    """What the figures are, in a sentence or two."""
    n, level, baseline = len(comparison["seeds"]), round(100 * comparison["confidence"]), comparison["baseline"]
    if n < 2:
        said = (
            f"One run; CI: {level} % confidence interval over its test samples; differences to {baseline} from resampled test "
            "splits, the same for both methods. It speaks of other test samples of these clients, not of another cut or another "
            "training."
        )
        if all(row["ci_low"] is None for row in comparison["methods"]):
            said = "One seed: no standard errors or intervals."
    else:
        said = (
            f"Mean over {n} seeds. s.e.: standard error over seeds; CI: {level} % confidence interval from Student's t; "
            f"differences to {baseline} are paired by seed, p from the paired t-test, not corrected for how many "
            "methods are compared. Seeds cut the same data anew: the intervals speak of cuts and draws, not of other data sets."
        )
    without = comparison.get("without", 0)
    if without:
        who = "1 client has" if without == 1 else f"{without} clients have"
        said += f" {who} test samples of one class alone, and so no {_main(comparison).title}."
    return said


def _main(comparison: Row) -> Measure:
    return MEASURES[comparison["figure"]]


class _Shown:
    """How the figures of a measure are written: means, errors and ends of intervals, differences with their sign."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def mean(self, value: float | None) -> str:
        return MISSING if value is None else self.measure.shown(value)

    def spread(self, value: float | None) -> str:
        return MISSING if value is None else self.measure.shown(value, 2 if self.measure.percent else None)

    def signed(self, value: float | None) -> str:
        return MISSING if value is None else f"{100 * value:+.2f}" if self.measure.percent else f"{value:+.3f}"

    def within(self, row: Row | None) -> str:
        return self._between(row, self.spread)

    def apart(self, row: Row | None) -> str:
        return self._between(row, self.signed)

    @staticmethod
    def _between(row: Row | None, text: Callable[[float], str]) -> str:
        return MISSING if row is None or row["ci_low"] is None else f"[{text(row['ci_low'])}, {text(row['ci_high'])}]"

    def best(self, value: float | None) -> float | None:
        """Larger for better."""
        return None if value is None else -value if self.measure.less_is_better else value


def columns_of(comparison: Row) -> list[Column]:
    """The columns of a comparison; those that no method has a figure for are left out."""
    level, baseline, main = round(100 * comparison["confidence"]), comparison["baseline"], _main(comparison)
    show, over = _Shown(main), comparison.get("over", "seeds")

    def of(row: Row, key: str) -> float | None:
        return None if row["difference"] is None else row["difference"][key]

    shared = "shared model %" if main.percent else "shared model"
    found = [
        Column(main.unit, f"{main.what}, of each client's final model on its own test split: mean over clients, then over seeds",
               lambda r: show.mean(r["mean"]), lambda r: show.best(r["mean"])),
        Column("s.e.", "standard error of that mean over seeds", lambda r: show.spread(r["standard_error"])),
        Column(f"{level} % CI", f"confidence interval of the mean, over {over}", show.within),
        Column("worst 10 %", "mean over the worst tenth of the clients, then over seeds", lambda r: show.mean(r["worst_decile"])),
        Column(shared, "the shared model on all clients' test samples, mean over seeds", lambda r: show.mean(r["shared"])),
        Column(f"diff. to {baseline}", "paired, mean", lambda r: show.signed(of(r, "mean"))),
        Column(f"{level} % CI of diff.", f"confidence interval of the paired difference, over {over}",
               lambda r: show.apart(r["difference"])),
        Column("p", "paired t-test over seeds, two-sided, not corrected for many methods", lambda r: p_value(of(r, "p_value"))),
        *(column for place, key in enumerate(comparison.get("measures", [])[1:])
          for column in _beside(MEASURES[key], level, baseline, place == 0 and main.key == "auc")),
        Column("up / client", "bytes a client sends, as serialised", lambda r: size(r["uplink_bytes"])),
        Column("down / client", "bytes a client receives, as serialised", lambda r: size(r["downlink_bytes"])),
        Column("time", "wall-clock, evaluation and trial runs included, mean over seeds", lambda r: duration(r["seconds"])),
    ]  # fmt: skip
    return [column for column in found if any(column.cell(row) != MISSING for row in comparison["methods"])]


def _beside(measure: Measure, level: int, baseline: str, whole: bool) -> list[Column]:
    """The columns of a measure that does not come first; `whole`: with its intervals."""
    show = _Shown(measure)

    def of(row: Row) -> Row:
        nothing = dict.fromkeys(("mean", "ci_low", "ci_high", "difference"))
        return row.get("measures", {}).get(measure.key) or nothing

    def difference(row: Row) -> Row | None:
        found: Row | None = of(row)["difference"]
        return found

    first = Column(measure.unit, f"{measure.what}: mean over clients, then over seeds", lambda r: show.mean(of(r)["mean"]),
                   lambda r: show.best(of(r)["mean"]))  # fmt: skip
    if not whole:
        return [first]
    return [
        first,
        Column(f"{level} % CI, {measure.title}", "confidence interval of that mean", lambda r: show.within(of(r))),
        Column(
            f"{measure.title} diff.", f"to {baseline}, paired, mean", lambda r: show.signed((difference(r) or {}).get("mean"))
        ),
        Column(f"{level} % CI of {measure.title} diff.", "its confidence interval", lambda r: show.apart(difference(r))),
    ]


def p_value(value: float | None) -> str:
    """
    >>> p_value(0.0312), p_value(1e-9)
    ('0.031', '<0.001')
    """
    return MISSING if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def cells(comparison: Row, titles: Sequence[str] | None = None, bold: bool = False) -> tuple[list[str], list[list[str]]]:
    """Header and rows; of some columns only, where their titles are given. `bold`: the best cells of a measure are `Best`."""
    shown = columns_of(comparison)
    if titles is not None:
        known = {column.title: column for column in shown}
        missing = [title for title in titles if title not in known]
        if missing:
            raise OptionError(f"the table has no column {missing[0]!r}; it has: {', '.join(known)}")
        shown = [known[title] for title in titles]
    rows = [[str(row["method"]), *(column.cell(row) for column in shown)] for row in comparison["methods"]]
    for place, column in enumerate(shown, 1):
        ranks = [] if not bold or column.best is None else [column.best(row) for row in comparison["methods"]]
        known_ranks = [rank for rank in ranks if rank is not None]
        for cells_, rank in zip(rows, ranks, strict=False):
            if known_ranks and rank == max(known_ranks):
                cells_[place] = Best(cells_[place])
    return ["method", *(column.title for column in shown)], rows


class Best(str):
    """A cell that stands out."""

    __slots__ = ()


def text(comparison: Row) -> str:
    header, rows = cells(comparison)
    return "\n".join(aligned([header, *rows]))


def markdown(comparison: Row) -> str:
    header, rows = cells(comparison)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
    return f"{table}\n{note(comparison)}\n"


def latex(comparison: Row, titles: Sequence[str] | None = None, bold: bool = False) -> str:
    r"""A tabular with the rules of the package booktabs."""
    header, rows = cells(comparison, titles, bold)
    lines = [
        " & ".join([_tex(line[0]), *(_bold(_SIGN.sub("$-$", _tex(cell)), cell) for cell in line[1:])]) + r" \\"
        for line in (header, *rows)
    ]
    parts = [
        f"% {note(comparison)}", "% needs \\usepackage{booktabs}", f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _bold(written: str, cell: str) -> str:
    return rf"\textbf{{{written}}}" if isinstance(cell, Best) else written


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
            **{
                f"{prefix}{name}{ending}": part[ending_key]
                for name, found in list(row.get("measures", {}).items())[1:]
                for prefix, part in (("mean_", found), ("difference_", found["difference"] or nothing))
                for ending, ending_key in (("", "mean"), ("_ci_low", "ci_low"), ("_ci_high", "ci_high"))
            },
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
