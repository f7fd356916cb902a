"""Methods run over the same seeds, to be compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from gramfold.engines import Progress, RunOptions, open_engine
from gramfold.engines.events import to
from gramfold.errors import OptionError
from gramfold.federation import Dataset, Federation
from gramfold.methods import Method, make_method
from gramfold.progress import display
from gramfold.results.comparison import Comparison, Entry
from gramfold.sources import is_frame

Methods = Sequence[Method | str] | Mapping[str, Method | str]
SEEDS = 3


def compare(
    methods: Methods,
    data: Any,
    seeds: int | Sequence[int] | None = None,
    *,
    baseline: str | None = None,
    engine: str = "inprocess",
    device: str = "cpu",
    progress: Progress | bool = True,
    **split: Any,
) -> Comparison:
    """Run methods over the same seeds and compare them.

    `methods` are methods or their names, or a mapping from labels to these. `data` is a function from a seed to a Federation;
    (X, y), which `Federation.split` cuts anew for each seed, with the keyword arguments that are left; a Dataset, which
    `Federation.from_dataset` cuts likewise; tables (files, a folder, a pattern, a frame, or clients by name), of which
    `Federation.from_clients` makes a federation; a Federation that was cut from one data set, and is cut anew; or a list of
    federations, one for each seed. `seeds` says which, or how many
    (from 0, or from the federation's own, on); 3 if not said. A federation whose clients were given has no cut to draw again: it
    is one run, without intervals over seeds.
    `baseline` is the label that differences are to, the first if not said. `progress`: as in `gramfold.run`. Heads are not kept.
    """
    labelled = _labelled(methods)
    which, federations = _federations(data, seeds, split)
    comparison = Comparison(which, {label: [] for label in labelled}, baseline or next(iter(labelled)))
    results: dict[str, list[Entry]] = {label: [] for label in labelled}
    with _shown(progress, len(federations) * len(labelled)) as piece:
        for seed, federation in zip(which, federations, strict=True):
            made = federation()
            with open_engine(engine, made, RunOptions(device=device, keep_total=False)) as run_method:
                for label, method in labelled.items():
                    with piece(f"{label}, seed {seed}") as report:
                        entry = run_method(method, progress=report, keep_heads=False).to_dict()
                    results[label].append({**entry, "name": label})
    return Comparison(comparison.seeds, results, comparison.baseline)


@contextmanager
def _shown(progress: Progress | bool, pieces: int) -> Iterator[Callable[[str], AbstractContextManager[Progress | None]]]:
    """What gives each of so many runs what it calls: see `gramfold.run`."""
    if progress is not True:
        yield lambda name: nullcontext(None if progress is False else progress)
        return
    with display(pieces) as shown:

        @contextmanager
        def piece(name: str) -> Iterator[Progress | None]:
            with shown.piece(name) as show:
                yield to(show)

        yield piece


def _labelled(methods: Methods) -> dict[str, Method]:
    if isinstance(methods, str | Method):
        methods = [methods]
    given = list(methods.items()) if isinstance(methods, Mapping) else [(None, method) for method in methods]
    labelled: dict[str, Method] = {}
    for label, method in given:
        made = make_method(method) if isinstance(method, str) else method
        if (label or made.name) in labelled:
            raise OptionError(f"two methods are called {made.name}; give them labels: {{'{made.name}-a': ..., ...}}")
        labelled[label or made.name] = made
    if not labelled:
        raise OptionError("no method to compare")
    return labelled


def _federations(
    data: Any, seeds: int | Sequence[int] | None, split: Mapping[str, Any]
) -> tuple[list[int], list[Callable[[], Federation]]]:
    """The seeds, and a way to each one's federation: one of them is in memory at a time."""
    if not {"random_state", "seed"}.isdisjoint(split):
        raise OptionError("say seeds=[...] in the place of random_state: each one cuts the data anew")
    if _are_clients(data):
        data, split = Federation.from_clients(data, **split), {}
    is_arrays = isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], Federation)
    if split and not is_arrays and not isinstance(data, Dataset):
        raise OptionError(
            f"{next(iter(split))} is for data given as (X, y), a Dataset or tables; here the federation is made already"
        )
    first = 0
    if isinstance(data, Federation):
        if data.cut is None and seeds is not None and seeds not in (1, [data.task.seed]):
            raise OptionError("this federation's clients were given: there is no cut to draw again; give a function of the seed")
        if data.cut is None:
            return [data.task.seed], [lambda: data]
        make, first = data.cut, data.task.seed
    elif is_arrays:
        X, y = data
        make = lambda seed: Federation.split(X, y, random_state=seed, **split)  # noqa: E731
    elif isinstance(data, Dataset):
        make = lambda seed: Federation.from_dataset(data, random_state=seed, **split)  # noqa: E731
    elif callable(data):
        make = data
    else:
        made = list(data) if isinstance(data, Sequence) else []
        if not made or not all(isinstance(federation, Federation) for federation in made):
            raise OptionError(
                "data must be a Federation, a list of them, a function from a seed to one, a Dataset, tables, or (X, y)"
            )
        if seeds not in (None, len(made)):
            raise OptionError(f"{len(made)} federations are {len(made)} seeds; leave `seeds` out")
        return [federation.task.seed for federation in made], [partial(_itself, federation) for federation in made]
    if seeds is None or isinstance(seeds, int):
        seeds = range(first, first + (SEEDS if seeds is None else seeds))
    which = [int(seed) for seed in seeds]
    if not which or len(set(which)) < len(which):
        raise OptionError("compare needs at least one seed, and each of them once")
    return which, [partial(make, seed) for seed in which]


def _are_clients(data: Any) -> bool:
    """Whether these are tables, or clients by name, of which a federation is to be made."""
    listed = isinstance(data, list) and bool(data) and all(isinstance(path, str | Path) for path in data)
    return listed or isinstance(data, str | Path | Mapping) or is_frame(data)


def _itself(federation: Federation) -> Federation:
    return federation
