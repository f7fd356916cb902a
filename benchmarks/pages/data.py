"""Every kind of cut, and tables cut by site: tables of docs/data.md."""

from typing import Any

import numpy as np
from scipy.stats import t

from benchmarks.kept import load
from benchmarks.provenance import age


def every_data() -> str:
    """A row a cell: PACE against the best of the others on test data, and its estimate against the truth; means over seeds."""
    rows = load("every_data")
    lines, leads, gaps = [], [], []
    for key in dict.fromkeys((row["data"], row["cut"], row["clients"]) for row in rows):
        cell = [row for row in rows if (row["data"], row["cut"], row["clients"]) == key]
        best = max(cell[0]["rivals"], key=lambda name: np.mean([row["rivals"][name]["mean"] for row in cell]))
        lead = [100 * (row["pace"] - row["rivals"][best]["mean"]) for row in cell]
        gap = [100 * (row["estimate"] - row["pace"]) for row in cell]
        leads.append(_mean_and_chance(lead))
        gaps.append(_mean_and_chance(gap))
        shares = [100 * np.mean([row["pace"] for row in cell]), 100 * np.mean([row["rivals"][best]["mean"] for row in cell])]
        lines.append(
            f"| {key[0]}, {key[1]} | {key[2]} | {len(cell)} | {shares[0]:.1f} | {best} {shares[1]:.1f} | {_with_error(lead)} | {_with_error(gap)} |"
        )
    level, close = sum(value >= -0.3 for value, _ in leads), sum(abs(value) <= 1.0 for value, _ in gaps)
    behind = sum(value + chance < -0.3 for value, chance in leads)
    biased = sum(abs(value) - chance > 1.0 for value, chance in gaps)
    worst, most = min(value for value, _ in leads), max(abs(value) for value, _ in gaps)
    says = f"PACE is level (within 0.3 points) or ahead in {level} of {len(lines)} cells, {np.mean([value for value, _ in leads]):+.2f} points on average and "
    says += f"{worst:+.2f} in the worst; its estimate is within a point of the truth in {close}, off by {most:.1f} at most. By more than chance explains (95 %) it is "
    says += f"more than 0.3 points behind in {behind} cells, and its estimate more than a point off in {biased} (of one seed that cannot be told, of two hardly)."
    head = [
        "| data, cut | clients | seeds | PACE | best of the others, on test | lead | estimate - truth |",
        "| --- |" + " ---: |" * 6,
    ]
    says = "\n\n".join([says, *_missing_rivals(rows), _by_kind(rows)])
    return "\n".join([says, "", *head, *lines, "", _shifted(rows), "", _texts(), "", age("every_data", "texts")])


def _missing_rivals(rows: list[dict[str, Any]]) -> list[str]:
    """What a reader must know where these figures are of before a rival was there."""
    if all("LocalClasses" in row["rivals"] for row in rows):
        return []
    return [
        "The others are AFL, each client alone, FedHiP and APFL. **LocalClasses was not among them yet**: where clients have few classes "
        "(`classes:2`, `shards:2`, `dirichlet:0.1`) it is a strong rival, and the leads there are too large."
    ]


def _by_kind(rows: list[dict[str, Any]]) -> str:
    """Leads where all clients have everybody's classes, and estimates where clients are small."""
    alike, small = ("iid", "dirichlet:100", "quantity:0.5"), ("CIFAR-100", 1000)
    leads, gaps = [], []
    for key in dict.fromkeys((row["data"], row["cut"], row["clients"]) for row in rows):
        cell = [row for row in rows if (row["data"], row["cut"], row["clients"]) == key]
        best = max(np.mean([row["rivals"][name]["mean"] for row in cell]) for name in cell[0]["rivals"])
        if key[1] in alike:
            leads.append(100 * (np.mean([row["pace"] for row in cell]) - best))
        if (key[0], key[2]) == small:
            gaps.append(100 * np.mean([row["estimate"] - row["pace"] for row in cell]))
    says = []
    if leads:
        cuts = ", ".join(f"`{cut}`" for cut in alike)
        says.append(f"Where all clients have everybody's classes ({cuts}) the lead is {min(leads):+.1f} to {max(leads):+.1f}.")
    if gaps:
        says.append(
            f"At a thousand clients with a dozen samples of a hundred classes estimates are {min(gaps):+.1f} to {max(gaps):+.1f} points "
            "from the truth."
        )
    return " ".join(says)


def _mean_and_chance(values: list[float]) -> tuple[float, float]:
    """The mean, and how far chance takes it in 95 of 100 cases (Student's t); of a single value that is not known."""
    n = len(values)
    return float(np.mean(values)), float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("inf")


def _shifted(rows: list[dict[str, Any]]) -> str:
    """Where clients are domains or people: the mean over clients and the mean of the worst tenth of them, for every method."""
    shifted = [row for row in rows if "each" in row["cut"]]
    if not shifted:
        return ""
    rivals = list(shifted[0]["rivals"])
    lines = [
        "Clients that are domains or people: mean over clients / worst tenth of them. The others have the values that are best on test by the mean.",
        "",
        "| | clients | PACE | " + " | ".join(rivals) + " |",
        "| --- |" + " ---: |" * (2 + len(rivals)),
    ]
    for key in dict.fromkeys((row["data"], row["cut"], row["clients"]) for row in shifted):
        cell = [row for row in shifted if (row["data"], row["cut"], row["clients"]) == key]
        pairs = [[(row["pace"], row["pace_worst"]) for row in cell]]
        pairs += [[(row["rivals"][name]["mean"], row["rivals"][name]["worst"]) for row in cell] for name in rivals]
        texts = ["{:.1f} / {:.1f}".format(*(100 * np.mean(pair, axis=0))) for pair in pairs]
        lines.append(f"| {key[0]}, {key[1]} | {key[2]} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _texts() -> str:
    """PACE and the others on texts, as an encoder's rows and as word counts."""
    found = load("texts")
    cuts = list(dict.fromkeys((row["inputs"], row["cut"]) for row in found["rows"]))
    lines = [
        f"Texts ({found['texts']} of them, {found['classes']} classes, {found['clients']} clients, {found['seeds']} seeds; accuracy % / log loss, `python -m benchmarks.texts`):",
        "",
        "| | " + " | ".join(f"{inputs}, {cut}" for inputs, cut in cuts) + " |",
        "| --- |" + " ---: |" * len(cuts),
    ]
    for method in dict.fromkeys(row["method"] for row in found["rows"]):
        mine = {(row["inputs"], row["cut"]): row for row in found["rows"] if row["method"] == method}
        lines.append(
            f"| {method} | "
            + " | ".join(
                f"{100 * mine[cut]['accuracy']:.1f} / {mine[cut]['log_loss']:.3f}" if cut in mine else "-" for cut in cuts
            )
            + " |"
        )
    return "\n".join(lines)


def site_tables() -> str:
    models = ["PACE", "boosted trees, pooled", "xRFM, pooled", "boosted trees, per site", "AFL", "Local"]
    return _by_table(load("site_tables"), models)


def more_tables() -> str:
    rows = load("more_tables")
    models = ["PACE", "boosted trees, pooled", "boosted trees, per site", "AFL", "Local"]
    named = [{**row, "table": f"{row['table']}: {row['rows']} rows, {row['sites']} sites by `{row['site']}`"} for row in rows]
    pairs = [
        {row["model"]: row.get("rmse", -row.get("auc", 0.0)) for row in rows if row["table"] == name}
        for name in dict.fromkeys(row["table"] for row in rows)
    ]
    ahead = [sum(pair["PACE"] <= pair[model] for pair in pairs) for model in models[1:]]
    text = ", ".join(f"{model} in {count}" for model, count in zip(models[1:], ahead, strict=True))
    says = f"By root mean square error or AUC PACE is level with or ahead of {text} of {len(pairs)}. {_far_from_trees(rows)}"
    return f"{says}\n\n{_by_table(named, models)}\n\n{age('more_tables')}"


def _far_from_trees(rows: list[dict[str, Any]]) -> str:
    """Where pooled trees are far ahead, and where PACE is; and by the other measure of classes."""
    trees, lost, won, losses, level = "boosted trees, pooled", [], [], 0, 0
    for name in dict.fromkeys(row["table"] for row in rows):
        ours, theirs = (next(row for row in rows if (row["table"], row["model"]) == (name, model)) for model in ("PACE", trees))
        key = "rmse" if "rmse" in ours else "log_loss"
        level += ours[key] <= theirs[key]
        losses += key == "log_loss"
        away = 1 - ours[key] / theirs[key]
        (won if away > 0.05 else lost if away < -0.05 else []).append(name)
    return (
        f"By root mean square error or log loss it is level with or ahead of {trees} in {level}. More than 5 % behind these: {', '.join(lost) or 'none'}; "
        f"more than 5 % ahead: {', '.join(won) or 'none'}."
    )


def _by_table(rows: list[dict[str, Any]], models: list[str]) -> str:
    """A row a table, a column a model; RMSE, or AUC / log loss."""
    lines = ["| RMSE, or AUC / log loss | " + " | ".join(models) + " | PACE's 90 % intervals cover |"]
    lines.append("| --- |" + " ---: |" * (len(models) + 1))
    for name in dict.fromkeys(row["table"] for row in rows):
        texts = []
        for model in models:
            cell = [row for row in rows if (row["table"], row["model"]) == (name, model)]
            keys = [key for key in ("rmse", "auc", "log_loss") if cell and key in cell[0]]
            texts.append(" / ".join(f"{np.mean([row[key] for row in cell]):.4g}" for key in keys) or "-")
        covered = [row["coverage"] for row in rows if row["table"] == name and "coverage" in row]
        lines.append(f"| {name} | " + " | ".join(texts) + f" | {f'{100 * np.mean(covered):.1f} %' if covered else '-'} |")
    return "\n".join(lines)


def _with_error(values: list[float]) -> str:
    """A mean with its standard error."""
    error = "" if len(values) < 2 else f" ({np.std(values, ddof=1) / np.sqrt(len(values)):.1f})"
    return f"{np.mean(values):+.1f}{error}"
