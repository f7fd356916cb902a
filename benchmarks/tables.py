"""Fills the tables of the README and of other pages, between their marks, from the files that the benchmarks left.

python -m benchmarks.tables
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from benchmarks import provenance
from benchmarks.cells import markdown
from benchmarks.dask_fold import page as dask_page
from benchmarks.differ import page as differ_page
from benchmarks.kept import RESULTS, load
from benchmarks.pages import fair, kinds, natural
from benchmarks.provenance import age
from benchmarks.scale import page as scale_page
from gramfold.bench import open_bench
from gramfold.bench.published import HEART_PFL_PROTOCOL
from gramfold.methods.pace.server import REGIMES
from gramfold.methods.pace.sizes import bytes_of
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


def gradient(partition: str) -> str:
    """The gradient methods beside the analytic ones on CIFAR-100 features."""
    chosen = [row for row in load("gradient_table") if row["cell"].startswith(f"{partition}/")]
    shared = {row["name"]: row["global_accuracy"] for row in chosen}
    gap = 100 * (shared["fedavg"] - shared["afl"])
    return f"{_ranked(chosen)}\n\nFedAvg's shared model is {gap:+.1f} points from AFL's.\n\n{age('gradient_table')}"


def gradient_images() -> str:
    return f"{_ranked(load('gradient_images'))}\n\n{age('gradient_images')}"


def _pretrained() -> str:
    """What `gramfold bench heart-pfl` found, in words; its tables are in papers.md."""
    found = load("bench_heart-pfl")
    cells, settings, seeds = found["cells"], found["options"]["settings"], found["seeds"]
    protocol, paper = open_bench("heart-pfl").settings, HEART_PFL_PROTOCOL

    def seen(name: str) -> dict[int, float]:
        return {seed: 100 * cells[f"{name}/seed {seed}"]["mean_accuracy"] for seed in seeds if f"{name}/seed {seed}" in cells}

    def ahead(name: str, other: dict[int, float]) -> str:
        return ahead_of(seen(name), other)

    def ahead_of(mine: dict[int, float], other: dict[int, float]) -> str:
        gaps = [own - other[seed] for seed, own in mine.items() if seed in other]
        return f"{sum(gaps) / len(gaps):+.1f} points ({', '.join(f'{gap:+.1f}' for gap in gaps)})"

    whole, plain, aligned, distilled = "heart-pfl", "heart-pfl -HDA -AKT", "heart-pfl -AKT", "heart-pfl -HDA"
    sizes = [100 * cells[f"{aligned}/seed {seed}"]["hda_gradient"] for seed in seen(aligned)]
    kept = {seed: cells[f"{whole}/seed {seed}"]["akt_kept"] for seed in seen(whole)}
    unkept = {seed: seen(whole)[seed] - seen(aligned)[seed] for seed, rounds in kept.items() if not rounds}
    pace = {seed: 100 * cells[f"frozen/seed {seed}"]["pace"]["mean_accuracy"] for seed in seeds if f"frozen/seed {seed}" in cells}
    against = "; ".join(f"{ahead(whole, seen(name))} from {name}" for name in settings["rivals"] if seen(name))
    chance = ", ".join(f"{gap:+.1f} points" for gap in unkept.values())
    return (
        f"`gramfold bench heart-pfl` with `{settings['model']}`, trained on the other 80 classes, its convolutions frozen, the same adapters, normalisation and head trained by "
        f"every method; tables in [papers.md](papers.md). {settings['rounds']} rounds of {settings['epochs']} epochs, AKT in the first {settings['akt_rounds']}, {settings['akt_steps']} steps of "
        f"{settings['akt_batch']} images, where the paper has {paper['rounds']} rounds of {paper['epochs']} epochs, AKT in {paper['akt_rounds']} of them and {paper['akt_steps']} steps of {paper['akt_batch']} images (`gramfold bench heart-pfl` on its own runs {protocol['rounds']} rounds and {protocol['akt_batch']} images): what the machine time allowed, and too little to say anything of the paper. Not measured: that protocol, ResNet-18, some "
        "of the other settings of HDA and AKT. GPU cells: PyTorch 2.11.\n\n"
        f"The method is {against} (by seed in brackets; where fewer seeds are given, the rival has no more; FedALA and FedSelect have FedAvg-FT's learning rate, not one of their own). So it is ahead of clients on their own, and level with FedAvg that is fine-tuned at the end. "
        f"Over a personal model pulled towards a shared one, which it is without HDA and AKT, HDA makes {ahead(aligned, seen(plain))}, AKT {ahead(distilled, seen(plain))}, both "
        f"{ahead(whole, seen(plain))}: nothing that stands out from chance. The reasons are in the history. HDA's gradient is {min(sizes):.1f} to {max(sizes):.1f} % of cross-entropy's at the published weight. "
        f"AKT's distilled model validated better than the plain average in {', '.join(map(str, kept.values()))} of {settings['akt_rounds']} rounds, seed by seed, so that the average is what was nearly always kept. "
        f"How large chance is, two runs of one method say: where AKT kept nothing, the run with it is the run without it but for the order of a sum, and twenty rounds of SGD turn that into {chance}.\n\n"
        f"PACE on the frozen features of the same network, one round and no training, is {ahead_of(pace, seen(whole))} from the whole method. "
        "In these runs, then, training the small layers in many rounds added no more to the pretrained network than a closed form did in one. Cells ran ten to fourteen at a time, so that seconds are no more than an order."
    )


def gradient_gpu() -> str:
    """How fast a round of HEART-PFL is on a GPU."""
    found = load("gradient_gpu")
    title = f"{found['device']}, `{found['model']}`, {found['clients']} clients, batches of {found['batch_size']}"
    rows = [[f"one run, rounds of {row['epochs']} epochs", row["images_per_second"]] for row in found["rounds"]]
    rows += [
        [f"{row['runs']} runs at once, {row['epochs']} epochs, in all", row["images_per_second"]] for row in found["at_once"]
    ]
    lines = [f"| {title} | images a second |", "| --- | ---: |", *(f"| {name} | {rate:,.0f} |" for name, rate in rows)]
    return (
        "\n".join(lines)
        + "\n\nBoth models of a client count (`benchmarks/gradient_gpu.py`); each round records its steps anew, which short ones feel. Figures from the log of an earlier form of that script."
    )


OLDER = (
    "**Older than the present networks**: measured when labels had one code for each class, not one for each class and place, and before networks became quicker. `five` and `lenet` are more "
    "accurate now: [papers.md](papers.md#measured) has them, and so has *Which filters* below."
)


def convolution(name: str) -> str:
    """Networks without gradients on one set of images."""
    figures = load(f"convolution_{name}")
    rows, older = figures["runs"], [] if figures.get("codes") == "place" else [OLDER]
    parts = [*older, _ranked(rows), *_against_fedavg(rows, figures["device"]), age(f"convolution_{name}")]
    return "\n\n".join(parts)


def filters() -> str:
    """Where solved filters come from, on validation images."""
    runs = load("filters")["runs"]
    columns = list(dict.fromkeys((run["data"], run["images"]) for run in runs))
    found = {(run["way"], run["data"], run["images"]): f"{100 * run['accuracy']:.1f}" for run in runs}
    rows = [[way, *(found.get((way, *column), "") for column in columns)] for way in dict.fromkeys(run["way"] for run in runs)]
    head = ["", *(f"{data}, {images:,} images" for data, images in columns)]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * len(columns)], *sorted(rows))]
    return "\n".join([*lines, "", age("filters")])


def layers() -> str:
    """What `five` is made of, on validation images."""
    runs = load("layers")["runs"]
    columns, networks = (list(dict.fromkeys(run[key] for run in runs)) for key in ("data", "network"))
    figures = {(run["network"], run["data"]): f"{100 * run['accuracy']:.1f}" for run in runs}
    rows = [[name, *(figures.get((name, data), "") for data in columns)] for name in networks]
    lines = [f"| {' | '.join(row)} |" for row in (["", *columns], ["---", *["---:"] * len(columns)], *rows)]
    return "\n".join([*lines, "", age("layers")])


def _against_fedavg(rows: list[dict[str, Any]], device: str) -> list[str]:
    """Each network against FedAvg's curve: at equal seconds, and to equal accuracy."""
    curve: list[tuple[float, float]] = []
    for row in rows:
        if row["name"] == "fedavg":
            evaluated = [entry for entry in row["history"] if entry.get("mean_accuracy") is not None]
            scale = _trained(row, device) / evaluated[-1]["seconds"]
            curve = [(entry["seconds"] * scale, entry["mean_accuracy"]) for entry in evaluated]
    if not curve:
        return []
    lines = ["| | accuracy % | seconds | FedAvg then % | FedAvg reaches it |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        if row["name"] != "fedavg":
            seconds, wanted = _trained(row, device), f"not in {curve[-1][0]:.0f} s"
            so_far = [accuracy for when, accuracy in curve if when <= seconds]
            reached = [when for when, accuracy in curve if accuracy >= row["mean_accuracy"]]
            if reached:
                wanted = f"in {reached[0]:.0f} s: {100 * (1 - seconds / reached[0]):.0f} % saved"
            then = f"{100 * max(so_far):.1f}" if so_far else "not yet evaluated"
            lines.append(
                f"| {row['cell'].partition('/')[2]} | {100 * row['mean_accuracy']:.1f} | {seconds:.1f} | {then} | {wanted} |"
            )
    clock = "processor seconds" if device == "cpu" else "wall-clock seconds"
    words = f"Beside FedAvg's CNN (`cnn:32`, 3 epochs a round), by its best accuracy so far on the same test images; {clock}, without evaluation:"
    return [words, "\n".join(lines)]


def _trained(row: dict[str, Any], device: str) -> float:
    """Seconds without evaluation: of the processor, or on an accelerator of the clock."""
    trained = sum(seconds for phase, seconds in row["seconds"].items() if phase not in ("evaluate", "tuning"))
    return float(trained / sum(row["seconds"].values()) * row["cpu_seconds"] if device == "cpu" else trained)


def binary(settings: list[str] | None = None, models: list[str] | None = None, again: bool = False) -> str:
    """Few classes on small tables: log loss and area under the curve, a column for each model. `again`: of ten other seeds."""
    found_in = load("binary")["again" if again else "settings"]
    settings, models = settings or list(found_in), models or list(next(iter(found_in.values())))
    lines = [f"| | {' | '.join(models)} |", "| --- |" + " ---: |" * len(models)]
    for setting in settings:
        found = found_in[setting]
        pairs = [(found[model].get("log_loss"), found[model]["auc"]) for model in models]
        texts = [f"{'-' if loss is None else format(loss[0], '.3f')} / {auc[0]:.3f}" for loss, auc in pairs]
        lines.append(f"| {setting} | {' | '.join(texts)} |")
    return "\n".join([*lines, "", age("binary")])


def privacy() -> str:
    """The attack, what the secure sum costs, and what noise does."""
    attack, secure, noise = load("attack"), load("secure"), load("dp")
    plain = attack["modes"][0]
    lines = [
        "| what the server sees | of samples | rebuilt | median error | single sample of a class: error | seconds |",
        "| --- |" + " ---: |" * 5,
    ]
    for row in attack["modes"]:
        errors = [f"{row[key]:.0e}" if row[key] < 1e-3 else f"{row[key]:.2f}" for key in ("median_error", "single_sample_error")]
        lines.append(
            f"| {row['mode']} | {row['samples']} | {row['with_label']} of {attack['samples']} | {errors[0]} | {errors[1]} | {row['seconds']:.0f} |"
        )
    parts = [
        f"### The attack\n\nA client of digits with {attack['samples']} samples among {attack['clients']}, PACE's kind of map (`{attack['features']}`, {attack['dim']} features), known to the server. "
        f"*Rebuilt*: to within 1 %, with the right label. Errors are relative to a sample's length; guessing the mean of the class from the sum of all has {attack['guess_error']:.2f}, "
        f"for the single sample {attack['single_sample_guess']:.2f}. `python -m benchmarks.attack`.",
        "\n".join(lines),
        f"From the plain upload {plain['with_label']} of {attack['samples']} samples come back; from a sum, or with noise, what comes back is no closer than that guess. The single sample is read off a plain upload; "
        f"in a sum of three clients of which no other has the class it would be read off too (error {attack['only_sample_in_a_sum_of_3']:.0e}): only noise hides it there. "
        f"And a sum of three clients with {attack['small_sum_of_3']['samples']} samples in all, fewer than the features, gives {attack['small_sum_of_3']['with_label']} of them back, though not whose they are.",
    ]
    liar = load("liar")
    lines = ["| the liar says | RMSE of the others | refused in |", "| --- | ---: | ---: |"]
    lines += [f"| {row['lie']} | {row['rmse']:.2f} | {row['refused']} rounds |" for row in liar["rows"]]
    parts += [
        f"### A client that lies about its columns\n\nFriedman's first function in units from 0.01 to 100, {liar['clients']} clients, PACE with learned features; one of them lies in every round, as far as the "
        "checks let it. `python -m benchmarks.liar`.",
        "\n".join(lines),
    ]
    parts += _lying_server()
    lines = [
        "| clients | neighbours | seconds, client | seconds, server | sent by a client | received | plain upload, many samples | plain, 400 samples |",
        "| ---: |" + " ---: |" * 7,
    ]
    for row in secure["runs"]:
        server = sum(row[f"server_{step}_seconds"] for step in ("adding", "confirming", "unmasking"))
        moved = [size(row[key]) for key in ("client_bytes", "client_received_bytes", "plain_bytes", "plain_bytes_few_samples")]
        lines.append(
            f"| {row['clients']} | {row['neighbours']} | {row['client_seconds']:.2f} | {server:.2f} | {' | '.join(moved)} |"
        )
    parts += [
        f"### What the secure sum costs\n\n{secure['features']} features, {secure['classes']} classes, processor's seconds on one core; a client's are those of all five steps, beside computing its moments. "
        "*Received* is without the broadcast, which is the plain run's. `python -m benchmarks.secure`.",
        "\n".join(lines),
    ]
    lines = ["| | eps 1 | eps 2 | eps 4 | eps 8 | no noise |", "| --- |" + " ---: |" * 5]
    for method in dict.fromkeys(row["method"] for row in noise["rows"]):
        for title, key, scale, digits in (
            ("accuracy %", "accuracy", 100, 1),
            ("shared model %", "shared_accuracy", 100, 1),
            ("calibration error", "calibration_error", 1, 3),
        ):
            values = [f"{scale * row[key]:.{digits}f}" for row in noise["rows"] if row["method"] == method]
            lines.append(f"| {method}, {title} | {' | '.join(values)} |")
    parts += [
        f"### Accuracy under noise\n\nCIFAR-100 as frozen DINOv2-small features, {noise['clients']} clients, Dirichlet 0.1, {noise['samples']} training samples, `bias+linear`, delta {noise['delta']:g}, noise shared under a secure sum "
        f"({noise['draws']} draws). `python -m benchmarks.dp FILE.npz`.",
        "\n".join(lines),
        age("attack", "lying_server", "liar", "secure", "dp"),
    ]
    return "\n\n".join(parts)


def _lying_server() -> list[str]:
    """What a server reads that lies: without what binds a sum, without a site's policies, and with them."""
    found = load("lying_server")
    rows = [
        (what, f"{found['unbound'][what]['read']} of {found['unbound'][what]['of']}", f"{found['bound'][what]['read']}")
        for what in found["unbound"]
    ]
    steps, small = found["steps"], found["small_table"]
    asked, ever, hospital = steps.values()
    ever_read = (
        f"{ever['read']} after {ever['sums']} sums with `release-features-ever = 1`; {hospital['read']} with what a hospital sets"
    )
    rows.append(
        (f"{asked['sums']} sums of all under step functions of its choice", f"{asked['read']} of {asked['of']}", ever_read)
    )
    before, after = small.values()
    fewer = f"{after['read']} ({after['features']} features)"
    rows.append(
        (f"a sum of {before['of']} samples under PACE's own map", f"{before['read']} ({before['features']} features)", fewer)
    )
    lines = ["| the server | rows read before, or of sites that ask for nothing | now |", "| --- | ---: | ---: |"]
    return [
        "### A server that lies\n\nReal sites and real sums, no network. The first two: digits, clients that know each other's keys, and the protocol with and without what binds it. Then five hospitals of 30 samples and 30 "
        "columns. *What a hospital sets* is in [the security model](security_model.md#what-a-hospital-sets). `python -m benchmarks.lying_server`.",
        "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]),
    ]


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
    says = f"Where all clients have everybody's classes ({', '.join(f'`{cut}`' for cut in alike)}) the lead is {min(leads):+.1f} to {max(leads):+.1f}."
    if gaps:
        says += f" At a thousand clients with a dozen samples of a hundred classes estimates are {min(gaps):+.1f} to {max(gaps):+.1f} points from the truth."
    return says


def _mean_and_chance(values: list[float]) -> tuple[float, float]:
    """The mean, and how far chance takes it in 95 of 100 cases (Student's t); of a single value that is not known."""
    n = len(values)
    return float(np.mean(values)), float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("inf")


def _shifted(rows: list[dict[str, Any]]) -> str:
    """Where clients are domains or people: the mean over clients and the mean of the worst tenth of them, for every method."""
    shifted = [row for row in rows if "each" in row["cut"]]
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
            + " | ".join(f"{100 * mine[cut]['accuracy']:.1f} / {mine[cut]['log_loss']:.3f}" for cut in cuts)
            + " |"
        )
    return "\n".join(lines)


def learned() -> str:
    """The learned metric: CIFAR-100 beside gradient descent on the pooled data, budgets of bytes, and tables cut by site."""
    found, ceiling = load("learned"), load("ceiling")
    default, large = found["default"], found["large"]
    columns = cells(default)
    lines = [
        "| | " + " | ".join(f"{clients} clients, {alpha}" for clients, alpha in columns) + " | shared model |",
        "| --- |" + " ---: |" * 7,
    ]

    def line(title: str, rows: list[dict[str, Any]], key: str, bold: bool = False) -> str:
        means = [100 * np.mean([row[key] for row in rows if (row["clients"], row["alpha"]) == cell]) for cell in columns]
        texts = [f"{value:.1f}" for value in [*means, 100 * rows[0]["shared"]]]
        return f"| {title} | " + " | ".join(f"**{text}**" if bold else text for text in texts) + " |"

    for kind, title in (("softmax", "pooled softmax regression, tuned, + prior"), ("mlp", "pooled MLP, tuned, + prior")):
        lines.append(line(title, [row for row in ceiling if row["model"] == kind], "accuracy"))
    for rows in (default, large):
        for name in dict.fromkeys(row["map"] for row in rows):
            lines.append(line(f"PACE, `{name}`", [row for row in rows if row["map"] == name], "pace", bold="@" in name))
    mine = [row for row in [*default, *large] if "@" in row["map"]]
    off, ece = max(abs(row["estimate"] - row["pace"]) for row in mine), max(row["calibration_error"] for row in mine)
    runs = [[row for row in mine if (row["map"], row["clients"], row["alpha"]) == key] for key in cells_of(mine)]
    mean = max(abs(float(np.mean([row["estimate"] - row["pace"] for row in cell]))) for cell in runs)
    says = f"With a learned metric the estimate is off by {100 * mean:.2f} points in the worst of {len(runs)} cells, means over three seeds "
    says += f"({100 * off:.2f} in the worst single run); the worst calibration error is {ece:.3f}."
    aged = age("ceiling", "learned", "site_tables")
    return "\n".join([*lines, "", says, "", frontier(), "", site_tables(), "", aged])


def cells_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys((row["map"], row["clients"], row["alpha"]) for row in rows))


def frontier() -> str:
    """What a budget of bytes buys, now and before."""
    rows = load("learned")["frontier"]
    lines = [
        "| budget | what PACE takes | bytes, mean | rounding | 0.1: before | now | gain | 1.0: before | now | gain |",
        "| --- | --- | ---: |" + " ---: |" * 7,
    ]
    for budget in sorted({row["budget"] for row in rows}, key=bytes_of):
        now = [row for row in rows if (row["budget"], row["which"]) == (budget, "now")]
        first = now[0]
        texts = [budget, f"`{first['features']}`, {first['precision']}", size(int(first["bytes"])), f"{first['rounding']:.1g}"]
        for alpha in (0.1, 1.0):
            found = {which: _frontier_mean(rows, budget, which, alpha) for which in ("before", "now")}
            gain = "" if found["before"] is None else f"{found['now'] - found['before']:+.1f}"
            texts += ["-" if found["before"] is None else f"{found['before']:.1f}", f"{found['now']:.1f}", gain]
        lines.append(f"| {' | '.join(texts)} |")
    (ROOT / "docs" / "frontier.svg").write_text(frontier_plot(rows))
    return "\n".join(lines)


def _frontier_mean(rows: list[dict[str, Any]], budget: str, which: str, alpha: float) -> Any:
    found = [row["pace"] for row in rows if (row["budget"], row["which"], row["alpha"]) == (budget, which, alpha)]
    return 100 * np.mean(found) if found else None


def frontier_plot(rows: list[dict[str, Any]]) -> str:
    """Accuracy over the bytes that may be sent, one panel for each alpha; dashed: the pooled models."""
    width, height, left, top, panel, tall = 760, 300, 46, 30, 300, 210
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    budgets = sorted({row["budget"] for row in rows}, key=bytes_of)
    ends = np.log10(bytes_of(budgets[0])), np.log10(bytes_of(budgets[-1]))
    for i, alpha in enumerate((0.1, 1.0)):
        start = left + i * (panel + 70)
        found = {
            which: [
                (np.log10(bytes_of(budget)), mean)
                for budget in budgets
                if (mean := _frontier_mean(rows, budget, which, alpha)) is not None
            ]
            for which in ("now", "before")
        }
        pooled = {
            kind: 100
            * np.mean(
                [row["accuracy"] for row in load("ceiling") if (row["model"], row["clients"], row["alpha"]) == (kind, 100, alpha)]
            )
            for kind in ("softmax", "mlp")
        }
        values = [value for line in found.values() for _, value in line] + list(pooled.values())
        low, high = np.floor(min(values)), np.ceil(max(values))

        def place(where: float, value: float, start: float = start, low: float = low, high: float = high) -> tuple[float, float]:
            x = start + (where - ends[0]) / (ends[1] - ends[0]) * panel
            return x, top + tall - (value - low) / (high - low) * tall

        parts.append(f'<text x="{start}" y="{top - 12}">100 clients, dirichlet {alpha}: accuracy %</text>')
        for value in np.arange(low, high + 1):
            _, y = place(ends[0], value)
            parts.append(f'<line x1="{start}" x2="{start + panel}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{start - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.0f}</text>')
        for budget in budgets[::2]:
            x, _ = place(np.log10(bytes_of(budget)), low)
            parts.append(f'<text x="{x:.1f}" y="{top + tall + 18}" text-anchor="middle">{budget}</text>')
        for kind, value in pooled.items():
            _, y = place(ends[0], value)
            parts.append(
                f'<line x1="{start}" x2="{start + panel}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="5 4"/>'
            )
            parts.append(
                f'<text x="{start + 4}" y="{y - 4:.1f}" fill="#666">pooled {"softmax" if kind == "softmax" else "MLP"}</text>'
            )
        for which, colour in (("before", "#b5651d"), ("now", "#1f5fa8")):
            points = [place(*point) for point in found[which]]
            parts.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
            )
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    parts.append(f'<text x="{left}" y="{height - 12}" fill="#1f5fa8">PACE(budget=...)</text>')
    parts.append(f'<text x="{left + 130}" y="{height - 12}" fill="#b5651d">PACE before: no metric, float64</text>')
    parts.append(f'<text x="{width - 10}" y="{height - 12}" text-anchor="end">most bytes up and down, per client</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


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
    lines = ["| | " + " | ".join(f"{data}, {cut}" for data, cut in cells) + " |", "| --- |" + " ---: |" * len(cells)]
    for name in names:
        told = []
        for data, cut in cells:
            mine, whole = (
                [row for row in rows if (row["data"], row["cut"], row["name"]) == (data, cut, each)] for each in (name, names[0])
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


def _ranked(rows: list[dict[str, Any]]) -> str:
    return markdown(sorted(rows, key=lambda row: -(row["mean_accuracy"] or 0))).strip()


MEDICAL = ["breast cancer, iid", "breast cancer, skewed", "synthetic, 50 columns, skewed", "iris (3 classes)"]
POOLED = ["PACE personal", "PACE shared", "pooled LR, C = 1", "LR per hospital"]
PAGES: dict[str, tuple[Callable[[], str], ...]] = {
    "README.md": (fair.front, natural.front),
    "docs/results.md": (
        partial(fair.section, "shares"), partial(fair.section, "fresh"), fair.edges, partial(accuracy, "linear"),
        lambda: f"{accuracy('linear + 4096 Fourier')}\n\n{age('pace')}", core, partial(cost, "bias_linear"),
        partial(cost, "bias_linear_fourier4096"), gpu, deep, flower,
    ),
    "docs/gradient_results.md": (
        partial(gradient, "dirichlet:0.1"), partial(gradient, "dirichlet:1.0"), gradient_images, _pretrained,
    ),
    "docs/convolution_results.md": (
        partial(convolution, "cifar100_20_classes"), partial(convolution, "digits"), filters, layers,
    ),
    "docs/ablation.md": (ablation_parts, partial(ablation, "features"), partial(ablation, "precision")),
    "docs/gradient.md": (gradient_gpu,),
    "docs/pace.md": (lambda: f"{binary()}\n\nTen other seeds (100 to 109), of some of them:\n\n{binary(again=True)}",),
    "docs/guide/tables.md": (partial(binary, MEDICAL, POOLED),),
    "docs/guide/choosing.md": (fair.choosing,),
    "docs/guide/targets.md": (kinds.targets,),
    "docs/guide/series.md": (kinds.series,),
    "docs/guide/text.md": (kinds.wide_texts,),
    "docs/privacy.md": (privacy,),
    "docs/guide/raw.md": (front_door,),
    "docs/data.md": (
        every_data, more_tables, kinds.clean, kinds.sensors, natural.natural, natural.heart, natural.untouched, natural.noise,
    ),
    "docs/learned.md": (learned,),
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
