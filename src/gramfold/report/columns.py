"""The columns of the result table, the same in the terminal and on the page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gramfold.report.text import MISSING, duration, number, percent, size

Method = Mapping[str, Any]


class Column(NamedTuple):
    title: str
    meaning: str
    cell: Callable[[Method], str]


def per_client(method: Method, key: str) -> float:
    return float(method[key]) / max(len(method["clients"]), 1)


def columns(methods: Sequence[Method]) -> list[Column]:
    """Columns for these results; those without a figure for any method are omitted."""
    if any("mean_rmse" in method for method in methods):
        figures = [
            Column("RMSE", "root mean squared error of each client's final model on its own test split, mean over clients",
                   lambda m: number(m["mean_rmse"])),
            Column("worst 10 %", "the same, mean over the worst tenth of the clients", lambda m: number(m["worst_decile_rmse"])),
            Column("R2", "the part of the variation explained, each client's around its own mean, over all test samples",
                   lambda m: number(m.get("r2"))),
            Column("shared model", "the shared model on the pooled test samples", lambda m: number(m["global_rmse"])),
        ]  # fmt: skip
    else:
        figures = [
            Column("accuracy %", "each client's final model on its own test split, mean over clients",
                   lambda m: percent(m["mean_accuracy"])),
            Column("weighted %", "the same, weighted by test samples", lambda m: percent(m["weighted_accuracy"])),
            Column("worst 10 %", "the same, mean over the worst tenth of the clients",
                   lambda m: percent(m["worst_decile_accuracy"])),
            Column("balanced %", "each client's mean over the classes it has test samples of, mean over clients",
                   lambda m: percent(m.get("mean_balanced_accuracy"))),
            Column("AUC", "area under the ROC curve, a class against the others, mean over clients with test samples of two",
                   lambda m: number(m.get("mean_auc"))),
            Column("log loss", "mean of -log p of the true class over all test samples, for methods with probabilities",
                   lambda m: number(m.get("log_loss"))),
            Column("shared model %", "the shared model on the pooled test samples", lambda m: percent(m["global_accuracy"])),
            Column("LOO estimate %", "the clients' own leave-one-out estimate of their accuracy, without any test data",
                   lambda m: percent(m["leave_one_out_accuracy"])),
            Column("ECE", "expected calibration error of the probabilities, for methods that have them",
                   lambda m: number(m["calibration_error"])),
        ]  # fmt: skip
    costs = [
        Column("rounds", "uploads per client", lambda m: str(m["rounds"])),
        Column("up / client", "bytes sent per client, as serialised", lambda m: size(per_client(m, "uplink_bytes"))),
        Column("down / client", "bytes received per client, as serialised", lambda m: size(per_client(m, "downlink_bytes"))),
        Column("time", "wall-clock, evaluation included", lambda m: duration(sum(m["seconds"].values()))),
    ]
    return [column for column in [*figures, *costs] if any(column.cell(method) != MISSING for method in methods)]
