"""The report page: one self-contained HTML file made from result.json alone."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramfold.report import papers
from gramfold.report.charts import client_strips, intervals, phase_bars, round_curves, size_bars
from gramfold.report.columns import columns
from gramfold.report.runs import Named, averaged, run_cells, runs_columns
from gramfold.report.text import number, percent, setting

MAX_CLIENTS = 1000

STYLE = """
:root { --ink: #1d2430; --soft: #5d6878; --line: #dfe4ea; --paper: #fff; --shade: #f5f7f9; --main: #2563a8; --mark: #c2410c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa5b5; --line: #333c49; --paper: #14181f; --shade: #1b212a; --main: #6ea8e0; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 1180px; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 8px; }
p { margin: 6px 0; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 7px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); }
th:first-child, td:first-child { text-align: left; }
tr.best td { background: var(--shade); font-weight: 650; }
td.settings { text-align: left; white-space: normal; color: var(--soft); }
svg { width: 100%; max-width: 900px; height: auto; display: block; }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink); }
svg .axis { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); }
svg .dot { fill: var(--main); fill-opacity: .45; }
svg .mean, svg .interval { stroke: var(--mark); stroke-width: 2.5; }
svg .value { font-weight: 600; }
svg .size { fill: var(--main); fill-opacity: .7; }
svg .phase0 { fill: #8ab4d8; } svg .phase1 { fill: #2563a8; } svg .phase2 { fill: #7c5cbf; }
svg .phase3 { fill: #c2410c; } svg .phase4 { fill: #9aa5b5; }
details { margin-top: 32px; }
summary { cursor: pointer; font-weight: 600; }
"""


def render_page(result: Mapping[str, Any]) -> str:
    """The page for the content of a result.json."""
    if "comparison" in result:
        return _comparison_page(result)
    data, partition, methods = result["data"], result["partition"], result["methods"]
    classes = all("mean_accuracy" in method for method in methods)
    what = f"{partition['clients']} clients, partitioned by {partition['kind']}, seed {result['seed']}"
    dropped = f"; {partition['dropped']} too small and dropped" if partition.get("dropped") else ""
    parts = [
        f"<h1>{escape(str(data['name']))}</h1>",
        f'<p class="soft">{escape(what + dropped)}. gramfold {escape(result["gramfold"])}.</p>',
        *_excluded(result.get("sites", {}).get("excluded", {})),
        _summary(methods),
    ]
    if classes and methods:
        parts.append("<h2>Every client's final model</h2>")
        parts.append('<p class="soft">A dot is a client: its accuracy on its own test split. The line is the mean.</p>')
        parts.append(client_strips(methods))
    if curves := round_curves(methods):
        parts.append("<h2>Round by round</h2>")
        parts.append('<p class="soft">Mean accuracy of the personal models after each round; not used to choose anything.</p>')
        parts.append(curves)
    if methods:
        parts += ["<h2>Clients</h2>", size_bars(methods[0]["clients"])]
        parts += ["<h2>Time</h2>", phase_bars(methods)]
        parts += ["<h2>Settings</h2>", _settings(methods), _clients(methods, classes)]
    return _page(str(data["name"]), parts)


def _page(title: str, parts: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>gramfold: {escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _comparison_page(result: Mapping[str, Any]) -> str:
    """The page of a run over several seeds."""
    comparison, pages, data = result["comparison"], result["seeds"], result["data"]
    seeds = ", ".join(str(seed) for seed in comparison["seeds"])
    what = f"{result['partition']['clients']} clients, partitioned by {result['partition']['kind']}, seeds {seeds}"
    shown = papers.columns_of(comparison)
    rows = [("", _cells(row)) for row in papers.cells(comparison)[1]]
    methods = averaged(pages)
    parts = [
        f"<h1>{escape(str(data['name']))}</h1>",
        f'<p class="soft">{escape(what)}. gramfold {escape(result["gramfold"])}.</p>',
        _table([("method", ""), *((column.title, column.meaning) for column in shown)], rows),
        f'<p class="soft">{escape(papers.note(comparison))}</p>',
        "<h2>Mean and confidence interval</h2>",
        '<p class="soft">A dot is a seed, the upright line their mean, the level line its confidence interval.</p>',
        intervals(comparison["methods"], comparison["figure"]),
        "<h2>Every client's final model, all seeds</h2>",
        client_strips(methods),
        "<h2>Time</h2>",
        phase_bars(methods),
        "<h2>Settings</h2>",
        _settings(pages[0]["methods"]),
    ]
    for page in pages:
        parts.append(f"<details><summary>Seed {page['seed']}</summary>{_summary(page['methods'])}</details>")
    return _page(str(data["name"]), parts)


def render_runs(runs: Sequence[Named]) -> str:
    """One page for several runs, given with their names: a row for each run and method."""
    shown, rows = runs_columns(runs), run_cells(runs)
    legend = "; ".join(f"<b>{escape(column.title)}</b>: {escape(column.meaning)}" for column in shown if column.meaning)
    header = [(column.title, column.meaning) for column in shown]
    parts = [
        f"<h1>{len(runs)} runs</h1>",
        _table(header, [("", _cells(row)) for row in rows]),
        f'<p class="soft">{legend}.</p>',
        '<p class="soft">A run over several seeds is shown by its means, with the standard error after \N{PLUS-MINUS SIGN}. '
        "Runs on other data or other cuts stand beside each other; their differences are not those of methods alone.</p>",
        "<h2>Every client's final model</h2>",
    ]
    for name, content in runs:
        methods = averaged(content["seeds"]) if "comparison" in content else content["methods"]
        parts += [f"<h3>{escape(name)}</h3>", client_strips(methods)]
    return _page(f"{len(runs)} runs", parts)


def _excluded(sites: Mapping[str, str]) -> list[str]:
    """The sites excluded from a run over a network, and why."""
    listed = "".join(f"<li><b>{escape(name)}</b>: {escape(reason)}</li>" for name, reason in sites.items())
    return [f"<p>Excluded:</p><ul>{listed}</ul>"] if listed else []


def _table(header: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Rows are (css class, cells); cells are already safe HTML."""
    head = "".join(f'<th title="{escape(meaning)}">{escape(title)}</th>' for title, meaning in header)
    body = "".join(f'<tr class="{css}">{"".join(cells)}</tr>' for css, cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(texts: Sequence[str]) -> list[str]:
    return [f"<td>{escape(text)}</td>" for text in texts]


def _summary(methods: Sequence[Mapping[str, Any]]) -> str:
    shown = columns(methods)
    best = max((method.get("mean_accuracy") or 0.0 for method in methods), default=0.0)
    rows = [
        ("best" if method.get("mean_accuracy") == best else "", _cells([method["name"], *(c.cell(method) for c in shown)]))
        for method in methods
    ]
    legend = "; ".join(f"<b>{escape(c.title)}</b>: {escape(c.meaning)}" for c in shown)
    return _table([("method", ""), *((c.title, c.meaning) for c in shown)], rows) + f'<p class="soft">{legend}.</p>'


def _settings(methods: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for method in methods:
        given = ", ".join(f"{key} = {setting(value)}" for key, value in method["parameters"].items())
        chosen = ", ".join(f"{key} = {setting(value)}" for key, value in method.get("chosen", {}).items())
        rows.append(("", [*_cells([method["name"]]), *(f'<td class="settings">{escape(text)}</td>' for text in (given, chosen))]))
    return _table([("method", ""), ("given", "hyper-parameters"), ("chosen by the server", "in closed form")], rows)


def _clients(methods: Sequence[Mapping[str, Any]], classes: bool) -> str:
    figure, show = ("accuracy", percent) if classes else ("rmse", number)
    clients = methods[0]["clients"]
    rows = [
        (
            "",
            _cells(
                [client["name"], str(client["train"]), str(client["test"]), *(show(m["clients"][i][figure]) for m in methods)]
            ),
        )
        for i, client in enumerate(clients[:MAX_CLIENTS])
    ]
    header = [("client", ""), ("train", "training samples"), ("test", "test samples"), *((m["name"], figure) for m in methods)]
    more = f'<p class="soft">The first {MAX_CLIENTS} of {len(clients)}.</p>' if len(clients) > MAX_CLIENTS else ""
    return f"<details><summary>All clients</summary>{_table(header, rows)}{more}</details>"
