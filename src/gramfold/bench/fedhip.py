"""FedHiP's experiments (Tang et al., arXiv 2508.04470): how far to personalise, on a client's own and on all clients' test data;
clients that come late; labels that nobody shares; weaker features; and what is saved against gradient methods.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from gramfold import evaluation
from gramfold.bench import published
from gramfold.bench.figures import lines, over_seeds, table, value
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Plot, Table
from gramfold.bench.measuring import cut, data_file, load, run_method
from gramfold.bench.rivals import run_rival, saved, sweep, time_beside
from gramfold.engines import run
from gramfold.engines.inprocess import on_device
from gramfold.federation import Federation
from gramfold.methods import AFL, FedHiP, Local, Method

METHODS: dict[str, type[Method]] = {"local": Local, "afl": AFL, "fedhip": FedHiP}
CHOSEN = "chosen"
"""alpha as gramfold chooses it: each client's own, by leave-one-out."""
BOTH = ("mean_accuracy", "everywhere_accuracy")
ON = (
    "Per cent. Own: on the client's own test split; everywhere: on the test samples of all clients; means over clients and seeds."
)


class FedhipBench(Bench):
    name: ClassVar[str] = "fedhip"
    paper: ClassVar[str] = "Tang et al., FedHiP: closed-form personalisation, arXiv 2508.04470"
    summary: ClassVar[str] = "FedHiP by alpha, at home and everywhere; late clients, disjoint labels, weaker features, savings"
    files: ClassVar[Mapping[str, str]] = {"": "an .npz file of features and labels"}
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": 100, "partition": "dirichlet:0.1", "alphas": [0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5],
        "late": [0.1, 0.3, 0.5], "dimensions": [768, 384, 192, 96, 48], "disjoint": [20, 5],
        "rivals": ["fedavg", "fedavg-ft", "ditto"], "rounds": 200, "sweep_rounds": 20, "timed_rounds": 8,
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 5, "partition": "dirichlet:0.5", "alphas": [0.0, 10.0, 1e5], "late": [0.4], "dimensions": [64, 16],
        "disjoint": [5, 2], "rounds": 3, "sweep_rounds": 0, "timed_rounds": 4,
    }  # fmt: skip

    # --- cells ---

    def cells(self, options: Options) -> list[Cell]:
        made = [*self._analytic(options)]
        seed = options.seeds[0]
        made.append(Cell("timing", partial(measure_timing, options, seed)))
        for name in options["rivals"]:
            made.append(Cell(f"sweep/{name}", partial(measure_sweep, options, name, seed)))
            made.append(Cell(f"rival/{name}/seed {seed}", partial(measure_rival, options, name, seed), (f"sweep/{name}",)))
        return made

    def _analytic(self, options: Options) -> Iterator[Cell]:
        for seed in options.seeds:
            for alpha in (*options["alphas"], CHOSEN):
                method = FedHiP(alpha=None if alpha == CHOSEN else alpha)
                yield Cell(f"alpha/{alpha}/seed {seed}", partial(measure, options, method, seed))
            for name in ("local", "afl"):
                yield Cell(f"alpha/{name}/seed {seed}", partial(measure, options, METHODS[name](), seed))
            for name, kind in METHODS.items():
                yield Cell(f"disjoint/{name}/seed {seed}", partial(measure_disjoint, options, kind(), seed))
                for dim in options["dimensions"]:
                    yield Cell(f"dimensions/{dim}/{name}/seed {seed}", partial(measure_weaker, options, kind(), dim, seed))
            for share in options["late"]:
                yield Cell(f"late/{share}/seed {seed}", partial(measure_late, options, share, seed))

    # --- tables ---

    def tables(self, found: Found, options: Options) -> list[Table]:
        over = partial(over_seeds, found, options.seeds)
        cut_as = f"{options['clients']} clients, {options['partition']}."
        alphas = (*options["alphas"], CHOSEN, "local")
        rivals = [[name, *(over(partial(_key, f"rival/{name}"), figure) for figure in BOTH)] for name in options["rivals"]]
        made = [
            table(
                "How far to personalise", ["alpha", "own", "everywhere"],
                [[_named(a), *(over(partial(_key, f"alpha/{a}"), f) for f in BOTH)] for a in alphas],
                f"{ON} {cut_as} alpha 0 is AFL, a large one each client alone; chosen: each client's own, by leave-one-out.",
            ),
            table(
                "Gradient methods, at home and everywhere", ["method", "own", "everywhere"], rivals,
                f"{ON} {cut_as} {options['rounds']} rounds, first seed.",
            ),
            table(
                "Clients that come late",
                ["late", "those in the sum", "late ones", "late ones with AFL's head", "had they been there"],
                [[f"{100 * share:.0f} %", *(over(partial(_key, f"late/{share}"), f) for f in LATE)] for share in options["late"]],
                "Per cent, own test splits. A late client makes its head of the finished sum, in which its samples are not.",
            ),
            table(
                "Labels that nobody shares", ["method", "own", "everywhere"],
                [[name, *(over(partial(_key, f"disjoint/{name}"), f) for f in BOTH)] for name in METHODS],
                f"{ON} {options['disjoint'][0]} clients with {options['disjoint'][1]} classes each, none held by two.",
            ),
            table(
                "Weaker features", ["dimensions", *METHODS],
                [
                    [f"{dim}", *(over(partial(_key, f"dimensions/{dim}/{name}"), "mean_accuracy") for name in METHODS)]
                    for dim in options["dimensions"]
                ],
                f"Per cent, own test splits. {cut_as} The first so many numbers of each feature vector.",
            ),
            self._saved(found, options),
        ]  # fmt: skip
        return [one for one in made if one["rows"]]

    def _saved(self, found: Found, options: Options) -> Table:
        timed, rows = found.get("timing", {"rivals": {}}), list[list[Any]]()
        for rounds in sorted({max(1, options["rounds"] // part) for part in (10, 2, 1)}):
            for rival in timed["rivals"]:
                rows.append([f"{rival}, {rounds} rounds", *(saved(timed, rival, what, rounds) for what in ("seconds", "bytes"))])
        claimed = " and ".join(f"{share} of {what}" for what, share in published.FEDHIP_SAVED.items())
        return table(
            "What FedHiP saves", ["against", "computation %", "communication %"], rows,
            f"Per cent less seconds and bytes (both ways) than the rival; published: {claimed}. First seed, on "
            f"{timed.get('device')}. A rival's cost is its first round and so many times a later one's, of "
            f"{options['timed_rounds']} timed ones. Sweeps do not count.",
        )  # fmt: skip

    def plots(self, found: Found, options: Options) -> list[Plot]:
        def points(figure: str) -> list[list[float | None]]:
            cells = [(a, over_seeds(found, options.seeds, partial(_key, f"alpha/{a}"), figure)) for a in options["alphas"]]
            return [[a, cell["mean"]] for a, cell in cells if cell is not None]

        series = [(name, points(figure)) for name, figure in zip(("own", "everywhere"), BOTH, strict=True)]
        made = [lines("How far to personalise", "alpha", "accuracy %", series)]

        def by_dimension(name: str) -> list[list[float | None]]:
            keys = {dim: _key(f"dimensions/{dim}/{name}", options.seeds[0]) for dim in options["dimensions"]}
            return [[dim, value(found, key, "mean_accuracy")] for dim, key in keys.items()]

        made.append(lines("Weaker features", "dimensions", "accuracy %", [(name, by_dimension(name)) for name in METHODS]))
        return [plot for plot in made if plot["series"]]


LATE = ("early_accuracy", "late_accuracy", "late_shared_accuracy", "present_accuracy")


def _key(begin: str, seed: int) -> str:
    return f"{begin}/seed {seed}"


def _named(alpha: float | str) -> str:
    return alpha if isinstance(alpha, str) else f"{alpha:g}"


def _federation(options: Options, seed: int) -> Federation:
    return cut(data_file(options), options["clients"], options["partition"], seed)


def measure(options: Options, method: Method, seed: int) -> Figures:
    return run_method(method, _federation(options, seed), options.device, everywhere=True)


def measure_disjoint(options: Options, method: Method, seed: int) -> Figures:
    clients, classes = options["disjoint"]
    federation = cut(data_file(options), clients, f"classes:{classes}", seed)
    return run_method(method, federation, options.device, everywhere=True)


def measure_weaker(options: Options, method: Method, dimensions: int, seed: int) -> Figures:
    dataset = load(data_file(options))
    less = replace(dataset, inputs=dataset.inputs[:, :dimensions])
    federation = Federation.from_dataset(less, options["clients"], options["partition"], random_state=seed)
    return run_method(method, federation, options.device)


def measure_late(options: Options, share: float, seed: int) -> Figures:
    """The last clients make their heads of a sum that they are not in; beside it what they get where they are."""
    federation = _federation(options, seed)
    there = len(federation) - max(1, round(share * len(federation)))
    early = replace(federation, clients=federation.clients[:there], cut=None)
    result, whole_run = (
        run(FedHiP(), part, device=options.device, keep_total=False, progress=False) for part in (early, federation)
    )
    labels, late, shared, present = federation.task.labels, list[float](), list[float](), list[float]()
    for client in federation.clients[there:]:
        train, test = client.train(), on_device(client.test(), options.device)
        if not test.n:
            continue
        assert labels is not None
        assert result.global_head is not None
        head = result.join(train.inputs, [labels[code] for code in train.targets], client.name, options.device)
        late.append(evaluation.main_figure(head, test))
        shared.append(evaluation.main_figure(result.global_head, test))
        present.append(whole_run.clients[client.name].accuracy or 0.0)
    found: Sequence[Sequence[float]] = (late, shared, present)
    means = dict(zip(LATE[1:], (evaluation.mean(values) for values in found), strict=True))
    return {"early_accuracy": result.mean_accuracy, **means, "late_clients": len(late)}


def measure_sweep(options: Options, name: str, seed: int) -> Figures:
    return sweep(name, _federation(options, seed), options)


def measure_rival(options: Options, name: str, seed: int, swept: Figures) -> Figures:
    return run_rival(name, _federation(options, seed), options, swept, everywhere=True)


def measure_timing(options: Options, seed: int) -> Figures:
    return time_beside(FedHiP(), options["rivals"], _federation(options, seed), options)


BENCH = FedhipBench()
