"""Clients in Parquet files: rows of numbers with a column that says whose each is, one client's after another's."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, FileError, LabelsError
from gramfold.federation.streams import (
    CLIENTS,
    NUMBERS,
    ClientBatch,
    ClientStream,
    Contents,
    codes_of,
    held_out,
    require_distinct,
    require_finite,
    training_samples,
)
from gramfold.imports import require
from gramfold.numerics import inputs as check
from gramfold.sources.base import TESTING, TRAINING

SUFFIXES = (".parquet", ".pq")
ROWS = 2**16
"""Rows that are read at a time."""
SHORT = ("bool", "int8", "uint8", "int16", "uint16", "halffloat", "float")
"""Arrow's types whose numbers are all float32."""


@dataclass(frozen=True)
class Roles:
    """Which column is what. `numbers`: those of the samples; a single one may hold lists, all of one length."""

    label: str
    client: str
    split: str | None
    numbers: tuple[str, ...]
    regression: bool

    @property
    def about(self) -> list[str]:
        return [name for name in (self.client, self.label, self.split) if name is not None]


class ParquetClients(ClientStream):
    """What is in memory between two passes is every client's name and where its rows are: some forty bytes."""

    def __init__(
        self,
        path: str | Path,
        label_column: str,
        client_column: str,
        split_column: str | None,
        columns: Sequence[str] | None,
        test: float,
        seed: int,
        labels: Sequence[int | str] | None,
        regression: bool,
    ) -> None:
        self._parquet = require("pyarrow.parquet", "tables", f"reading {path}")
        self._arrow: Any = require("pyarrow", "tables", f"reading {path}")
        self._compute: Any = require("pyarrow.compute", "tables", f"reading {path}")
        self._paths, self._test, self._seed = files_at(Path(path)), test, seed
        self._files = [self._opened(file) for file in self._paths]
        schema = self._files[0].schema_arrow
        odd = next((i for i, file in enumerate(self._files) if not file.schema_arrow.equals(schema)), None)
        if odd is not None:
            raise ColumnsError(f"{self._paths[odd]} has other columns, or of other types, than {self._paths[0]}")
        self._roles = roles(schema, str(path), label_column, client_column, split_column, columns, regression)
        self._type = number_type(self._arrow, schema, self._roles, str(path))
        self._rows_before = np.cumsum([0, *(file.metadata.num_rows for file in self._files)])
        self._look(labels)

    def _opened(self, path: Path) -> Any:
        try:
            return self._parquet.ParquetFile(path, memory_map=True)
        except Exception as error:  # pyarrow's errors share no base with others
            raise FileError(f"{path} is not a readable Parquet file: {' '.join(str(error).split())}") from None

    # --- the first look: whose rows are where, and which labels there are ---

    def _look(self, labels: Sequence[int | str] | None) -> None:
        digest, runs, row = hashlib.sha256(), _Runs(), 0
        known, train = set[Any](), 0
        for part in self._read(self._roles.about, 0):
            self._require_all(part, row)
            names, ends = self._owners(part)
            digest.update("\0".join(names).encode() + ends.tobytes())
            runs.add(names, row + ends)
            label = part.column(self._roles.label)
            for chunk in self._arrow.array(label).buffers():
                digest.update(b"" if chunk is None else memoryview(chunk))
            if not self._roles.regression:
                known.update(check.encode(self._labels(label.unique(), row))[1])
            if self._roles.split is not None:
                train += int((~self._testing(part, row)).sum())
            row += part.num_rows
        if not row:
            raise FileError(f"{self._paths[0]} has no rows")
        self._names, self._starts = runs.names, np.concatenate([[0], np.array(runs.ends, dtype=np.int64)])
        require_distinct(self._names)
        sizes = np.diff(self._starts)
        if self._roles.split is None:
            train = training_samples(sizes, self._test)
        for file in self._paths:
            digest.update(footer(file))
        found = None if self._roles.regression else tuple(labels) if labels is not None else tuple(sorted(known))
        if found is not None and len(found) < 2:
            raise LabelsError(f"only one class in column {self._roles.label!r}; classification needs at least two")
        digest.update(f"{self._roles} {self._test} {self._seed} {found}".encode())
        self._width = self._list_size() or len(self._roles.numbers)
        batches = cut(sizes, self._width)
        outputs = 1 if found is None else len(found)
        self.contents = Contents(len(sizes), train, self._width, outputs, found, batches, digest.hexdigest()[:32])

    def _list_size(self) -> int | None:
        """How many numbers there are in a list, where samples are lists."""
        if not self._is_list:
            return None
        first = next(self._read(self._roles.numbers, 0)).column(0)
        return len(first[0]) if len(first) and first[0].is_valid else 0

    @property
    def _is_list(self) -> bool:
        types = self._arrow.types
        kind = self._files[0].schema_arrow.field(self._roles.numbers[0]).type
        return bool(types.is_list(kind) or types.is_fixed_size_list(kind) or types.is_large_list(kind))

    def _owners(self, part: Any) -> tuple[list[str], np.ndarray]:
        """The clients of rows, as they follow each other, and where each one's rows end."""
        column = part.column(self._roles.client)
        runs = self._compute.run_end_encode(column if self._is_run_type(column.type) else column.cast(self._arrow.string()))
        return [str(name) for name in runs.values.to_pylist()], runs.run_ends.to_numpy().astype(np.int64)

    def _is_run_type(self, kind: Any) -> bool:
        types = self._arrow.types
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))

    def _labels(self, column: Any, row: int) -> np.ndarray:
        return check.labels(column.to_numpy(zero_copy_only=False), len(column), f"column {self._roles.label!r} from row {row} on")

    def _testing(self, part: Any, row: int) -> np.ndarray:
        column = part.column(self._roles.split)
        said = [str(value).strip().lower() for value in column.unique().to_pylist()]
        odd = next((word for word in said if word not in (*TRAINING, *TESTING, "true", "false", "1", "0")), None)
        if odd is not None:
            raise ColumnsError(f"column {self._roles.split!r} says {odd!r}, which is neither train nor test (from row {row} on)")
        given = np.array([str(value).strip().lower() for value in column.to_pylist()])
        return np.isin(given, (*TESTING, "false", "0"))

    def _require_all(self, part: Any, row: int) -> None:
        """Raise, naming column and row, if a value is missing."""
        for name in part.schema.names:
            column = part.column(name)
            if column.null_count:
                first = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise ColumnsError(f"column {name!r} has no value in row {row + first}; fill it in, or leave that row out")

    # --- reading ---

    def read(self, first: int = 0) -> Iterator[ClientBatch]:
        edges = self.contents.batches
        if first >= len(edges) - 1:
            return
        columns = [*self._roles.about[1:], *self._roles.numbers]
        start = int(self._starts[edges[first]])
        waiting, have = [], 0
        row, place = start, first
        for part in self._read(columns, start):
            while part.num_rows:
                missing = int(self._starts[edges[place + 1]]) - row - have
                waiting.append(part.slice(0, missing))
                have += waiting[-1].num_rows
                part = part.slice(missing)
                if row + have == self._starts[edges[place + 1]]:
                    yield self._batch(place, waiting, row)
                    waiting, row, have, place = [], row + have, 0, place + 1

    def _read(self, columns: Sequence[str], start: int) -> Iterator[Any]:
        """The rows from that one on, some at a time."""
        for file, before, after in zip(self._files, self._rows_before[:-1], self._rows_before[1:], strict=True):
            if after <= start:
                continue
            at, groups = int(before), list[int]()
            for group in range(file.metadata.num_row_groups):
                many = file.metadata.row_group(group).num_rows
                if not groups and at + many <= start:
                    at += many
                    continue
                groups.append(group)
            for part in file.iter_batches(ROWS, row_groups=groups, columns=list(columns)):
                yield part.slice(max(0, start - at))
                at += part.num_rows

    def _batch(self, place: int, parts: Sequence[Any], row: int) -> ClientBatch:
        edges, roles = self.contents.batches, self._roles
        mine = slice(edges[place], edges[place + 1])
        names, starts = self._names[mine], self._starts[edges[place] : edges[place + 1] + 1] - row
        inputs, filled, labels, testing = np.empty((int(starts[-1]), self._width), self._type), 0, [], []
        for part in parts:
            self._require_all(part, row + filled)
            inputs[filled : filled + part.num_rows] = self._numbers(part, row + filled)
            column = part.column(roles.label)
            labels.append(column.to_numpy(zero_copy_only=False) if roles.regression else self._labels(column, row + filled))
            if roles.split is not None:
                testing.append(self._testing(part, row + filled))
            filled += part.num_rows
        require_finite(names, inputs, starts)
        found, known, whose = np.concatenate(labels), self.contents.labels, f"clients {names[0]!r} to {names[-1]!r}"
        codes = None if known is None else codes_of(found, known, whose)
        held = np.concatenate(testing) if testing else held_out(names, codes, starts, self._test, self._seed)
        targets = check.values(found, len(found), 1, whose) if codes is None else codes
        return ClientBatch(names, inputs, targets, starts, held)

    def _numbers(self, part: Any, row: int) -> np.ndarray:
        if not self._is_list:
            made = np.empty((part.num_rows, self._width), self._type)
            for j, name in enumerate(self._roles.numbers):
                made[:, j] = part.column(name).to_numpy(zero_copy_only=False)
            return made
        name = self._roles.numbers[0]
        column = part.column(name)
        flat = column.flatten()
        lengths = self._compute.list_value_length(column).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(lengths != self._width)
        if len(odd) or flat.null_count:
            where = f"row {row + int(odd[0])} has {int(lengths[odd[0]])}" if len(odd) else "one is missing"
            raise ColumnsError(f"column {name!r}: every list has {self._width} numbers, but {where}")
        return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=self._type).reshape(part.num_rows, self._width)


class _Runs:
    """Names as they follow each other, over the ends of what is read at a time."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ends: list[int] = []

    def add(self, names: Sequence[str], ends: np.ndarray) -> None:
        if self.names and len(names) and names[0] == self.names[-1]:
            del self.names[-1], self.ends[-1]
        self.names += names
        self.ends += ends.tolist()


def files_at(path: Path) -> list[Path]:
    """The Parquet files there, in the order of their names."""
    if path.is_file():
        return [path]
    found = sorted(file for file in path.glob("*") if file.suffix.lower() in SUFFIXES) if path.is_dir() else []
    if not found:
        raise FileError(f"no Parquet file at {path}; give one (.parquet), or a folder of some")
    return found


def roles(
    schema: Any, whose: str, label: str, client: str, split: str | None, columns: Sequence[str] | None, regression: bool
) -> Roles:
    for what, name in (("label", label), ("client", client), ("split", split)):
        if name is not None and name not in schema.names:
            there = ", ".join(map(repr, schema.names[:8])) + (", ..." if len(schema.names) > 8 else "")
            raise ColumnsError(
                f"{whose} has no column {name!r}; name the column of {what}s with {what}_column=. There are: {there}"
            )
    if isinstance(columns, str):
        raise ColumnsError(f"columns= lists those to use; for {columns!r} alone write columns=[{columns!r}]")
    special = (label, client, split)
    wanted = [name for name in schema.names if name not in special] if columns is None else list(columns)
    missing = next((name for name in wanted if name not in schema.names), None)
    if missing is not None or not wanted:
        raise ColumnsError(f"{whose} has no column {missing!r}" if wanted else f"{whose} has no column of numbers")
    return Roles(label, client, split, tuple(wanted), regression)


def number_type(arrow: Any, schema: Any, found: Roles, whose: str) -> type[np.floating[Any]]:
    """What the columns' numbers are, all together: float32 where that holds them all."""
    kinds = [(name, schema.field(name).type) for name in found.numbers]
    if len(kinds) == 1 and hasattr(kinds[0][1], "value_type"):
        kinds = [(kinds[0][0], kinds[0][1].value_type)]
    types = arrow.types
    for name, kind in kinds:
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise ColumnsError(
                f"{whose}: column {name!r} holds {kind}, not numbers; leave it out with columns=, or read the table with "
                "gf.Federation.from_clients, which encodes categories"
            )
    return np.float32 if all(str(kind) in SHORT for _, kind in kinds) else np.float64


def footer(path: Path) -> bytes:
    """The end of a Parquet file, which says where everything is and between which bounds."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(size - 8)
        length = int.from_bytes(file.read(4), "little")
        file.seek(size - 8 - length)
        return file.read(length)


def cut(sizes: np.ndarray, width: int) -> tuple[int, ...]:
    """The first client of every batch, and their number."""
    edges, ends, first = [0], np.cumsum(sizes) * width, 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        full = int(np.searchsorted(ends, before + NUMBERS, side="left")) + 1
        first = min(max(full, first + 1), first + CLIENTS, len(sizes))
        edges.append(first)
    return tuple(edges)
