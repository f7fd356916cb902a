"""Raw samples that have become numbers, as a data set."""

from dataclasses import replace

import numpy as np

from gramfold.federation.datasets import Dataset
from gramfold.numerics import inputs as check
from gramfold.numerics.arrays import Array
from gramfold.origin import Origin
from gramfold.sources import CodedTable, Source, TableEncoder, say_unused


def dataset_of(
    source: Source, rows: Array, origin: Origin | None, kept: np.ndarray | None = None, whole: bool = True
) -> Dataset:
    """A source's samples as numbers: `rows` are their features, those `kept` of them (None: all)."""
    labels = source.known_labels()
    chosen = slice(None) if kept is None else kept
    targets, names = (labels[chosen], None) if source.regression else check.encode(labels[chosen])
    train = None if source.train is None else source.train[chosen]
    if train is not None and (train.all() or not train.any()):
        train = None
    client = None if source.client is None else source.client[chosen]
    return Dataset(source.name, rows, targets, names, train, client, whole, origin)


def table_dataset(source: Source, release_words: int, encoder: TableEncoder | None = None, whole: bool = True) -> Dataset:
    """The rows of a table as numbers, by the encoder that its clients' training rows fold to unless one is given."""
    source.known_labels()
    if encoder is not None:
        return dataset_of(source, encoder(source.items), encoder.origin, whole=whole)
    table = CodedTable(source, release_words)
    training = table.training()
    say_unused(table.statistics(training))
    return replace(dataset_of(source, *table(training), whole=whole), recode=table)
