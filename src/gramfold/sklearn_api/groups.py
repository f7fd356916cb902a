"""Groups: a column of X that names them, or a name for every sample."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gramfold.errors import InputError
from gramfold.numerics.arrays import is_sparse, to_numpy


def without_column(X: Any, column: str | int) -> tuple[Any, Any]:
    """X without the column that names groups, and that column."""
    if hasattr(X, "columns"):
        columns = list(X.columns)
        place = column if column not in columns and isinstance(column, int | np.integer) else None
        if place is not None and -len(columns) <= place < len(columns):
            column = columns[place]
        if column not in columns:
            raise InputError(f"X has no column {column!r} to take groups from; it has: {listed(columns)}")
        return X[[name for name in columns if name != column]], X[column]
    table = csr_array(X) if is_sparse(X) else X if hasattr(X, "shape") else np.array(X, dtype=object)
    if not isinstance(column, int | np.integer):
        raise InputError(f"group_column={column!r} names a column, but X has no column names; give a DataFrame, or a number")
    if table.ndim != 2:
        return table, None  # scikit-learn's own check says what is wrong
    if not -table.shape[1] <= column < table.shape[1]:
        raise InputError(f"X has no column {column} to take groups from; it has {table.shape[1]}, counted from 0")
    if is_sparse(table):
        others = np.delete(np.arange(table.shape[1]), column)
        return table[:, others], to_numpy(table[:, [column]])[:, 0]
    table = np.asarray(table)
    return np.delete(table, column, axis=1), table[:, column]


def names_of(groups: Any, n: int) -> np.ndarray:
    """Every sample's group as a text; whole numbers are called the same whatever their type: 3, 3.0 and "3" are one group."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InputError(f"groups must name one group per sample: got shape {values.shape} for {n} samples")
    if values.dtype.kind in "iubUS":
        return values.astype(str)
    listed = values.tolist() if values.dtype.kind in "Of" else list(values)
    missing = [place for place, value in enumerate(listed) if _is_missing(value)]
    if missing:
        raise InputError(
            f"{len(missing)} of {n} samples have no group (None or NaN), the first at row {missing[0]}; name it, or drop them"
        )
    whole = (int(value) if isinstance(value, float) and value.is_integer() else value for value in listed)
    return np.array([str(value) for value in whole])


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def listed(names: list[Any]) -> str:
    return ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
