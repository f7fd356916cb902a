"""APFL's experiments (Fan et al., arXiv 2508.10732): accuracy beside eleven rivals, sensitivity, and what is saved.

The method runs twice: as published, with a random projection and an activation in both streams and penalties within the paper's
best ranges, and as gramfold's default, whose penalties are chosen without test data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from gramfold.bench import published
from gramfold.bench.figures import OTHER_FEATURES, heat, lines, over_seeds, percent, table, value
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Plot, Table
from gramfold.bench.measuring import cut, data_file, run_method
from gramfold.bench.rivals import RIVALS, run_rival, saved, sweep, time_beside
from gramfold.features.maps import ACTIVATIONS
from gramfold.methods import AFL, APFL, PACE, FedHiP, Local, Method

PUBLISHED, DEFAULT = "apfl as published", "apfl"
WITHOUT_ROUNDS = ("local", "afl", "fedhip", PUBLISHED, DEFAULT, "pace")
PENALTIES: dict[str, Any] = {"penalty": 0.01, "refinement_penalty": 3.0, "lam": 0.4}
"""Within the best ranges that the paper gives for CIFAR-100."""
LETTERS = {"beta": "penalty", "gamma": "refinement_penalty", "lam": "lam"}
"""What the paper calls them, and so the cells do."""
ROUNDS = 200
"""The paper's; what so many would have cost follows from the few that are timed."""
GRIDS: dict[str, Sequence[float]] = {
    "lam": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
    "beta": (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0),
    "gamma": (1e-2, 1e-1, 1.0, 3.0, 10.0, 100.0, 1000.0),
}


class ApflBench(Bench):
    name: ClassVar[str] = "apfl"
    paper: ClassVar[str] = "Fan et al., APFL: dual-stream least squares, arXiv 2508.10732"
    summary: ClassVar[str] = "APFL beside its eleven rivals, its sensitivity, and the time and traffic it saves"
    files: ClassVar[Mapping[str, str]] = {"": "an .npz file of features and labels"}
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": [50, 100], "alphas": [0.1, 0.5, 1.0], "rivals": list(RIVALS), "rounds": 200, "sweep_rounds": 20,
        "timed_rounds": 8, "primary": 2048, "refinement": 1024, "primaries": [256, 512, 1024, 2048, 4096],
        "refinements": [128, 256, 512, 1024, 2048], "activations": list(ACTIVATIONS),
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": [5], "alphas": [0.5], "rounds": 3, "sweep_rounds": 0, "timed_rounds": 4, "primary": 48,
        "refinement": 32, "primaries": [16, 48], "refinements": [16, 32], "activations": ["relu", "tanh"],
    }  # fmt: skip

    # --- cells ---

    def cells(self, options: Options) -> list[Cell]:
        return [
            *self._table_cells(options, WITHOUT_ROUNDS, options.seeds),
            Cell("timing", partial(measure_timing, options)),
            *self._sweeps(options),
            *self._table_cells(options, options["rivals"], options.seeds[:1]),
            *self._sensitivity_cells(options),
            *self._table_cells(options, options["rivals"], options.seeds[1:]),
        ]

    def _table_cells(self, options: Options, methods: Sequence[str], seeds: Sequence[int]) -> Iterator[Cell]:
        for seed in seeds:
            for clients in options["clients"]:
                for alpha in options["alphas"]:
                    for method in methods:
                        work = partial(measure, options, clients, alpha, method, seed)
                        needs = () if method in WITHOUT_ROUNDS else (sweep_key(method, alpha),)
                        yield Cell(key(clients, alpha, method, seed), work, needs)

    def _sweeps(self, options: Options) -> Iterator[Cell]:
        """One for each partition, at the first number of clients and the first seed."""
        for alpha in options["alphas"]:
            for method in options["rivals"]:
                yield Cell(sweep_key(method, alpha), partial(measure_sweep, options, alpha, method))

    def _sensitivity_cells(self, options: Options) -> Iterator[Cell]:
        for name, method in variants(options):
            yield Cell(f"sensitivity/{name}", partial(measure_variant, options, method))

    # --- tables ---

    def tables(self, found: Found, options: Options) -> list[Table]:
        made = [self._accuracy(found, options, clients, "mean_accuracy") for clients in options["clients"]]
        made += [self._accuracy(found, options, clients, "worst_decile_accuracy") for clients in options["clients"]]
        made += [self._lead(found, options), self._streams(found, options), *self._penalties(found), *self._saved(found, options)]
        return [one for one in made if one["rows"]]

    def _accuracy(self, found: Found, options: Options, clients: int, figure: str) -> Table:
        mean = figure == "mean_accuracy"

        def cell(method: str, alpha: float) -> Any:
            printed = published.apfl("apfl" if method == PUBLISHED else method, clients, alpha) if mean else None
            at = partial(key, clients, alpha, method)
            measured = over_seeds(found, options.seeds, at, figure, None if method == DEFAULT else printed)
            return measured if measured is not None and measured["mean"] is not None else None

        what = "accuracy" if mean else "accuracy of the worst tenth of the clients"
        rows = [[name, *(cell(name, alpha) for alpha in options["alphas"])] for name in (*options["rivals"], *WITHOUT_ROUNDS)]
        note = "Per cent; each client's final model on its own test split, mean over clients, then over seeds."
        if any(cell(name, alpha) for name in options["rivals"] for alpha in options["alphas"]):
            note += f" Gradient methods: {options['rounds']} rounds, {swept(options)}."
        return table(
            f"{what[0].upper()}{what[1:]}, {clients} clients", ["method", *(f"dirichlet:{alpha}" for alpha in options["alphas"])],
            rows, f"{note} {published.APFL_FEATURES}. {OTHER_FEATURES}" if mean else note,
        )  # fmt: skip

    def _lead(self, found: Found, options: Options) -> Table:
        """Over the best of the gradient rivals, for seeds with which all of them were measured."""
        cells = [(clients, alpha) for clients in options["clients"] for alpha in options["alphas"]]
        gaps = dict[str, Figures]()
        for clients, alpha in cells:
            for seed in options.seeds:
                rivals = [found.get(key(clients, alpha, name, seed)) for name in options["rivals"]]
                for name in WITHOUT_ROUNDS:
                    at = key(clients, alpha, name, seed)
                    if at in found and all(rivals):
                        best = max(rival["mean_accuracy"] for rival in rivals if rival)
                        gaps[at] = {"lead": found[at]["mean_accuracy"] - best}
        rows = [
            [name, *(over_seeds(gaps, options.seeds, partial(key, clients, alpha, name), "lead") for clients, alpha in cells)]
            for name in WITHOUT_ROUNDS
        ]
        columns = ["method", *(f"{clients} clients, dirichlet:{alpha}" for clients, alpha in cells)]
        note = "Points over the most accurate of the gradient rivals of the same seed, each partition's own. "
        return table(
            "Ahead of the best rival", columns, rows, f"{note}Published: APFL {published.APFL_GAIN}, over all its data sets."
        )

    def _streams(self, found: Found, options: Options) -> Table:
        def row(method: str, clients: int, alpha: float) -> list[Any]:
            at = partial(key, clients, alpha, method)
            both = [over_seeds(found, options.seeds, at, figure) for figure in ("primary_accuracy", "mean_accuracy")]
            return [f"{method}, {clients} clients, dirichlet:{alpha}", *both]

        cells = [(m, c, a) for m in (PUBLISHED, DEFAULT) for c in options["clients"] for a in options["alphas"]]
        note = "Per cent, on each client's own test split. Primary: the shared stream alone; dual: with the client's refinement."
        return table("Primary against dual stream", ["run", "primary", "dual"], [row(*cell) for cell in cells], note)

    def _penalties(self, found: Found) -> Iterator[Table]:
        for name, grid in GRIDS.items():
            rows = [[f"{one:g}", value(found, f"sensitivity/{name}/{one:g}", "mean_accuracy")] for one in grid]
            note = f"The paper's best on CIFAR-100: {published.APFL_OPTIMA[name]}, in the units of its own features. First seed."
            yield table(f"APFL as published by {name}", [name, "accuracy %"], rows, note)

    def _saved(self, found: Found, options: Options) -> Iterator[Table]:
        after = milestones(ROUNDS)
        timed = found.get("timing", {"rivals": {}})
        for what, name in (("seconds", "Time"), ("bytes", "Traffic")):
            rows = [[rival, *(saved(timed, rival, what, rounds) for rounds in after)] for rival in timed["rivals"]]
            note = (
                f"Per cent less than the rival after so many rounds; published: {published.APFL_SAVED}. {options['clients'][0]} "
                f"clients, dirichlet:{options['alphas'][0]}, first seed, on {timed.get('device')}. A rival's cost is its first "
                f"round and so many times a later one's, of {options['timed_rounds']} timed ones. Sweeps do not count."
            )
            yield table(f"{name} that APFL saves", ["against", *(f"{r} rounds" for r in after)], rows, note)

    # --- plots ---

    def plots(self, found: Found, options: Options) -> list[Plot]:
        made = [lines(f"APFL as published by {name}", name, "accuracy %", [("accuracy", _points(found, name))]) for name in GRIDS]
        made += [
            lines(f"By the {what} stream's dimension", "dimension", "accuracy %", [("accuracy", _points(found, what, grid))])
            for what, grid in (("primary", options["primaries"]), ("refinement", options["refinements"]))
        ]
        acts = options["activations"]
        values = [[value(found, f"sensitivity/activations/{a} {b}", "mean_accuracy") for b in acts] for a in acts]
        made.append(heat("Activations of both streams, accuracy %", "refinement", "primary", acts, acts, values))
        for clients in options["clients"]:
            for alpha in options["alphas"]:
                made.append(self._curves(found, options, clients, alpha))
        return [plot for plot in made if plot.get("series") or any(v is not None for row in plot.get("values", []) for v in row)]

    def _curves(self, found: Found, options: Options, clients: int, alpha: float) -> Plot:
        series: list[tuple[str, list[list[float | None]]]] = []
        for name in options["rivals"]:
            history = found.get(key(clients, alpha, name, options.seeds[0]), {}).get("history", [])
            seen = [[entry["round"], percent(entry["mean_accuracy"])] for entry in history if "mean_accuracy" in entry]
            series.append((name, seen))
        if any(points for _, points in series):
            for name in WITHOUT_ROUNDS:
                level = value(found, key(clients, alpha, name, options.seeds[0]), "mean_accuracy")
                series.append((name, [[1, level], [options["rounds"], level]]))
        return lines(f"Accuracy over rounds, {clients} clients, dirichlet:{alpha}", "round", "accuracy %", series)


def key(clients: int, alpha: float, method: str, seed: int) -> str:
    return f"{clients} clients/dirichlet:{alpha}/{method}/seed {seed}"


def sweep_key(method: str, alpha: float) -> str:
    return f"sweep/dirichlet:{alpha}/{method}"


def swept(options: Options) -> str:
    """How the gradient methods' parameters were chosen."""
    if not options["sweep_rounds"]:
        return "nothing swept"
    at = f"with {options['clients'][0]} clients and the first seed"
    return f"parameters swept on validation data, {options['sweep_rounds']} rounds for each value, {at}"


def milestones(rounds: int) -> list[int]:
    """
    >>> milestones(200), milestones(3)
    ([20, 60, 100, 140, 200], [1, 2, 3])
    """
    return sorted({max(1, rounds * tenths // 10) for tenths in (1, 3, 5, 7, 10)})


def as_published(options: Options) -> APFL:
    return APFL(features=f"relu:{options['primary']}", refinement=f"relu:{options['refinement']}", **PENALTIES)


def make(name: str, options: Options) -> Method:
    plain: dict[str, type[Method]] = {"local": Local, "afl": AFL, "fedhip": FedHiP, DEFAULT: APFL, "pace": PACE}
    return as_published(options) if name == PUBLISHED else plain[name]()


def measure(options: Options, clients: int, alpha: float, name: str, seed: int, chosen: Figures | None = None) -> Figures:
    federation = cut(data_file(options), clients, f"dirichlet:{alpha}", seed)
    if chosen is None:
        return run_method(make(name, options), federation, options.device)
    return run_rival(name, federation, options, chosen)


def measure_sweep(options: Options, alpha: float, name: str) -> Figures:
    return sweep(name, cut(data_file(options), options["clients"][0], f"dirichlet:{alpha}", options.seeds[0]), options)


def measure_timing(options: Options) -> Figures:
    federation = cut(data_file(options), options["clients"][0], f"dirichlet:{options['alphas'][0]}", options.seeds[0])
    return time_beside(as_published(options), options["rivals"], federation, options)


def variants(options: Options) -> Iterator[tuple[str, APFL]]:
    """One thing changed at a time, but for the activations, which go in pairs."""
    base = as_published(options)
    for name, grid in GRIDS.items():
        for one in grid:
            yield f"{name}/{one:g}", replace(base, **{LETTERS[name]: one})  # type: ignore[arg-type]
    for dim in options["primaries"]:
        yield f"primary/{dim:g}", replace(base, features=f"relu:{dim}")
    for dim in options["refinements"]:
        yield f"refinement/{dim:g}", replace(base, refinement=f"relu:{dim}")
    for first in options["activations"]:
        for second in options["activations"]:
            streams = f"{first}:{options['primary']}", f"{second}:{options['refinement']}"
            yield f"activations/{first} {second}", replace(base, features=streams[0], refinement=streams[1])


def measure_variant(options: Options, method: APFL) -> Figures:
    clients, alpha = options["clients"][0], options["alphas"][0]
    return run_method(method, cut(data_file(options), clients, f"dirichlet:{alpha}", options.seeds[0]), options.device)


def _points(found: Found, name: str, grid: Sequence[float] | None = None) -> list[list[float | None]]:
    return [[one, value(found, f"sensitivity/{name}/{one:g}", "mean_accuracy")] for one in grid or GRIDS[name]]


BENCH = ApflBench()
