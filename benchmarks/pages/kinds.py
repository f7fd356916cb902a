"""Kinds of data: what pages say of wide texts, series, plain tables, machines, other targets than a class or a value, small clients."""

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
        f"{rate['minirocket']:.0f} a second, {rate['ours'] / rate['minirocket']:.2f} times its rate. That is {rate['features']['ours']} "
        f"features for each series; MiniROCKET makes {rate['features']['minirocket']:,}."
    )
    behind = {row["set"]: row["afl, 4 clients"] - row["pace, 4 clients"] for row in found["pooled"]}
    behind = {name: points for name, points in behind.items() if points > 0.05}
    if behind:
        listed = " and ".join(f"{100 * points:.0f} points on {name}" for name, points in behind.items())
        quick = f"Where a client has only a few series of each class, AFL can be the better choice: PACE is behind it by {listed}.\n\n{quick}"
    return "\n".join([*lines, "", *watch, "", quick, "", f"`python -m benchmarks.series`. {age('series')}"])


def clean() -> str:
    """A row a table: log loss of each model, and how far PACE's heads are above pooled regression that is tuned."""
    tuned, plain = "pooled LR, C by CV", "pooled LR, C = 1"
    lines = [
        "| log loss | PACE, personal / shared | straight, personal / shared | pooled LR, C = 1 | pooled LR, tuned | personal less tuned | "
        "shared less tuned |",
        "| --- |" + " ---: |" * 6,
    ]
    for name, found in kept.load("clean_tables")["tables"].items():
        loss = {model: format(each["log_loss"][0], ".3f") for model, each in found["figures"].items()}
        pairs = [f"{loss[f'{model} personal']} / {loss[f'{model} shared']}" for model in ("PACE", "straight")]
        apart = [found["margin"][f"PACE {kind}"][tuned] for kind in ("personal", "shared")]
        differences = [f"{mean:+.3f} ± {error:.3f}" for mean, error in apart]
        lines.append(f"| {' | '.join([name, *pairs, loss[plain], loss[tuned], *differences])} |")
    return "\n".join([*lines, "", age("clean_tables")])


def sensors() -> str:
    """A column a method: root mean square error with its standard error over seeds."""
    found = kept.load("sensors")
    errors = found["rmse"]
    lines = [f"| RMSE, {found['seeds']} seeds | {' | '.join(errors)} |", "| --- |" + " ---: |" * len(errors)]
    lines.append("| | " + " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in errors.values()) + " |")
    return "\n".join([*lines, "", age("sensors")])


def wide_texts() -> str:
    """A row for each package: accuracies, columns, bytes."""
    found = kept.load("wide_texts")
    lines = [
        "| texts | columns | PACE | pooled logistic regression | AFL | Local | MB a client |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for package in dict.fromkeys(row["package"] for row in found["rows"]):
        mine = {row["method"]: row for row in found["rows"] if row["package"] == package}
        pace = mine["pace"]
        shown = (f"{100 * mine[name]['accuracy']:.1f} %" for name in ("pace", "pooled logistic regression", "afl", "local"))
        lines.append(
            f"| {package}, {pace['texts']:,} | {pace['columns']:,} | {' | '.join(shown)} | {pace['bytes_a_client'] / 1e6:.0f} |"
        )
    most = max(row["peak_bytes"] for row in found["rows"] if "peak_bytes" in row)
    peak = f"The server and all {found['clients']} clients in one process, data and vocabulary included: at most {most / 2**30:.1f} GiB."
    return "\n".join([*lines, "", f"{peak} `python -m benchmarks.wide_texts`. {age('wide_texts')}"])


def small_client() -> str:
    """A row for each size of client; what starting takes; how fast the core is."""
    found = kept.load("small_client")

    def took(step: dict[str, float]) -> str:
        return f"{step['seconds']:.2f}"

    def both(row: dict[str, Any], step: str) -> str:
        return f"{took(row['steps']['here'][step])} ({took(row['steps']['old'][step])})"

    lines = [
        "| a client's samples | map | what it sends: s | its head: s | 1,000 predictions by NumPy alone: s | memory: MB | by NumPy alone: MB | sent, received, head: MB |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in found["rows"]:
        here = row["steps"]["here"]
        peak = max(here[step]["peak_bytes"] for step in ("fold", "personal")) / 1e6
        sizes = ", ".join(f"{row['bytes'][name] / 1e6:.2g}" for name in ("sum", "model", "numpy"))
        lines.append(
            f"| {row['what']}: {row['samples']:,} x {row['columns']}, {row['classes']} classes | `{row['features']}` | "
            f"{both(row, 'fold')} | {both(row, 'personal')} | {both(row, 'predict')} | {peak:.0f} | "
            f"{here['predict']['peak_bytes'] / 1e6:.0f} | {sizes} |"
        )
    idle = found["idle"]
    start = (
        f"Starting alone takes {took(idle['here']['gramfold'])} s and {idle['here']['gramfold']['peak_bytes'] / 1e6:.0f} MB for the "
        f"command, {took(idle['here']['numpy'])} s and {idle['here']['numpy']['peak_bytes'] / 1e6:.0f} MB for Python with NumPy; "
        f"it is in all figures above. Seconds are the least of {found['turns']} turns."
    )
    cores = (
        f"One core, which multiplies matrices at {idle['here']['flops'] / 1e9:.0f} GFLOP/s; in brackets the same core held to the "
        f"instructions of twenty years ago, at {idle['old']['flops'] / 1e9:.0f}."
    )
    return "\n".join([*lines, "", f"{cores} {start} `python -m benchmarks.small_client`. {age('small_client')}"])
