"""Tables and data sets as clients of a federation: what was raw has become numbers, the same way everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ClientsError, LabelsError
from gramfold.federation.blocks import block_codes
from gramfold.federation.datasets import Dataset, load_npz
from gramfold.numerics.arrays import Array
from gramfold.origin import KnownRows, Origin
from gramfold.sources import (
    CodedTable,
    Columns,
    Source,
    TableEncoder,
    client_source,
    columns_of,
    files_of,
    is_complete,
    is_frame,
    is_pairs,
    is_splits,
    is_table,
    joined,
    say_unused,
    stacked,
)
from gramfold.sources import source_of as one_source
from gramfold.sources.base import COLUMNS, NUMBERS
from gramfold.sources.targets import CLASSES, ORDERED, VALUES, order_of, read_targets

LOADED = "gf.Federation.from_dataset(gf.load_data(..., backbone=...))"


def dataset_of(source: Source, rows: Array, origin: Origin | None, kept: np.ndarray | None = None, whole: bool = True) -> Dataset:
    """A source's samples as numbers: `rows` are their features, those `kept` of them (None: all)."""
    labels = source.known_labels()
    chosen = slice(None) if kept is None else kept
    kind = VALUES if source.regression else source.targets or CLASSES
    found = read_targets(labels[chosen], len(labels[chosen]), source.name, kind, source.names or None)
    train = None if source.train is None else source.train[chosen]
    if train is not None and (train.all() or not train.any()):
        train = None
    client = None if source.client is None else source.client[chosen]
    blocks = None if source.block is None else block_codes(source.block[chosen], len(found.values), source.name)
    return Dataset(source.name, rows, found.values, found.labels, train, client, whole, origin, blocks, found.kind, found.names)


def table_dataset(source: Source, release_words: int, encoder: TableEncoder | None = None, whole: bool = True) -> Dataset:
    """The rows of a table as numbers, by the encoder that its clients' training rows fold to unless one is given; numbers as they
    are."""
    source.known_labels()
    if source.kind == NUMBERS:
        return dataset_of(source, source.items, None, whole=whole)
    if source.kind != COLUMNS:
        raise ClientsError(f"{source.name} holds {source.kind}; make features of them: {LOADED}")
    if encoder is not None:
        return dataset_of(source, encoder(source.items), encoder.origin, whole=whole)
    table = CodedTable(source, release_words)
    training = table.training()
    say_unused(table.statistics(training))
    return replace(dataset_of(source, *table(training), whole=whole), recode=table)


def in_order(columns: Columns, data: Any) -> Columns:
    """What columns are, with the order of a frame's label column where that is an ordered categorical."""
    frames = [part for part in (data.values() if isinstance(data, Mapping) else [data]) if is_frame(part)]
    held = getattr(frames[0], "columns", ()) if frames else ()
    if columns.targets is not None or columns.label is None or columns.label not in held:
        return columns
    order = order_of(frames[0][columns.label])
    return columns if order is None else replace(columns, targets=ORDERED, names=columns.names or order)


def tables_of(clients: Any, columns: Columns) -> Source | None:
    """The tables that clients were given as, behind each other: a folder, paths, frames, or data sets made of such; None for
    clients that are anything else."""
    if isinstance(clients, str | Path) or is_frame(clients) or is_splits(clients):
        return one_source(clients, columns)
    if not isinstance(clients, Mapping | Sequence):
        raise ClientsError(
            f"a {type(clients).__name__} is one data set; give clients by name, {{'north': ..., 'south': ...}}, or cut it: "
            "gf.Federation.from_dataset(gf.load_data(...))"
        )
    if isinstance(clients, Sequence) and clients and all(isinstance(path, str | Path) for path in clients):
        clients = files_of(clients)
    pairs = clients.items() if isinstance(clients, Mapping) else enumerate(clients)
    given = {str(name): loaded(client, columns.regression, f"client {str(name)!r}") for name, client in pairs}
    if not any(_is_table(client) for client in given.values()):
        return None
    nothing = next((name for name, client in given.items() if client is None), None)
    if nothing is not None:
        raise ClientsError(f"client {nothing!r} is None; give its table, or leave it out")
    tables = {name: client for name, client in given.items() if _is_table(client) or _frames_of(client)}
    other = next((name for name in given if name not in tables), None)
    if other is not None:
        first = next(iter(tables))
        raise ClientsError(
            f"client {first!r} is a table and client {other!r} is numbers already; give all as tables, which are encoded together"
        )
    return joined(tables, lambda name, asked: _source(name, tables[name], asked), columns, "clients")


def arrays_of(name: str, client: Any, regression: bool) -> tuple[Any, Origin | None, np.ndarray | None]:
    """A client that may be a data set or the path of one, as (X, y) or (X, y, X_test, y_test), where its inputs come from, and
    what its (training) samples are part of, as far as it says so."""
    client = loaded(client, regression, f"client {name!r}")
    if not isinstance(client, Dataset):
        inputs = client[0] if isinstance(client, Sequence) and len(client) else None
        return client, inputs.origin if isinstance(inputs, KnownRows) else None, None
    if (client.labels is None) != regression:
        raise LabelsError(
            f"client {name!r}: {client.name} has {'values' if client.labels is None else 'classes'} for labels; "
            f"{'say' if client.labels is None else 'leave out'} regression=True"
        )
    return client.splits(), client.origin, client.training_blocks


def shared_origin(origins: Mapping[str, Origin | None]) -> Origin | None:
    """What made all clients' inputs; raises where it differs, and so their numbers do not mean the same."""
    known = {name: origin for name, origin in origins.items() if origin is not None}
    for name, origin in known.items():
        first, other = next(iter(known.items()))
        if origin.fingerprint != other.fingerprint:
            raise ClientsError(f"client {name!r} has inputs from {origin}, client {first!r} from {other}; use one for all")
    return next(iter(known.values()), None)


def loaded(client: Any, regression: bool, name: str) -> Any:
    """A client as it was given, where it is no file of numbers and no data set of pairs: these become a Dataset."""
    if isinstance(client, str | Path) and Path(client).suffix.lower() == ".npz":
        return load_npz(client, whole=False, regression=regression)
    pairs = list(client.values()) if is_splits(client) else [client]
    if not all(is_pairs(part) for part in pairs) or isinstance(client, Dataset) or callable(client):
        return client
    source = one_source(client, Columns(regression=regression))
    if source.kind != NUMBERS:
        raise ClientsError(f"{name} holds {source.kind}; make features of them: {LOADED}")
    return dataset_of(source, source.items, None, whole=False)


def _is_table(client: Any) -> bool:
    """Whether it needs an encoder; frames of numbers alone, given beside their labels, do as they are."""
    if isinstance(client, Dataset):
        return isinstance(client.recode, CodedTable)
    return is_table(client) or not all(is_complete(frame) for frame in _frames_of(client))


def _frames_of(client: Any) -> list[Any]:
    """The frames of a client given as (frame, y) or (frame, y, frame_test, y_test)."""
    if not isinstance(client, tuple) or len(client) not in (2, 4):
        return []
    return [part for part in client[::2] if is_frame(part)]


def _source(name: str, client: Any, columns: Columns) -> Source:
    if isinstance(client, tuple):
        return _beside(name, client, columns)
    if not isinstance(client, Dataset):
        return client_source(name, client, columns)
    assert isinstance(client.recode, CodedTable)
    return replace(client.recode.source, name=f"client {name!r}")


def _beside(name: str, client: tuple[Any, ...], columns: Columns) -> Source:
    """A client whose labels lie beside its frames."""
    tables = [columns_of(frame, f"client {name!r}") for frame in client[::2]]
    sizes = [len(frame) for frame in client[::2]]
    titles = columns.only or dict.fromkeys(title for table in tables for title in table)
    items = {title: stacked([table.get(title) for table in tables], sizes) for title in titles}
    labels = np.concatenate([np.asarray(part) for part in client[1::2]])
    train = np.repeat([True, False], sizes) if len(tables) == 2 else None
    return Source(
        f"client {name!r}", COLUMNS, items, labels, None, train, columns.regression, columns.only,
        targets=columns.targets or "", names=columns.names,
    )  # fmt: skip
