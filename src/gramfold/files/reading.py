"""A part of the data, read as a task file says: its clients, or what they say of it before there is a task."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import FileError, PartsError
from gramfold.extraction import default_cache, load_data
from gramfold.federation import Client, Dataset, Federation, Samples, Task, load_npz
from gramfold.federation.blocks import held_out_size, stratified
from gramfold.federation.raw import dataset_of
from gramfold.files.description import Description
from gramfold.numerics import inputs as check
from gramfold.numerics import seeds
from gramfold.origin import TABLE
from gramfold.sources import RELEASE_WORDS, CodedTable, Columns, Source, TableEncoder, is_raw, source_of
from gramfold.sources.base import COLUMNS

BLOCK = 4096
"""Rows that are hashed together."""
ROLES = ("label_column", "client_column", "path_column", "text_column", "split_column")


@dataclass(frozen=True)
class Part:
    """A part of the data, as it was read."""

    id: str
    """A hash of its rows: the same whatever their file and their clients are called."""
    clients: Sequence[Client]


@dataclass(frozen=True)
class Reading:
    """Which column is what, and what makes numbers of raw samples: the same for all parts."""

    label_column: str | None = None
    client_column: str | None = None
    path_column: str | None = None
    text_column: str | None = None
    split_column: str | None = None
    columns: tuple[str, ...] = ()
    regression: bool = False
    release_words: int = RELEASE_WORDS
    backbone: str | None = None
    pooling: str | None = None
    test: float = 0.25
    """The part of each client's samples held out, where the data does not say."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Reading":
        return cls(**{**fields, "columns": tuple(fields["columns"])})

    def dataset(self, paths: Sequence[Path], task: Task | None, device: str = "cpu") -> Dataset | Source:
        """The samples at these paths; those of a table that has no encoder yet as they are."""
        given: Any = str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]
        missing = next((path for path in paths if not path.exists() and not is_raw(str(path))), None)
        if missing is not None:
            raise FileError(f"no such data: {missing}")
        if self.backbone is not None:
            from gramfold.backbones import open_backbone

            opened = open_backbone(self.backbone, self.pooling, device)
            named = {role: getattr(self, role) for role in ROLES}
            return load_data(given, opened, cache=default_cache(), regression=self.regression, whole=False, **named)
        if isinstance(given, str) and not is_raw(given):
            return load_npz(given, whole=False, regression=self.regression)
        source = source_of(given, self._columns())
        if source.kind != COLUMNS:
            raise PartsError(f"{source.name} holds {source.kind}; begin with a --backbone for them")
        if task is None:
            return source
        if task.origin is None or task.origin.kind != TABLE:
            raise PartsError(f"{source.name} is a table, and the task is of other data: it has no encoder for one")
        encoder = TableEncoder.reopen(task.origin)
        dataset = dataset_of(source, encoder(source.items), encoder.origin, whole=False)
        return replace(dataset, train=source.train)  # as it says, even where this part has no test rows

    def _columns(self) -> Columns:
        named = {role: getattr(self, role) for role in ROLES}
        return Columns.of(self.columns, regression=self.regression, **named)

    # --- before there is a task ---

    def describe(self, paths: Sequence[Path], seed: int, device: str = "cpu") -> tuple[Description, "Part"]:
        """What a part says of its data."""
        found = self.dataset(paths, None, device)
        owners = _owners(found, paths)
        rows = _training(found, owners, self.test, seed)
        said: dict[str, Any] = {"samples": int(sum(map(len, rows.values()))), "declared": False, "shape": []}
        if isinstance(found, Source):
            labels = found.known_labels()
            said |= {"table": CodedTable(found, self.release_words).statistics(list(rows.values())).to_dict()}
            said |= {"inputs": len(found.items)}
        else:
            labels = found.targets if found.labels is None else np.asarray(found.labels)[found.targets]
            said |= {"inputs": int(np.prod(found.inputs.shape[1:])), "shape": list(found.inputs.shape[1:])}
            said["shape"] = said["shape"] if len(said["shape"]) > 1 else []
            said |= {} if found.origin is None else {"origin": {**vars(found.origin), "options": dict(found.origin.options)}}
        if self.regression:
            said |= {"labels": None, "outputs": int(np.prod(labels.shape[1:], dtype=np.int64))}
        else:
            classes = check.encode(labels)[1]
            said |= {"labels": list(classes), "outputs": len(classes)}
        return Description(said), Part(digest_of(found), [Client(name, _unread, _unread) for name in rows])

    # --- under a task ---

    def part(self, paths: Sequence[Path], task: Task, device: str = "cpu") -> "Part":
        """A part's clients."""
        found = self.dataset(paths, task, device)
        assert isinstance(found, Dataset)
        if task.origin is not None:
            task.origin.require(found.origin, ", ".join(map(str, paths)))
        owners, whose = _owners(found, paths), ", ".join(path.name for path in paths)
        width = int(np.prod(found.inputs.shape[1:]))
        if width != task.inputs:
            raise PartsError(f"{whose} has {width} numbers per sample, the task {task.inputs}")
        targets = found.targets if found.labels is None else np.asarray(found.labels)[found.targets]
        known = replace(found, client=owners, labels=task.labels, targets=task.encode(whose, targets), recode=None, whole=False)
        cut = Federation.from_dataset(known, partition="natural", test_size=self.test, random_state=task.seed, min_size=1)
        return Part(digest_of(found), cut.clients)


def digest_of(found: Dataset | Source) -> str:
    """A hash of all rows and their labels, a block at a time."""
    digest = hashlib.sha256()
    if isinstance(found, Source):
        for name, values in [*sorted(found.items.items()), ("", found.known_labels())]:
            digest.update(f"{name}\0{values.tolist()}\0".encode())
    else:
        for first in range(0, len(found.targets), BLOCK):
            rows = slice(first, first + BLOCK)
            digest.update(Samples(found.inputs[rows], found.targets[rows]).digest().encode())
    return digest.hexdigest()[:32]


def _owners(found: Dataset | Source, paths: Sequence[Path]) -> np.ndarray:
    """Whose each row is: as the data says, else all one client's, who is called as the file is."""
    if found.client is not None:
        return found.client.astype(str)
    n = found.n if isinstance(found, Source) else len(found.targets)
    return np.full(n, paths[0].stem)


def _training(found: Dataset | Source, owners: np.ndarray, test: float, seed: int) -> dict[str, np.ndarray]:
    """Every client's training rows, as `Federation.from_dataset` cuts them."""
    if isinstance(found, Source):
        labels = found.known_labels()
        codes = np.zeros(found.n, dtype=np.int64) if found.regression else check.encode(labels)[0]
    else:
        codes = found.codes
    training = {}
    for name in np.unique(owners).tolist():
        mine = np.flatnonzero(owners == name)
        if found.train is not None:
            training[name] = mine[found.train[mine]]
        elif int(held_out_size(np.array(len(mine)), test)):
            training[name] = mine[stratified(codes[mine], test, seeds.generator(seed, f"split/{name}"))[0]]
        else:
            training[name] = mine
    return training


def _unread() -> Any:
    raise AssertionError("a client without a task has no samples")
