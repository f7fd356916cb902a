"""Federation: clients that share a task, from one data set that is partitioned or from separate data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.checking import Report
from gramfold.errors import ClientsError, ColumnsError, LabelsError, PartitionError
from gramfold.federation.blocks import block_codes, held_out_size, stratified
from gramfold.federation.checks import check_arrays, check_rows
from gramfold.federation.client import Client, Samples, Task, targets_in_words
from gramfold.federation.datasets import Dataset
from gramfold.federation.generated import Clients, GeneratedClients
from gramfold.federation.given import WITH_TEST, blocks_by_client, given_client, load_source, samples_of
from gramfold.federation.given_targets import said_targets
from gramfold.federation.parquet import ParquetClients
from gramfold.federation.partition import DROP, Partition, follow
from gramfold.federation.pool import Pool, PoolClients
from gramfold.federation.raw import arrays_of, in_order, shared_origin, table_dataset, tables_of
from gramfold.federation.streams import ClientStream, StreamedClients
from gramfold.numerics import inputs as check
from gramfold.numerics import seeds
from gramfold.numerics.arrays import Array, is_torch, to_numpy
from gramfold.renamed import renamed
from gramfold.sources import RELEASE_WORDS, Columns
from gramfold.sources.targets import VALUES, read_targets

SMALL = ("drop_small", {"error": False, "drop": True})
"""What `small` became."""


@dataclass(frozen=True)
class Federation:
    """Clients and the task they share; `description` says where they came from.

    >>> from gramfold.federation import digits
    >>> federation = Federation.from_dataset(digits(), clients=5, partition="dirichlet:0.5", random_state=0)
    >>> len(federation), federation.task.outputs
    (5, 10)
    """

    clients: Sequence[Client]
    task: Task
    description: Mapping[str, Any] = field(default_factory=dict)
    cut: Callable[[int], "Federation"] | None = field(default=None, compare=False)
    """The same data set cut anew with another seed; None where the clients were given."""
    checked: Callable[[], Report] | None = field(default=None, compare=False, repr=False)
    """What is wrong with the table that the clients were cut from; None where they are numbers already."""
    stream: ClientStream | None = field(default=None, compare=False, repr=False)
    """The same clients a batch at a time, for gf.run_streamed; None where they are not read so."""

    def __repr__(self) -> str:
        task, partition = self.task, self.description.get("partition", {})
        samples = "" if task.samples is None else f", {task.samples} training samples"
        what = targets_in_words(task.labels, task.outputs, task.targets)
        shape = " x ".join(map(str, task.shape)) if task.shape else f"{task.inputs} inputs"
        kind = partition.get("kind", "given")
        return f"Federation({len(self)} clients{samples}, {shape}, {what}; partition {kind}, seed {task.seed})"

    def __len__(self) -> int:
        return len(self.clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self.clients)

    def check(self) -> Report:
        """What is wrong with the clients' data, before anything is fitted: units that differ, codes, gaps that are written as
        numbers, IDs, constants, dates, columns that give the target away, classes that some lack, test samples that are training
        samples too. See docs/guide/check.md.

        >>> north = {"weight": [70, 81, 64, 77, 90, 68] * 5, "ill": [0, 1, 0, 1, 1, 0] * 5}
        >>> south = {"weight": [154, 178, 142, 170, 198, 0] * 5, "ill": [0, 1, 0, 1, 1, 0] * 5}
        >>> report = Federation.from_clients({"north": north, "south": south}, label_column="ill").check()
        >>> {f"{found.client}: {found.column}" for found in report.serious if found.kind == "gaps"}
        {'south: weight'}
        """
        return check_arrays(self.clients, self.task) if self.checked is None else self.checked()

    def validation(self, part: float = 0.2) -> "Federation":
        """The same clients, each with part of its training samples as test samples instead of its own."""
        _check_fraction(part)
        return replace(self, clients=[_validating(client, self.task, part) for client in self.clients], cut=None)

    def label_counts(self) -> dict[str, Any] | None:
        """The classes, and for each client how many training samples it has of each, under the class's place among them.

        None for regression. For looking at a federation that is all here: over a network nobody but a client knows its own.
        """
        if self.task.labels is None:
            return None
        counts = {}
        for client in self.clients:
            codes, n = np.unique(to_numpy(client.train().targets), return_counts=True)
            counts[client.name] = {str(code): int(many) for code, many in zip(codes, n, strict=True)}
        return {"classes": list(self.task.labels), "counts": counts}

    @classmethod
    @renamed(seed="random_state", test="test_size", small=SMALL)
    def split(
        cls,
        X: Array,
        y: Any = None,
        clients: int = 20,
        partition: str | None = None,
        test_size: float = 0.25,
        random_state: int = 0,
        *,
        train: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        blocks: np.ndarray | None = None,
        min_size: int = 2,
        drop_small: bool = False,
        regression: bool = False,
        targets: str | None = None,
        labels: Sequence[int | str] | None = None,
        name: str = "arrays",
    ) -> "Federation":
        """Cut one data set into clients.

        `train` marks training rows: then both splits are cut with the same class proportions; without it, each client's data
        is split and `test_size` is the part held out. `ids` gives each row's client: those are the clients, and nothing is drawn.
        `blocks` gives what each row is part of, such as a recording: rows of one are held out, and left out, together.
        `partition` None: "natural" where each row's client is known, else "dirichlet:0.1" (for regression "iid"). A partition
        with a client of fewer than `min_size` samples is redrawn, and after many redraws an error; `drop_small` drops
        such clients. X is features (n x d; SciPy's sparse ones stay sparse) or images (n x H x W x channels, or n x H x W).

        `targets`: "classes", "values" (as regression=True), "labels" (any number of them a sample: y is rows of 0 and 1, or a
        list of labels for each), "ordered" (in the order of `labels`, the least first) or "counts"; None: what y looks like.
        `labels` lists all classes or labels.
        """
        if ids is not None and partition not in (None, "natural"):
            raise PartitionError(f"ids= says whose each sample is, and partition={partition!r} would not heed it; give one")
        if y is None:
            raise LabelsError(
                f"{name}: split takes samples and their labels, split(X, y); a data set is cut by "
                "gf.Federation.from_dataset(gf.load_data(data), clients=...)"
            )
        origin = getattr(X, "origin", None)
        X = check.shaped(to_numpy(X) if is_torch(X) else X, name)
        n = X.shape[0]
        found = read_targets(y, n, name, targets, labels, regression)
        owners = None if ids is None else check.names(ids, n, "client", name)
        together = None if blocks is None else block_codes(blocks, n, name)
        marked = None if train is None else np.asarray(train)
        dataset = Dataset(
            name,
            X,
            found.values,
            found.labels,
            marked,
            owners,
            origin=origin,
            blocks=together,
            kind=found.kind,
            names=found.names,
        )
        return cls.from_dataset(dataset, clients, partition, test_size, random_state, min_size=min_size, drop_small=drop_small)

    @classmethod
    @renamed(seed="random_state", test="test_size", small=SMALL)
    def from_dataset(
        cls,
        dataset: Dataset,
        clients: int = 20,
        partition: str | None = None,
        test_size: float = 0.25,
        random_state: int = 0,
        *,
        min_size: int = 2,
        drop_small: bool = False,
    ) -> "Federation":
        """Cut a Dataset into clients; see `split`. A partition that is given holds also where the data says whose each row is."""
        _check_fraction(test_size)
        _check_random_state(random_state)
        if partition is None:
            partition = "natural" if dataset.client is not None else "dirichlet:0.1" if dataset.labels is not None else "iid"
        how, codes, train = Partition.parse(partition), dataset.codes, dataset.train
        if dataset.labels is None and how.kind not in ("iid", "quantity", "natural"):
            raise LabelsError(f"partition {partition!r} goes by class; for regression use iid, quantity:ALPHA or natural")
        places = np.arange(len(codes)) if train is None else np.flatnonzero(train)
        rng = seeds.generator(random_state, "partition")
        if how.kind == "natural":
            if dataset.client is None:
                raise ColumnsError(
                    "partition 'natural' needs the owner of each sample: name a table's column with --client-column (in Python "
                    "client_column=), give `client` in an .npz file, or ids="
                )
            names, owners = np.unique(dataset.client.astype(str), return_inverse=True)
        else:
            names, owners = np.arange(clients).astype(str), np.empty(len(codes), dtype=np.int64)
            if drop_small:
                owners[places] = how.draw(codes[places], clients, rng)
            else:
                owners[places] = how.cut(codes[places], clients, rng, min_size)
            if train is not None:
                owners[~train] = follow(codes[places], owners[places], codes[~train], clients, rng)
        sizes = np.bincount(owners[places], minlength=len(names))
        kept = np.flatnonzero(sizes >= max(min_size, 1))
        if not drop_small and len(kept) < len(names):
            who = str(names[np.argmin(sizes)])
            raise ClientsError(f"client {who!r} has {sizes.min()} training samples, fewer than {min_size}; {DROP}")
        if not len(kept):
            raise ClientsError(f"no client has {min_size} samples; ask for fewer clients")
        pool = Pool(dataset, owners, names, test_size, random_state)
        if train is not None:
            held_out = np.zeros(len(kept), dtype=np.int64)
        elif dataset.blocks is not None:
            held_out = np.array([len(pool.rows(int(k))[1]) for k in kept])
        else:
            held_out = held_out_size(sizes[kept], test_size)
        checked = None
        if dataset.recode is not None:
            splits = pool.splits(kept, natural=how.kind == "natural")
            pool.dataset = dataset = dataset.recoded([rows for _, rows, _ in splits])
            checked = partial(check_rows, dataset, splits)
        inputs = int(np.prod(dataset.inputs.shape[1:]))
        shape = dataset.inputs.shape[1:] if dataset.inputs.ndim > 2 else ()
        task = Task(
            inputs, dataset.labels, dataset.outputs, random_state, int((sizes[kept] - held_out).sum()), shape, dataset.origin,
            dataset.kind, dataset.names,
        )  # fmt: skip
        origin = {} if dataset.origin is None else {"origin": str(dataset.origin)}
        description = {
            "data": {"name": dataset.name, "samples": len(codes), "inputs": inputs, "outputs": dataset.outputs, **origin},
            "partition": {"kind": str(how), "clients": len(kept), "dropped": len(names) - len(kept), "min_size": min_size},
        }
        cut = partial(cls.from_dataset, dataset, clients, partition, test_size, min_size=min_size, drop_small=drop_small)
        return cls(PoolClients(pool, kept), task, description, cut, checked)

    @classmethod
    @renamed(seed="random_state", test="test_size")
    def from_clients(
        cls,
        clients: Mapping[str, Any] | Sequence[Any] | str | Path,
        test_size: float = 0.25,
        random_state: int = 0,
        *,
        labels: Sequence[int | str] | None = None,
        regression: bool = False,
        targets: str | None = None,
        label_column: str | None = None,
        client_column: str | None = None,
        split_column: str | None = None,
        block_column: str | None = None,
        columns: Sequence[str] | None = None,
        blocks: Mapping[str, Any] | None = None,
        release_words: int = RELEASE_WORDS,
    ) -> "Federation":
        """Clients given by name, each as a table (the path of a CSV or Parquet file, a frame of pandas, polars or pyarrow, a
        mapping of columns), as a Dataset, as (X, y), (X, y, X_test, y_test), or as a function that loads such arrays; X may be a
        frame, and is a table where it holds more than numbers. A list of them names them "0", "1", and so on; files, which may
        be a list, a pattern such as "north*.csv", or all in a folder, are named as they are called.

        Tables are encoded together, by sums of what each client says of its own training rows: see `gf.load_data`, which takes
        the same `label_column`, `client_column`, `split_column`, `columns` and `release_words`. Columns go by name; what a client
        lacks is missing there. Where nothing says which samples are for testing, `test_size` is the part held out. `labels` lists
        the classes, or labels, of arrays; without it every client is loaded once to learn them. `targets`: see `split`.
        `blocks` says of a client's samples (its training samples, where it has test samples) which belong together, such as the
        recording that each is a window of: they are held out together, and left out together.
        In tables that is a column, `block_column`.

        >>> north = {"age": [63, 41, None, 58] * 5, "sex": ["f", "m", "m", "f"] * 5, "num": [2, 0, 0, 1] * 5}
        >>> south = {"age": [70, 35, 44, 61] * 5, "num": [1, 0, 0, 3] * 5}
        >>> Federation.from_clients({"north": north, "south": south}, label_column="num > 0")
        Federation(2 clients, 30 training samples, 4 inputs, 2 classes; partition natural, seed 0)
        """
        _check_fraction(test_size)
        _check_random_state(random_state)
        if isinstance(clients, Mapping | Sequence) and not len(clients):
            raise ClientsError("a federation needs at least one client")
        named = {
            "label_column": label_column,
            "client_column": client_column,
            "split_column": split_column,
            "block_column": block_column,
        }
        what = {"targets": targets, "names": tuple(labels or ())}
        tables = tables_of(clients, in_order(Columns.of(columns, regression=regression, **named, **what), clients))
        if tables is not None:
            if labels is not None and targets is None:
                raise LabelsError("labels= is for clients given as arrays; tables say their classes in label_column=")
            if blocks is not None:
                raise ColumnsError("blocks= is for clients given as arrays; tables have a column of them, block_column=")
            pooled = table_dataset(tables, release_words)
            return cls.from_dataset(pooled, partition="natural", test_size=test_size, random_state=random_state, min_size=1)
        given = next((name for name, column in {**named, "columns": columns}.items() if column is not None), None)
        if given is not None:
            raise ClientsError(f"{given}= is for clients given as tables, and these are numbers already; leave it out")
        assert not isinstance(clients, str | Path)
        pairs = list(clients.items() if isinstance(clients, Mapping) else enumerate(clients))
        names = [str(name) for name, _ in pairs]
        twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
        if twice:
            raise ClientsError(f"two clients are called {twice[0]!r}")
        said = said_targets({str(name): source for name, source in pairs}, targets, labels, regression)
        arrays = {str(name): arrays_of(str(name), source, said.kind == VALUES) for name, source in pairs}
        origin = shared_origin({name: made_by for name, (_, made_by, _) in arrays.items()})
        sources = {name: part if callable(part) else load_source(name, part) for name, (part, _, _) in arrays.items()}
        together = {name: part for name, (_, _, part) in arrays.items() if part is not None} | blocks_by_client(blocks, sources)
        X, y = load_source(names[0], sources[names[0]])[:2]
        inputs = int(np.prod(X.shape[1:]))
        known, outputs, kind, called = said.known(sources, y)
        shape = tuple(X.shape[1:]) if X.ndim > 2 else ()
        samples = samples_of(sources, test_size, bool(together))
        task = Task(inputs, known, outputs, random_state, samples, shape, origin, kind, called)
        made = [given_client(name, source, task, test_size, together.get(name)) for name, source in sources.items()]
        description = {
            "data": {"name": "clients", "inputs": inputs, "outputs": outputs},
            "partition": {"kind": "given", "clients": len(made), "dropped": 0},
        }
        return cls(made, task, description)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        test_size: float = 0.25,
        random_state: int = 0,
        *,
        label_column: str = "label",
        client_column: str = "client",
        split_column: str | None = None,
        columns: Sequence[str] | None = None,
        labels: Sequence[int | str] | None = None,
        regression: bool = False,
    ) -> "Federation":
        """Clients in a Parquet file, or in all of a folder, that need not fit into memory: rows of numbers, those of one client
        one after the other, whose `client_column` says whose they are. `columns`: the numbers of a sample, by default all that
        are nothing else; a single one may hold lists. Where no `split_column` says train or test, `test_size` is the part of each
        client's samples held out. Run it with gf.run_streamed; gf.run takes it too, and its clients into memory."""
        _check_fraction(test_size)
        found = ParquetClients(
            path, label_column, client_column, split_column, columns, test_size, random_state, labels, regression
        )
        return cls._streamed(found, Path(path).name, random_state)

    @classmethod
    def from_stream(
        cls,
        clients: Clients,
        test_size: float = 0.25,
        random_state: int = 0,
        *,
        labels: Sequence[int | str] | None = None,
        regression: bool = False,
    ) -> "Federation":
        """Clients that a program makes one by one, (name, X, y) or (name, X, y, X_test, y_test): a function that yields them, or
        an iterable, is asked anew for every pass, and first to see what there is; a generator, which yields once, is written to
        a temporary folder as it goes. See `from_parquet`."""
        _check_fraction(test_size)
        return cls._streamed(GeneratedClients(clients, test_size, random_state, labels, regression), "stream", random_state)

    @classmethod
    def _streamed(cls, stream: ClientStream, name: str, seed: int) -> "Federation":
        found = stream.contents
        description = {
            "data": {"name": name, "inputs": found.inputs, "outputs": found.outputs},
            "partition": {"kind": "given", "clients": found.clients, "dropped": 0},
        }
        return cls(StreamedClients(stream), stream.task(seed), description, stream=stream)


def _check_random_state(given: Any) -> None:
    if not isinstance(given, int | np.integer) or given < 0:
        raise PartitionError(f"random_state must be a whole number from 0 up, got {given!r}")


def _check_fraction(test: Any) -> None:
    if not isinstance(test, int | float | np.number):
        raise PartitionError(
            f"test_size= is the part held out, such as 0.25, got {type(test).__name__}; give samples as {WITH_TEST}"
        )
    if not 0 <= test < 1:
        raise PartitionError(f"the test size must lie in [0, 1), got {test}")


def _validating(client: Client, task: Task, part: float) -> Client:
    def samples(which: int) -> Samples:
        train = client.train()
        codes = train.targets if task.labels is not None else np.zeros(train.n, dtype=np.int64)
        rng = seeds.generator(task.seed, f"validation/{client.name}")
        return train.take(stratified(codes, part, rng, train.blocks)[which])

    return Client(client.name, partial(samples, 0), partial(samples, 1))
