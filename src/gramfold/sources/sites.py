"""Several files, frames or tables as one source: each a client, their columns aligned by name."""

import glob
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from gramfold.errors import ColumnsError, FileError, LabelsError, SamplesError
from gramfold.numerics.arrays import is_sparse
from gramfold.sources.base import COLUMNS, Columns, Source
from gramfold.sources.folder import SUFFIXES
from gramfold.sources.pairs import Behind
from gramfold.sources.reading import TABLES

WILD = re.compile(r"[*?\[]")


def is_table_file(path: Any) -> bool:
    return isinstance(path, str | Path) and Path(path).suffix.lower() in TABLES


def is_pattern(path: Any) -> bool:
    """Whether it names several files, such as north*.csv."""
    return isinstance(path, str | Path) and WILD.search(str(path)) is not None and not Path(path).exists()


def tables_in(folder: Path) -> list[Path]:
    """The tables that lie in a folder; raises where it cannot be looked into, and where images lie there too."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        raise FileError(f"cannot look into {folder}: {error.strerror}; ask for the right to, or copy it") from None
    return [path for path in files if is_table_file(path)]


def require_no_images(folder: Path, tables: Sequence[Path]) -> None:
    """Raise where a folder's tables lie among images: which are the samples, nobody has said."""
    image = next((path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES), None)
    if image is not None:
        raise FileError(
            f"{folder} holds tables ({tables[0].name}) and images ({image.relative_to(folder)}); name the tables one by one, or "
            "name a backbone (--backbone) for the images"
        )


def files_of(given: Sequence[str | Path]) -> dict[str, Path]:
    """Files by the names of their clients, from paths, folders and patterns."""
    found: list[Path] = []
    for path in given:
        if is_pattern(path):
            matching = [Path(match) for match in sorted(glob.glob(str(path)))]
            if not matching:
                raise FileError(f"no file matches {path}")
            found += matching
        elif Path(path).is_dir():
            inside = tables_in(Path(path))
            if not inside:
                raise SamplesError(f"{path} holds no tables ({', '.join(TABLES)})")
            found += inside
        else:
            found.append(Path(path))
    stems = [path.stem for path in found]
    names = [path.stem if stems.count(path.stem) == 1 else f"{path.absolute().parent.name}-{path.stem}" for path in found]
    twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        first = found[names.index(names[twice])]
        raise FileError(f"two files are called {found[twice].stem!r}: {first} and {found[twice]}; rename one, or leave it out")
    return dict(zip(names, found, strict=True))


def joined(names: Iterable[str], opened: Callable[[str, Columns], Source], columns: Columns, name: str) -> Source:
    """One source of several, each a client, unless a column that was asked for says whose each row is. `opened` is a client's
    source by its name, and by what its columns are."""
    sources = {client: opened(client, replace(columns, several=True)) for client in names}
    parts = list(sources.values())
    _require_alike(sources)
    sizes = [part.n for part in parts]
    if columns.client is None:
        _require_no_clients(sources)
        client = np.repeat(np.array(list(sources)), sizes)
    else:
        client = np.concatenate([part.client for part in parts if part.client is not None])
    items: Any = _together([part.items for part in parts])
    if parts[0].kind == COLUMNS:
        _say_nearly_same(sources)
        titles = dict.fromkeys(title for part in parts for title in part.items)
        nowhere = next((title for title in columns.only if title not in titles), None)
        if nowhere is not None:
            raise ColumnsError(f"no table of {name} has a column {nowhere!r}; correct --columns (in Python columns=)")
        items = {title: stacked([part.items.get(title) for part in parts], sizes) for title in titles}
    labels = None if parts[0].labels is None else np.concatenate([part.labels for part in parts if part.labels is not None])
    train = None if parts[0].train is None else np.concatenate([part.train for part in parts if part.train is not None])
    blocks = None if parts[0].block is None else np.concatenate([part.block for part in parts if part.block is not None])
    starts = dict(zip((part.name for part in parts), np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    return Source(name, parts[0].kind, items, labels, client, train, columns.regression, columns.only, blocks, starts)


def _together(parts: Sequence[Any]) -> Any:
    """Samples of several, one behind the other: read when they are needed where they are so already."""
    if all(is_sparse(part) for part in parts):
        return csr_array(vstack(parts))
    if all(isinstance(part, np.ndarray) for part in parts):
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) > 1:
            raise SamplesError(f"samples differ in shape: {' and '.join(map(str, sorted(shapes)))}; bring them to one")
        return np.concatenate(parts)
    if all(isinstance(part, list | Mapping) for part in parts):
        return [item for part in parts for item in part]
    return Behind(parts)


def stacked(values: Sequence[np.ndarray | None], sizes: Sequence[int]) -> np.ndarray:
    """A column of several tables, so many rows of each: missing throughout in those that lack it."""
    known = [part for part in values if part is not None]
    if len(known) == len(values) and all(part.dtype.kind in "fiub" for part in known):
        return np.concatenate(known)
    whole = np.full(sum(sizes), None, dtype=object)
    first = 0
    for part, n in zip(values, sizes, strict=True):
        if part is not None:
            whole[first : first + n] = part
        first += n
    return whole


def _require_alike(sources: Mapping[str, Source]) -> None:
    """Raise unless all hold the same kind of samples, and say the same of them."""
    parts = list(sources.values())
    for part in parts[1:]:
        if part.kind != parts[0].kind:
            raise SamplesError(f"{parts[0].name} holds {parts[0].kind}, {part.name} {part.kind}; give the same everywhere")
    for what, column in (("labels", "label_column"), ("train", "split_column"), ("block", "block_column")):
        has = [getattr(part, what) is not None for part in parts]
        if any(has) and not all(has):
            word = {"labels": "labels", "train": "column that says train or test", "block": "column of blocks"}[what]
            raise ColumnsError(
                f"{parts[has.index(False)].name} has no {word}, {parts[has.index(True)].name} has; name the column with "
                f"--{column.replace('_', '-')} (in Python {column}=)"
            )
    words = [part for part in parts if part.labels is not None and part.labels.dtype.kind == "U"]
    if words and len(words) < len(parts):
        number = next(part for part in parts if part not in words)
        raise LabelsError(f"labels are words in {words[0].name} and numbers in {number.name}; write them the same way everywhere")
    if parts[0].kind == COLUMNS:
        strange = next((part for part in parts[1:] if not set(part.items) & set(parts[0].items)), None)
        if strange is not None:
            raise ColumnsError(
                f"{strange.name} and {parts[0].name} have no column in common; columns go by name, and theirs are "
                f"{_listed(strange.items)} and {_listed(parts[0].items)}"
            )


def _require_no_clients(sources: Mapping[str, Source]) -> None:
    """Raise where a column with the usual name of one says that a file is of several clients."""
    for part in sources.values():
        if part.client is not None and len(set(part.client.tolist())) > 1:
            raise ColumnsError(
                f"{part.name} is one client, and has a column of several; say which one with --client-column (in Python "
                "client_column=), or name the columns to use"
            )


def _say_nearly_same(sources: Mapping[str, Source]) -> None:
    """Warn of columns whose names differ in capitals, blanks or dashes only: by name they are two."""
    alike: dict[str, dict[str, Source]] = {}
    for part in sources.values():
        for title in part.items:
            alike.setdefault(re.sub(r"[\W_]", "", title).lower(), {}).setdefault(title, part)
    for titles in alike.values():
        (one, here), *others = titles.items()
        for other, there in others:
            if one not in there.items and other not in here.items:
                warnings.warn(
                    f"{here.name} has a column {one!r}, {there.name} {other!r}: by name they are two, each missing where the "
                    "other is; if they mean the same, rename one",
                    stacklevel=5,
                )


def _listed(titles: Any) -> str:
    names = list(titles)
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
