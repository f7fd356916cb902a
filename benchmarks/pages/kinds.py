"""Kinds of data: what pages say of series, of plain tables and machines, and of targets that are more than a class or a value."""

from typing import Any

import numpy as np

from benchmarks import kept
from benchmarks.provenance import age

LEADING = {
    "labels": ("average precision", "average_precision", ("log_loss", "f1")),
    "ordered": ("RPS", "rps", ("log_loss", "rank_error")),
    "counts": ("deviance", "deviance", ("rmse",)),
}
WORDS = {"log_loss": "log loss", "f1": "F1", "rank_error": "places off", "rmse": "RMSE"}


def mean(rows: list[dict[str, Any]], key: str) -> str:
    values = [row[key] for row in rows if key in row]
    return f"{np.mean(values):.3f}" if values else "-"


def targets() -> str:
    """A row for each set and method: the leading measure, those beside it."""
    rows = kept.load("labels")["rows"]
    seeds = len({row["seed"] for row in rows})
    lines = ["| data | method | judged by | | beside |", "| --- | --- | --- | ---: | --- |"]
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        title, key, others = LEADING[mine[0]["kind"]]
        about = f"{name}: {mine[0]['rows']} rows, {mine[0]['clients']} clients" + (
            f", {mine[0]['labels']} labels" if mine[0]["labels"] else ""
        )
        for method in dict.fromkeys(row["method"] for row in mine):
            its = [row for row in mine if row["method"] == method]
            told = [(WORDS[other], mean(its, other)) for other in others]
            beside = ", ".join(f"{word} {value}" for word, value in told if value != "-")
            lines.append(f"| {about} | {method} | {title} | {mean(its, key)} | {beside} |")
            about = ""
    return "\n".join([*lines, "", f"Means over clients and {seeds} cuts; `python -m benchmarks.labels`. {age('labels')}"])


def series() -> str:
    """Pooled, recordings, rate."""
    found = kept.load("series")
    lines = [
        "| series | MiniROCKET, pooled ridge | our features, pooled ridge | AFL, four clients | PACE, four clients |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in found["pooled"]:
        cells = [row.get("minirocket"), row["ridge"], row.get("afl, 4 clients"), row["pace, 4 clients"]]
        lines.append(f"| {row['set']} | " + " | ".join("-" if cell is None else f"{100 * cell:.1f}" for cell in cells) + " |")
    watch = ["| a watch on ten people: method | accuracy %, mean over people | shared head |", "| --- | ---: | ---: |"]
    rows = found["recordings"]
    for key in dict.fromkeys((row["name"], row.get("whole")) for row in rows):
        mine = [row for row in rows if (row["name"], row.get("whole")) == key]
        said = {True: ", recordings left out whole", False: ", windows left out one by one", None: ""}[key[1]]
        shared = [row["shared"] for row in mine if row.get("shared") is not None]
        watch.append(
            f"| {key[0]}{said} | {100 * np.mean([row['accuracy'] for row in mine]):.1f} | "
            f"{f'{100 * np.mean(shared):.1f}' if shared else '-'} |"
        )
    rate = found["series_a_second"]
    quick = (
        f"{rate['series']:,} series of {rate['steps']} steps on one core: {rate['ours']:.0f} a second, MiniROCKET (aeon) "
        f"{rate['minirocket']:.0f} a second, {rate['ours'] / rate['minirocket']:.2f} times its rate."
    )
    return "\n".join([*lines, "", *watch, "", quick, "", f"`python -m benchmarks.series`. {age('series')}"])


def clean() -> str:
    """A row a table: log loss of each model, and how far PACE's personal heads are from pooled regressions."""
    found = kept.load("clean_tables")
    models = list(next(iter(found["tables"].values()))["figures"])
    lines = [f"| log loss | {' | '.join(models)} |", "| --- |" + " ---: |" * len(models)]
    for name, row in found["tables"].items():
        texts = []
        for model in models:
            away = row["margin"]["PACE personal"].get(model)
            said = f" ({away[0]:+.3f} ± {away[1]:.3f})" if away else ""
            texts.append(f"{row['figures'][model]['log_loss'][0]:.3f}{said}")
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join([*lines, "", age("clean_tables")])


def sensors() -> str:
    """A column a method: root mean square error with its standard error over seeds."""
    found = kept.load("sensors")
    errors = found["rmse"]
    lines = [f"| RMSE, {found['seeds']} seeds | {' | '.join(errors)} |", "| --- |" + " ---: |" * len(errors)]
    lines.append("| | " + " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in errors.values()) + " |")
    return "\n".join([*lines, "", age("sensors")])


def wide_texts() -> str:
    """A row a package: accuracy of each method, and what PACE costs."""
    rows = kept.load("wide_texts")["rows"]
    names = {"pace": "PACE", "pooled logistic regression": "pooled logistic regression", "afl": "AFL", "local": "Local"}
    lines = [f"| texts | columns | {' | '.join(names.values())} | PACE's seconds | MB a client |", "| --- |" + " ---: |" * 7]
    for package in dict.fromkeys(row["package"] for row in rows):
        mine = {row["method"]: row for row in rows if row["package"] == package}
        right, pace = [f"{100 * mine[name]['accuracy']:.1f} %" for name in names], mine["pace"]
        about = f"{package}, {pace['texts']:,} | {pace['columns']:,}"
        lines.append(f"| {about} | {' | '.join(right)} | {pace['seconds']:.0f} | {pace['bytes_a_client'] / 1e6:.0f} |")
    most = max(row.get("peak_bytes", 0) for row in rows) / 2**30
    says = f"Server and all clients in one process, data and vocabulary included, took at most {most:.1f} GiB of memory."
    return "\n".join([*lines, "", f"{says} {age('wide_texts')}"])
