"""Fills the tables of the README and of other pages, between their marks, from the files that the benchmarks left.

python -m benchmarks.tables
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import provenance
from benchmarks.dask_fold import page as dask_page
from benchmarks.differ import page as differ_page
from benchmarks.kept import RESULTS, load
from benchmarks.pages import convolution, data, fair, gradient, kinds, learned, natural, privacy
from benchmarks.provenance import age
from benchmarks.scale import page as scale_page
from benchmarks.speed import page as speed_page
from gramfold.methods.pace.server import REGIMES
from gramfold.report.text import duration, size

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- made by benchmarks/tables.py -->", "<!-- end -->"


def cells(rows: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return list(dict.fromkeys((row["clients"], row["alpha"]) for row in rows))


def accuracy_table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, one column per cell."""
    pace = _line("PACE", _means(rows, "pace"), bold=True)
    return "\n".join([*_head(rows), _line("APFL, best on test", _means(rows, "apfl_best_on_test")), pace, *_expected(rows)])


def _head(rows: list[dict[str, Any]]) -> list[str]:
    names = [f"{clients} clients, {alpha}" for clients, alpha in cells(rows)]
    return ["| | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]


def _means(rows: list[dict[str, Any]], key: str, scale: float = 100) -> list[float]:
    """Over seeds, of each cell."""
    found = [[row[key] for row in rows if (row["clients"], row["alpha"]) == cell] for cell in cells(rows)]
    return [float(np.mean(values)) * scale for values in found]


def _line(title: str, values: list[float], digits: int = 1, bold: bool = False) -> str:
    texts = [f"**{value:.{digits}f}**" if bold else f"{value:.{digits}f}" for value in values]
    return f"| {title} | " + " | ".join(texts) + " |"


def _expected(rows: list[dict[str, Any]]) -> list[str]:
    """What PACE says of itself, and how well its probabilities hold."""
    estimate = _line("PACE's leave-one-out estimate, without test data", _means(rows, "pace_loo_estimate"))
    return [estimate, _line("PACE, expected calibration error", _means(rows, "pace_calibration_error", 1), 3)]


def gains(rows: list[dict[str, Any]]) -> str:
    by_cell = [
        100 * np.mean([row["pace"] - row["apfl_best_on_test"] for row in rows if (row["clients"], row["alpha"]) == cell])
        for cell in cells(rows)
    ]
    gaps = [100 * abs(row["pace"] - row["pace_loo_estimate"]) for row in rows]
    worst = max(row["pace_calibration_error"] for row in rows)
    return (
        f"Gain over APFL: {min(by_cell):.1f} points in the least of the six cells, {np.mean(by_cell):.1f} on average. The "
        f"estimate is off by {max(gaps):.2f} points in the worst of {len(rows)} runs; the worst calibration error is {worst:.3f}."
    )


def accuracy(name: str) -> str:
    """PACE against APFL on one feature map."""
    rows = [row for row in load("pace") if row["map"] == name]
    return f"{accuracy_table(rows)}\n\n{gains(rows)}"


def core() -> str:
    figures = load("core")
    lines = [
        "| | |",
        "| --- | ---: |",
        f"| APFL, 100 clients, against one scikit-learn RidgeClassifier fit on the pooled features, float64 | "
        f"{figures['apfl_over_ridge_float64']:.2f}x |",
        f"| against the same fit in float32 (half the arithmetic, and seven digits) | {figures['apfl_over_ridge_float32']:.2f}x |",
        f"| the AFL paper's recursion with its inverses, against our APFL | {figures['recursion_over_apfl']:.1f}x |",
        f"| the same, against our AFL | {figures['recursion_over_afl']:.1f}x |",
        f"| floating-point operations needed | {figures['gigaflop_needed']:.0f} GFLOP |",
        f"| APFL against the machine's matrix product | {figures['apfl_over_machine_limit']:.2f}x |",
        f"| peak memory above the loaded data, in float32 feature arrays | "
        f"{figures['memory_above_loaded_data_over_float32_features']:.2f} |",
        f"| uplink against AFL's released protocol (W, R, C in float64), mean over clients | "
        f"{figures['uplink_over_released_afl_mean']:.3f} |",
        f"| the same, largest client | {figures['uplink_over_released_afl_max']:.3f} |",
    ]
    return "\n".join([*lines, "", age("core")])


def cost(name: str) -> str:
    """What the server sends for leave-one-out, on one feature map: of the regimes that there are."""
    figures = load(f"pace_cost_{name}")
    lines = ["| regime | up / client | down / client | accuracy % | LOO estimate % |", "| --- | ---: | ---: | ---: | ---: |"]
    for regime, row in ((name, row) for name, row in figures["regimes"].items() if name in REGIMES):
        up, down = size(row["uplink_bytes_per_client"]), size(row["downlink_bytes_per_client"])
        lines.append(f"| {regime} | {up} | {down} | {100 * row['mean_accuracy']:.2f} | {100 * row['loo_estimate']:.2f} |")
    ratio = f"`{figures['features']}`: choosing took {figures['chosen_over_fixed']:.2f} times as long as fixed values."
    return "\n\n".join([ratio, "\n".join(lines), age(f"pace_cost_{name}")])


def gpu() -> str:
    figures = load("gpu")
    runs = {name: row for name, row in figures.items() if isinstance(row, dict) and "phases" in row}
    lines = ["| 100 clients, 50,000 x 768 synthetic features | seconds |", "| --- | ---: |"]
    lines += [f"| {name} | {row['seconds']:.2f} |" for name, row in runs.items()]
    lines.append(f"| the fold alone at m = 8961 | {figures['fold m=8961']['seconds']:.2f} |")
    return "\n".join([*lines, "", age("gpu")])


def flower() -> str:
    """Real processes on one machine: the bytes and the memory of large uploads."""
    lines = ["| m = 4096 | sites | up | down | server's peak | SuperLink's peak |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for method in ("afl", "pace"):
        for run in load(f"flower_size_{method}")["runs"]:
            peaks = [size(run[f"{who}_peak_mb"] * 1e6) for who in ("server_app", "superlink")]
            moved = [size(run[f"{way}_mb"] * 1e6) for way in ("uplink", "downlink")]
            lines.append(f"| {' | '.join([method.upper(), str(run['sites']), *moved, *peaks])} |")
    return "\n".join([*lines, "", age("flower_size_afl", "flower_size_pace")])


def front_door() -> str:
    """From photos to a head in another program: what it costs, and that nothing is lost."""
    found = load("front_door")
    twins, rate, photos, million = (found[part] for part in ("twins", "rate", "photos", "million"))
    return "\n".join(
        [
            "| | |",
            "| --- | --- |",
            f"| {twins['images']} CIFAR-100 images through `dinov2s`, beside features that were made elsewhere | cosine at least {twins['least_cosine']:.5f} |",
            f"| extraction beside a bare loop over the same model, {rate['images']} images, in turns | {rate['ratio']:.2f} of its rate ({rate['images_per_second']:.1f} and {rate['bare_loop']:.1f} images a second) |",
            f"| {photos['images']} photos of 20 classes: extract, then read from the cache | {duration(photos['seconds_extracting'])}, then {duration(photos['seconds_second_run'])} |",
            f"| PACE on {photos['clients']} clients: in process, and in onnxruntime from pixels by the exported files | {100 * photos['accuracy_in_process']:.1f} % and {100 * photos['accuracy_in_onnxruntime_from_pixels']:.1f} % right; probabilities differ by {photos['largest_difference_of_probabilities']:.0e} at most |",
            f"| a million samples of 384 numbers: extracted (by a trivial function), read again, AFL on 1,000 clients | {duration(million['seconds'])}, {duration(million['seconds_second_run'])}, {duration(million['seconds_afl_1000_clients'])}; {size(million['cache_bytes'])} on disk, {size(million['own_bytes_after_extraction'])} in memory |",
            "",
            f"On {found['cores']} cores shared with other work, one run. `python -m benchmarks.front_door`. {age('front_door')}",
        ]
    )


def deep() -> str:
    """DeepAFL against depth, beside PACE on other features."""
    found = load("deepafl")
    linear = next(row["shared_accuracy"] for row in found["others"] if row["name"] == "afl")
    lines = [
        "| | shared model % | over AFL | personal % | up / client | down / client |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [(f"DeepAFL, depth {row['depth']}", row) for row in found["deepafl"]]
    rows += [(f"{row['name'].upper()}, `{row['features']}`", row) for row in found["others"]]
    for title, row in rows:
        personal = "" if row.get("name") == "afl" else f"{100 * row['accuracy']:.1f}"
        lines.append(
            f"| {title} | {100 * row['shared_accuracy']:.1f} | {100 * (row['shared_accuracy'] - linear):+.1f} | {personal} "
            f"| {row['uplink_bytes'] / 1e6:.1f} MB | {row['downlink_bytes'] / 1e6:.1f} MB |"
        )
    return "\n".join([*lines, "", age("deepafl")])


def binary(again: bool = False) -> str:
    """Few classes on small tables: log loss and area under the curve, a column for each model. `again`: of ten other seeds."""
    found_in = load("binary")["again" if again else "settings"]
    settings, models = list(found_in), list(next(iter(found_in.values())))
    lines = [f"| | {' | '.join(models)} |", "| --- |" + " ---: |" * len(models)]
    for setting in settings:
        found = found_in[setting]
        pairs = [(found[model].get("log_loss"), found[model]["auc"]) for model in models]
        texts = [f"{'-' if loss is None else format(loss[0], '.3f')} / {auc[0]:.3f}" for loss, auc in pairs]
        lines.append(f"| {setting} | {' | '.join(texts)} |")
    return "\n".join([*lines, "", age("binary")])


def ablation(group: str) -> str:
    """Features, or digits that travel."""
    rows = load(f"ablation_{group}")
    alphas = list(dict.fromkeys(row["alpha"] for row in rows))
    more = ["shared model", *(["MB per client", "rounding"] if group == "precision" else [])]
    lines = [
        "| | " + " | ".join(f"{alpha}: test | LOO estimate | ECE" for alpha in alphas) + f" | {' | '.join(more)} |",
        "| --- |" + " ---: |" * (3 * len(alphas) + len(more)),
    ]
    for name in dict.fromkeys(row["name"] for row in rows):
        mine = [row for row in rows if row["name"] == name]
        texts = [f"{100 * row['pace']:.1f} | {100 * row['estimate']:.1f} | {row['calibration_error']:.3f}" for row in mine]
        texts.append(f"{100 * mine[0]['shared']:.1f}")
        if group == "precision":
            texts += [f"{mine[0]['bytes'] / 1e6:.1f}", f"{mine[0]['rounding']:.1g}"]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join([*lines, "", age(f"ablation_{group}")])


def ablation_parts() -> str:
    return f"{_parts()}\n\n{age('ablation_parts')}"


def _parts() -> str:
    """A row for each cell of data, a column for each change."""
    rows = load("ablation_parts")
    cells, names = (
        [*dict.fromkeys(row[key] if key == "name" else (row["data"], row["cut"]) for row in rows)] for key in ("", "name")
    )
    lines = ["| | " + " | ".join(map(", ".join, cells)) + " |", "| --- |" + " ---: |" * len(cells)]
    for name in names:
        told = []
        for cell in cells:
            mine, whole = (
                [row for row in rows if (row["data"], row["cut"], row["name"]) == (*cell, each)] for each in (name, names[0])
            )
            if not mine:
                told.append("-")
                continue
            figure = float(np.mean([row["figure"] for row in mine]))
            away = [one["figure"] - other["figure"] for one, other in zip(mine, whole, strict=True)]
            error = f" ± {np.std(away, ddof=1) / len(away) ** 0.5:.2f}" if len(away) > 1 else ""
            lost = float(np.mean([row["log_loss"] for row in mine]))
            said = f"{figure:.2f}" if name == names[0] else f"{np.mean(away):+.2f}{error}"
            told.append(said + (f" / {lost:.3f}" if lost else ""))
        lines.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join(lines)


PAGES: dict[str, tuple[Callable[[], str], ...]] = {
    "README.md": (fair.front, natural.front),
    "docs/results.md": (
        partial(fair.section, "shares"), partial(fair.section, "fresh"), fair.edges, partial(accuracy, "linear"),
        lambda: f"{accuracy('linear + 4096 Fourier')}\n\n{age('pace')}", core, partial(cost, "bias_linear"),
        partial(cost, "bias_linear_fourier4096"), gpu, deep, flower,
    ),
    "docs/gradient_results.md": (
        partial(gradient.gradient, "dirichlet:0.1"), partial(gradient.gradient, "dirichlet:1.0"), gradient.gradient_images,
        gradient.pretrained,
    ),
    "docs/convolution_results.md": (
        partial(convolution.convolution, "cifar100_20_classes"), partial(convolution.convolution, "digits"),
        convolution.filters, convolution.layers,
    ),
    "docs/ablation.md": (ablation_parts, partial(ablation, "features"), partial(ablation, "precision")),
    "docs/gradient.md": (gradient.gradient_gpu,),
    "docs/pace.md": (lambda: f"{binary()}\n\nTen other seeds (100 to 109), of some of them:\n\n{binary(again=True)}",),
    "docs/guide/choosing.md": (fair.choosing,),
    "docs/guide/targets.md": (kinds.targets,),
    "docs/guide/series.md": (kinds.series,),
    "docs/guide/text.md": (kinds.wide_texts,),
    "docs/guide/small.md": (kinds.small_client,),
    "docs/privacy.md": (privacy.privacy,),
    "docs/guide/raw.md": (front_door,),
    "docs/data.md": (
        data.every_data, data.more_tables, kinds.clean, kinds.sensors, natural.natural, natural.heart, natural.untouched,
        natural.noise,
    ),
    "docs/learned.md": (learned.learned,),
    "docs/provenance.md": (provenance.page,),
}  # fmt: skip
"""What stands between the marks of each page, one after another."""


def main() -> None:
    for page, makers in PAGES.items():
        _put(ROOT / page, *makers)
    differ_page(load("differ"))
    if (RESULTS / "dask_fold.json").exists():
        dask_page(load("dask_fold"))
    if (RESULTS / "scale.json").exists():
        scale_page(load("scale"))
    speed_page()


def _put(page: Path, *makers: Callable[[], str]) -> None:
    """Fill what stands between each two marks of a page; what no file tells yet says so."""
    before, *parts = page.read_text().split(BEGIN)
    made = [f"{BEGIN}\n{_made(maker)}\n{END}{part.split(END)[1]}" for maker, part in zip(makers, parts, strict=True)]
    page.write_text(before + linked("".join(made), page))


def linked(text: str, page: Path) -> str:
    """With links to the page of provenance from where this page is."""
    return text.replace(f"]({provenance.PAGE})", f"]({os.path.relpath(ROOT / 'docs' / provenance.PAGE, page.parent)})")


def _made(maker: Callable[[], str]) -> str:
    try:
        return maker()
    except FileNotFoundError as error:
        return f"Not measured yet: there is no `{Path(error.filename).name}`."


if __name__ == "__main__":
    main()
