"""The page of a run, of a run over several seeds, and of several runs: made from result.json alone."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramfold.measures import main_measure
from gramfold.report import papers
from gramfold.report.clients import ESTIMATE, clients_of, gains, rounded
from gramfold.report.columns import Column, columns, per_client
from gramfold.report.runs import Named, averaged, run_cells, runs_columns, side_by_side
from gramfold.report.sheet import WIDE, Sheet, cells, table
from gramfold.report.text import setting

Method = Mapping[str, Any]
GAINED = "gained_by_joining"
MEANS = "What the columns mean"
PHASES = ("tuning", "features", "local", "aggregate", "personalize", "evaluate")


def render_page(result: Mapping[str, Any]) -> str:
    """The page for the content of a result.json."""
    if "comparison" in result:
        return _seeds_page(result)
    partition, methods = result["partition"], result["methods"]
    dropped = f"; {partition['dropped']} too small and dropped" if partition.get("dropped") else ""
    sheet = _opened(result, f"seed {result['seed']}{dropped}", methods)
    _excluded(sheet, result.get("sites", {}).get("excluded", {}))
    sheet.html(_summary(methods))
    if methods:
        _about_clients(sheet, methods, result.get("labels"))
        _about_methods(sheet, methods)
        sheet.heading("Settings")
        sheet.html(_settings(methods))
    return sheet.render()


def _seeds_page(result: Mapping[str, Any]) -> str:
    """The page of a run over several seeds; clients of different cuts are different clients."""
    comparison, pages = result["comparison"], result["seeds"]
    methods = averaged(pages)
    sheet = _opened(result, f"seeds {', '.join(str(seed) for seed in comparison['seeds'])}", methods)
    shown = papers.columns_of(comparison)
    rows = [("", cells(row)) for row in papers.cells(comparison)[1]]
    sheet.html(table([("method", ""), *_titles(shown)], rows, "sortable"))
    sheet.soft(papers.note(comparison))
    sheet.heading("Mean and confidence interval")
    note = "A dot is a seed, the upright line their mean, the level line its confidence interval."
    sheet.figure(
        "Over seeds", note, WIDE, kind="intervals", rows=[_interval(row, comparison["figure"]) for row in comparison["methods"]]
    )
    _about_clients(sheet, methods, _all_labels(pages))
    _about_methods(sheet, methods)
    sheet.heading("Settings")
    sheet.html(_settings(pages[0]["methods"]))
    for page in pages:
        sheet.html(f"<details><summary>Seed {escape(str(page['seed']))}</summary>{_summary(page['methods'])}</details>")
    return sheet.render()


def render_runs(runs: Sequence[Named]) -> str:
    """One page for several runs, given with their names: a row for each run and method."""
    shown = runs_columns(runs)
    together = side_by_side(runs)
    sheet = Sheet(f"{len(runs)} runs", main_measure([m for _, content in runs for m in _methods_of(content)]))
    sheet.html(table(_titles(shown), [("", cells(row)) for row in run_cells(runs)], "sortable runs"), _legend(shown))
    sheet.soft(
        "A run over several seeds is shown by its means, with the standard error after \N{PLUS-MINUS SIGN}. "
        "Runs on other data or other cuts stand beside each other; their differences are not those of methods alone."
    )
    if together is not None:
        methods, labels = together
        _about_clients(sheet, methods, labels)
        _about_methods(sheet, methods)
        return sheet.render()
    everything: list[Method] = []
    sheet.heading("Every client's final model")
    for name, content in runs:
        methods = averaged(content["seeds"]) if "comparison" in content else content["methods"]
        group = sheet.group(clients_of(methods))
        sheet.figure(name, _one_dot(methods), WIDE, kind="strips", group=group)
        everything += [{**method, "name": f"{name}: {method['name']}"} for method in methods]
    _about_methods(sheet, everything)
    return sheet.render()


# --- the parts of pages ---


def _methods_of(content: Mapping[str, Any]) -> Sequence[Method]:
    """Those of a run; of one over several seeds, those of its first."""
    found: Sequence[Method] = content["seeds"][0]["methods"] if "comparison" in content else content["methods"]
    return found


def _one_dot(methods: Sequence[Method]) -> str:
    title = main_measure(methods).title
    return f"A dot is a client: the {title} of its final model on its own test split. The upright line is the mean."


def _without(methods: Sequence[Method]) -> str:
    """A word about clients for which the measure that leads is not defined."""
    measure = main_measure(methods)
    lone = [c["name"] for c in methods[0]["clients"] if c["test"] and c.get(measure.key) is None]
    if not lone or measure.key not in ("auc", "average_precision"):
        return ""
    named = ", ".join(map(str, lone[:5])) + (", ..." if len(lone) > 5 else "")
    one = "client has" if len(lone) == 1 else "clients have"
    return f"{len(lone)} {one} test samples of one class alone, and so no {measure.title}: {named}."


def _opened(result: Mapping[str, Any], what: str, methods: Sequence[Method]) -> Sheet:
    partition = result["partition"]
    sheet = Sheet(str(result["data"]["name"]), main_measure(methods))
    how = "each with its own data" if partition["kind"] in ("natural", "given") else f"partitioned by {partition['kind']}"
    about = f"{partition['clients']} clients, {how}, {what}"
    sheet.soft(f"{about}. gramfold {result['gramfold']}.")
    return sheet


def _excluded(sheet: Sheet, sites: Mapping[str, str]) -> None:
    """The sites excluded from a run over a network, and why."""
    listed = "".join(f"<li><b>{escape(name)}</b>: {escape(reason)}</li>" for name, reason in sites.items())
    sheet.html(f"<p>Excluded:</p><ul>{listed}</ul>" if listed else "")


def _about_clients(sheet: Sheet, methods: Sequence[Method], labels: Mapping[str, Any] | None) -> None:
    """All figures in which a client is a mark: it can be highlighted in all of them at once."""
    clients = clients_of(methods, labels)
    group, figure = sheet.group(clients), clients["figure"]
    unit = main_measure(methods).title
    unit = unit if unit.isupper() else unit.capitalize()
    sheet.heading("Every client's final model")
    lone = _without(methods)
    if lone:
        sheet.soft(lone)
    hint = f"{_one_dot(methods)} Point at a client to see it in all figures, click to keep it."
    sheet.figure("All clients, all methods", hint, WIDE, kind="strips", group=group)
    worst = "Clients from the worst served to the best, each method in its own order."
    sheet.figure("Sorted", worst, kind="sorted", group=group)
    sheet.figure(f"{unit} against size", "Training samples, logarithmic.", kind="scatter", x="train", group=group)
    if clients["skew"] is not None:
        note = "Skew: how far a client's class shares are from everybody's (0: the same; total variation distance)."
        sheet.figure(f"{unit} against skew", note, kind="scatter", x="skew", group=group)
    if figure == "accuracy" and any(ESTIMATE in method["chosen"] for method in clients["methods"]):
        note = "What clients expected by leave-one-out, from training data alone, and what their test samples said."
        sheet.figure("Expected and measured", note, kind="scatter", x="estimate", group=group)
    _about_gains(sheet, methods, clients, group)
    _about_differences(sheet, clients, group)
    _about_labels(sheet, clients, group)
    if any(method["chosen"] for method in clients["methods"]):
        sheet.heading("What every client chose")
        note = "A dot is a client; training samples from left to right, logarithmic."
        sheet.figure("Chosen in closed form", note, WIDE, kind="chosen", group=group)
    sheet.html(f'<details class="all" data-group="{group}"><summary>All clients in a table</summary></details>')


def _about_gains(sheet: Sheet, methods: Sequence[Method], clients: Mapping[str, Any], group: int) -> None:
    header, rows = gains(methods)
    if len(header) < 2:
        return
    sheet.heading("Who gains, who loses")
    if clients["alone"] is not None:
        note = f"Each client's gain over {methods[clients['alone']]['name']}: what taking part is worth to it."
        sheet.figure("Against learning alone", note, kind="gains", against="alone", group=group)
    if any(method["shared"] is not None for method in clients["methods"]):
        note = "Each client's gain over the method's shared model: what its own model is worth to it."
        sheet.figure("Against the shared model", note, kind="gains", against="shared", group=group)
    sheet.html(table(header, [("", cells(row)) for row in rows], "sortable"))
    sheet.soft("Counted on each client's own test samples: a client with few of them moves in large steps.")


def _about_differences(sheet: Sheet, clients: Mapping[str, Any], group: int) -> None:
    """Who resembles whom, and what joining is worth to each by its training samples."""
    methods = clients["methods"]
    gained = any(GAINED in method["chosen"] for method in methods)
    grouped = any(method["groups"] for method in methods)
    if not gained and not grouped:
        return
    sheet.heading("How clients differ")
    if grouped:
        note = "Clients that resemble each other, and what each gained by joining. Above: how far apart the groups are."
        sheet.figure("Who is with whom", note, WIDE, kind="together", group=group)
    if gained:
        note = "By how much a client's left-out samples are likelier than in a model of its own alone: known before any test."
        sheet.figure("Gained by joining", note, WIDE, kind="joined", group=group)


def _about_labels(sheet: Sheet, clients: Mapping[str, Any], group: int) -> None:
    sheet.heading("Who has what")
    if clients["counts"] is not None:
        note = "The stronger the colour, the larger a class's part in a client's training samples; ordered by the largest class."
        sheet.figure("Classes of each client", note, WIDE, kind="labels", group=group)
    sheet.figure("Training samples of each client", "Largest first.", WIDE, kind="sizes", group=group)


def _about_methods(sheet: Sheet, methods: Sequence[Method]) -> None:
    """Figures in which a method is a line, a mark or a bar."""
    measure = main_measure(methods)
    figure, unit, form = measure.key, f"mean {measure.title}", "percent" if measure.percent else "number"
    curves = [(m, [entry for entry in m.get("history", []) if entry.get(f"mean_{figure}") is not None]) for m in methods]
    long = any(len(entries) > 1 for _, entries in curves)

    def series(x: Any, last: Any) -> list[dict[str, Any]]:
        """A method's rounds where they were evaluated, and at the end the final models."""
        made = []
        for method, entries in curves:
            points = [[x(entry, method), rounded(entry[f"mean_{figure}"], figure)] for entry in entries[:-1]]
            if method[f"mean_{figure}"] is not None:
                made.append(
                    {"name": method["name"], "points": [*points, [last(method), rounded(method[f"mean_{figure}"], figure)]]}
                )
        return made

    sheet.heading("What it costs")
    if long:
        sheet.soft("Curves are the personal models' mean after rounds that were evaluated; nothing is chosen by them.")
    sent = series(
        lambda e, m: (e["uplink_bytes"] + e["downlink_bytes"]) / max(len(m["clients"]), 1),
        lambda m: per_client(m, "uplink_bytes") + per_client(m, "downlink_bytes"),
    )
    common = {"kind": "lines", "y": unit, "yform": form}
    sheet.figure(
        "Against bytes",
        "Sent and received per client, logarithmic.",
        **common,
        x="bytes per client",
        xform="bytes",
        log=True,
        series=sent,
    )
    spent = series(lambda e, _: e["seconds"], lambda m: sum(m["seconds"].values()))
    sheet.figure(
        "Against time",
        "Wall-clock, evaluation of the final models included, logarithmic.",
        **common,
        x="seconds",
        xform="seconds",
        log=True,
        series=spent,
    )
    if long:
        rounds = series(lambda e, _: e["round"], lambda m: m["rounds"])
        sheet.figure(
            "Round by round", "A method of one round is a single mark.", **common, x="rounds", xform="number", series=rounds
        )
    phases = [phase for phase in PHASES if any(method["seconds"].get(phase) for method in methods)]
    bars = [{"name": m["name"], "parts": [rounded(float(m["seconds"].get(phase, 0.0))) for phase in phases]} for m in methods]
    sheet.figure("Time by phase", "", kind="bars", parts=phases, form="seconds", rows=bars)
    _about_probabilities(sheet, methods)


def _about_probabilities(sheet: Sheet, methods: Sequence[Method]) -> None:
    reliable = [_reliability(method) for method in methods if method.get("reliability")]
    if reliable:
        sheet.heading("Can the probabilities be believed?")
        positive = [_positive(method) for method in methods if method.get("positive")]
        if positive:
            named = next(method["positive"]["class"] for method in methods if method.get("positive"))
            note = (
                f"Of samples that are given some probability of {named}, the part that is {named}; on the diagonal both agree. "
                "The larger a mark, the more test samples. The axes end where the probabilities do."
            )
            sheet.figure(f"Reliability of P({named})", note, WIDE, kind="reliability", panels=positive, named=str(named))
        note = (
            "Of samples predicted with some confidence, the part that was right; on the diagonal both agree. "
            "The larger a mark, the more test samples; ECE is the mean distance from the diagonal."
        )
        sheet.figure("Reliability", note, WIDE, kind="reliability", panels=reliable)


def _reliability(method: Method) -> dict[str, Any]:
    bins = zip(*(method["reliability"][key] for key in ("count", "confidence", "right")), strict=True)
    shown = [[int(n), round(100 * sure / n, 1), round(100 * right / n, 1)] for n, sure, right in bins if n]
    return {"name": method["name"], "bins": shown, "error": rounded(method["calibration_error"])}


def _positive(method: Method) -> dict[str, Any]:
    bins = list(zip(*(method["positive"][key] for key in ("count", "confidence", "right")), strict=True))
    shown = [[int(n), float(f"{100 * sure / n:.3g}"), float(f"{100 * right / n:.3g}")] for n, sure, right in bins if n]
    gap = sum(abs(sure - right) for _, sure, right in bins) / max(sum(n for n, _, _ in bins), 1)
    return {"name": method["name"], "bins": shown, "error": rounded(gap)}


def _interval(row: Mapping[str, Any], figure: str) -> dict[str, Any]:
    ends = {"mean": row["mean"], "low": row["ci_low"], "high": row["ci_high"]}
    values = [rounded(value, figure) for value in row["values"]]
    return {"name": row["method"], "values": values, **{key: rounded(value, figure) for key, value in ends.items()}}


def _all_labels(pages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Label counts of all seeds' clients, under the names that `averaged` gives them."""
    if not all(page.get("labels") for page in pages):
        return None
    counts = {f"{name}, seed {page['seed']}": mine for page in pages for name, mine in page["labels"]["counts"].items()}
    return {"classes": pages[0]["labels"]["classes"], "counts": counts}


# --- tables ---


def _titles(shown: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.title, column.meaning) for column in shown]


def _legend(shown: Sequence[Column]) -> str:
    listed = "".join(f"<dt>{escape(c.title)}</dt><dd>{escape(c.meaning)}</dd>" for c in shown if c.meaning)
    return f'<details class="legend"><summary>{MEANS}</summary><dl>{listed}</dl></details>'


def _summary(methods: Sequence[Method]) -> str:
    shown = columns(methods)
    rank = next((column.best for column in shown if column.best), lambda method: None)
    best = max((one for method in methods if (one := rank(method)) is not None), default=None)
    rows = [
        ("best" if best is not None and rank(method) == best else "", cells([method["name"], *(c.cell(method) for c in shown)]))
        for method in methods
    ]
    return table([("method", ""), *_titles(shown)], rows, "sortable") + _legend(shown)


def _settings(methods: Sequence[Method]) -> str:
    rows = []
    for method in methods:
        given = ", ".join(f"{key} = {setting(value)}" for key, value in method["parameters"].items())
        chosen = ", ".join(f"{key} = {setting(value)}" for key, value in method.get("chosen", {}).items())
        rows.append(("", [*cells([method["name"]]), *(f'<td class="settings">{escape(text)}</td>' for text in (given, chosen))]))
    return table([("method", ""), ("given", "hyper-parameters"), ("chosen by the server", "in closed form")], rows, "settings")
