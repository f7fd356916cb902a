"""A federation's clients as the tables that are checked before anything is fitted."""

from collections.abc import Iterable, Sequence

import numpy as np

from gramfold.checking import ClientTable, Report, check_tables
from gramfold.federation.client import Client, Task
from gramfold.federation.datasets import Dataset
from gramfold.numerics.arrays import to_numpy
from gramfold.sources import Cells, CodedTable

MOST_COLUMNS = 500
"""Columns of arrays that are looked at one by one; more are features of a network."""


def check_rows(dataset: Dataset, splits: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> Report:
    """A table as it was given, in clients: each one's name, training rows and test rows."""
    assert isinstance(dataset.recode, CodedTable)
    tables = []
    for name, train, test in splits:
        rows = np.sort(np.concatenate([train, test]))
        cells = {title: whole.take(rows) for title, whole in dataset.recode.cells.items()}
        tables.append(ClientTable(name, cells, _labels(dataset.targets[rows], dataset.labels), np.isin(rows, train)))
    return check_tables(tables, dataset.labels is None, dataset.recode.release_words)


def check_arrays(clients: Iterable[Client], task: Task) -> Report:
    """Clients' samples as they are, by the number of each column; of images, texts and wide features their labels alone."""
    tables = []
    for client in clients:
        parts = client.train(), client.test()
        train = np.repeat([True, False], [part.n for part in parts])
        labels = _labels(np.concatenate([to_numpy(part.targets) for part in parts]), task.labels)
        cells = {"sample": Cells(np.zeros(len(train)))}
        if not task.shape and task.inputs <= MOST_COLUMNS and task.origin is None:
            rows = np.concatenate([to_numpy(part.inputs) for part in parts])
            cells = {f"{i}": Cells(np.ascontiguousarray(rows[:, i])) for i in range(rows.shape[1])}
        tables.append(ClientTable(client.name, cells, labels, train))
    return check_tables(tables, task.labels is None)


def _labels(targets: np.ndarray, labels: tuple[int | str, ...] | None) -> np.ndarray:
    return targets if labels is None else np.asarray(labels)[targets]
