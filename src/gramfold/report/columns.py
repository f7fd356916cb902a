"""The columns of the result table, the same in the terminal and on the page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gramfold.measures import MEASURES, Measure, leading_of, main_measure
from gramfold.report.text import MISSING, duration, number, percent, size

Method = Mapping[str, Any]


class Column(NamedTuple):
    title: str
    meaning: str
    cell: Callable[[Method], str]
    best: Callable[[Method], float | None] | None = None
    """Larger for better, of a measure."""


def per_client(method: Method, key: str) -> float:
    return float(method[key]) / max(len(method["clients"]), 1)


def columns(methods: Sequence[Method]) -> list[Column]:
    """Columns for these results, the measures that fit the task first; those without a figure for any method are omitted."""
    main = main_measure(methods)
    own = "of each client's final model on its own test split, mean over clients"
    figures = [
        _of(main, f"{main.what}, {own}", "mean"),
        Column("95 % CI", "its confidence interval, over test samples", lambda m: _interval(m, main)),
        _of(main, "the mean over the worst tenth of the clients", "worst_decile", "worst 10 %"),
    ]
    beside = [MEASURES[key] for key in leading_of(methods) if key != main.key]
    figures += [_of(measure, f"{measure.what}, {own}", "mean") for measure in beside if measure.key not in ("log_loss", "r2")]
    if any("mean_rmse" in method for method in methods):
        figures += [
            Column("R2", "the part of the variation explained, each client's around its own mean, over all test samples",
                   lambda m: number(m.get("r2"))),
            Column("shared model", "the shared model on the pooled test samples", lambda m: number(m["global_rmse"])),
        ]  # fmt: skip
    else:
        figures += [
            Column("log loss", f"{MEASURES['log_loss'].what}, {own}; for methods with probabilities",
                   lambda m: number(m.get("mean_log_loss", m.get("log_loss")))),
            Column("Brier", f"{MEASURES['brier'].what}, {own}", lambda m: number(m.get("mean_brier"))),
            Column("weighted %", "accuracy, weighted by test samples", lambda m: percent(m["weighted_accuracy"])),
            Column("balanced %", "each client's mean over the classes it has test samples of, mean over clients",
                   lambda m: percent(m.get("mean_balanced_accuracy"))),
            Column("AUC", "area under the ROC curve, a class against the others, mean over clients with test samples of two",
                   lambda m: number(m.get("mean_auc"))),
            Column("shared model" + " %" * main.percent, "the shared model on the test samples",
                   lambda m: MISSING if m.get(f"global_{main.key}") is None else main.shown(m[f"global_{main.key}"])),
            Column("LOO estimate %", "the clients' own leave-one-out estimate of their accuracy, without any test data",
                   lambda m: percent(m["leave_one_out_accuracy"])),
            Column("ECE", "expected calibration error of the probabilities, for methods that have them",
                   lambda m: number(m["calibration_error"])),
        ]  # fmt: skip
    costs = [
        Column("rounds", "uploads per client", lambda m: str(m["rounds"])),
        Column("up / client", "bytes sent per client, as serialised", lambda m: size(per_client(m, "uplink_bytes"))),
        Column("down / client", "bytes received per client, as serialised", lambda m: size(per_client(m, "downlink_bytes"))),
        Column("time", "wall-clock, evaluation and trial runs included", lambda m: duration(sum(m["seconds"].values()))),
    ]
    shown: dict[str, Column] = {}
    for column in [*figures, *costs]:
        shown.setdefault(column.title, column)
    return [column for column in shown.values() if any(column.cell(method) != MISSING for method in methods)]


def _of(measure: Measure, meaning: str, over: str, title: str | None = None) -> Column:
    key = f"{over}_{measure.key}"

    def best(method: Method) -> float | None:
        value = method.get(key)
        return None if value is None else -value if measure.less_is_better else value

    return Column(title or measure.unit, meaning, lambda m: MISSING if m.get(key) is None else measure.shown(m[key]), best)


def _interval(method: Method, measure: Measure) -> str:
    ends = method.get("intervals", {}).get(f"mean_{measure.key}")
    return MISSING if ends is None else f"[{measure.shown(ends[0])}, {measure.shown(ends[1])}]"
