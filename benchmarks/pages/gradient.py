"""The gradient methods beside the analytic ones: docs/gradient_results.md and docs/gradient.md."""

from typing import Any

from benchmarks.cells import markdown
from benchmarks.kept import load
from benchmarks.provenance import age
from gramfold.bench.published import HEART_PFL_PROTOCOL


def gradient(partition: str) -> str:
    """The gradient methods beside the analytic ones on CIFAR-100 features."""
    chosen = [row for row in load("gradient_table") if row["cell"].startswith(f"{partition}/")]
    shared = {row["name"]: row["global_accuracy"] for row in chosen}
    gap = 100 * (shared["fedavg"] - shared["afl"])
    return f"{ranked(chosen)}\n\nFedAvg's shared model is {gap:+.1f} points from AFL's.\n\n{age('gradient_table')}"


def gradient_images() -> str:
    return f"{ranked(load('gradient_images'))}\n\n{age('gradient_images')}"


def pretrained() -> str:
    """What `gramfold bench heart-pfl` found, in words; its tables are in papers.md."""
    found = load("bench_heart-pfl")
    cells, settings, seeds = found["cells"], found["options"]["settings"], found["seeds"]
    paper = HEART_PFL_PROTOCOL

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
        f"{settings['akt_batch']} images, where the paper has {paper['rounds']} rounds of {paper['epochs']} epochs, AKT in {paper['akt_rounds']} of them and {paper['akt_steps']} steps of {paper['akt_batch']} images (what `gramfold bench heart-pfl` runs unless told otherwise): what the machine time allowed, and too little to say anything of the paper, on which the verdict is *inconclusive*. Not measured: that protocol, ResNet-18, some "
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


def ranked(rows: list[dict[str, Any]]) -> str:
    return markdown(sorted(rows, key=lambda row: -(row["mean_accuracy"] or 0))).strip()
