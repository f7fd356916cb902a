"""The one check of data that comes in: samples, labels, values and names, from arrays, tensors, tables, lists and files.

Whatever is wrong is said in one line: `whose` it is ("client 'north'", a file's name), which sample and column, and what to do.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gramfold.errors import LabelsError, SamplesError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.sharded import ShardedRows

SAMPLES = 4096
"""How many samples are looked at together."""


def samples(values: Any, whose: str) -> Array:
    """Features (n x d, dense or sparse) or images (n x H x W x channels), finite; n x H x W is taken for grey images.

    A tensor stays one, sparse rows stay sparse (CSR), rows on disk stay there; anything else becomes a NumPy array.
    """
    if isinstance(values, ShardedRows):
        return values
    found = shaped(values, whose)
    require_finite(found, whose)
    return found


def shaped(values: Any, whose: str) -> Array:
    """The same without looking at every number."""
    found = _array(values, whose)
    if found.ndim == 3:
        found = found[..., None]
    if found.ndim not in (2, 4):
        hint = "; a single column is X.reshape(-1, 1)" if found.ndim == 1 else ""
        raise SamplesError(f"{whose}: expected features (n x d) or images (n x H x W x 3), got shape {tuple(found.shape)}{hint}")
    if not all(found.shape[1:]):
        raise SamplesError(f"{whose}: samples have no columns: the shape is {tuple(found.shape)}")
    return found


def fitting(values: Any, shape: tuple[int, ...], whose: str) -> Array:
    """Samples of a given shape, (d,) or (H, W, channels); a single one may come without the first axis."""
    found = _array(values, whose)
    if tuple(found.shape) == shape:
        found = found[None]
    elif len(shape) == 3 and (*found.shape[1:], 1) == shape:
        found = found[..., None]
    if tuple(found.shape[1:]) != shape or found.ndim != len(shape) + 1:
        wanted = f"rows of {shape[0]} numbers" if len(shape) == 1 else f"images of shape {shape}"
        raise SamplesError(f"{whose}: expected {wanted}, got an array of shape {tuple(found.shape)}")
    return found


def _array(values: Any, whose: str) -> Array:
    if arrays.is_sparse(values):
        return _sparse(values, whose)
    if arrays.is_torch(values):
        return values
    try:
        found = np.asarray(values)
    except ValueError:
        raise SamplesError(
            f"{whose}: samples differ in length; give every sample as many numbers, or make rows of series by gf.series(X)"
        ) from None
    return _numbers(found, whose)


def require_finite(found: Array, whose: str) -> None:
    """Raise, naming sample and column, if any number is NaN or infinite."""
    if arrays.is_sparse(found):
        entries = np.flatnonzero(~np.isfinite(found.data))
        if len(entries):
            place = int(entries[0])
            sample = int(np.searchsorted(found.indptr, place, side="right")) - 1
            raise SamplesError(_not_finite(whose, sample, (int(found.indices[place]),)))
        return
    if not (found.is_floating_point() if arrays.is_torch(found) else found.dtype.kind == "f"):
        return
    for start in range(0, len(found), SAMPLES):
        block = found[start : start + SAMPLES]
        with np.errstate(over="ignore", invalid="ignore"):  # a sum shows in one pass that nothing is wrong
            if np.isfinite(float(block.sum())):
                continue
        numbers = arrays.to_numpy(block)
        wrong = np.argwhere(~np.isfinite(numbers))
        if len(wrong):
            sample, *place = wrong[0].tolist()
            raise SamplesError(_not_finite(whose, start + sample, tuple(place)))


def _not_finite(whose: str, sample: int, place: tuple[int, ...]) -> str:
    where = f"column {place[0]}" if len(place) == 1 else f"pixel {place}"
    return f"{whose}: sample {sample} has NaN or infinite values, first in {where}; remove or impute them"


def _sparse(values: Any, whose: str) -> csr_array:
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise SamplesError(f"{whose}: sparse samples must be rows of numbers, got {values.dtype} of shape {values.shape}")
    found = csr_array(values)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def _numbers(found: np.ndarray, whose: str) -> np.ndarray:
    """The array, which must hold numbers; a table's mixed columns become float64 if all of them are."""
    if found.dtype.kind in "fiub":
        return found
    if found.dtype.kind == "O":
        try:
            return found.astype(np.float64)
        except (TypeError, ValueError):
            pass
    for place, value in np.ndenumerate(found) if found.dtype.kind in "OUS" else ():
        if not _is_number(value):
            sample, column = (*place, 0, 0)[:2]
            value = getattr(value, "item", lambda value=value: value)()  # a NumPy string as plain text
            raise SamplesError(
                f"{whose}: samples must be numbers, but sample {sample} has {value!r} in column {column}; encode that column or "
                "leave it out"
            )
    raise SamplesError(f"{whose}: samples must be numbers, got dtype {found.dtype}; convert them with astype(float)")


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


# --- what samples come with ---


def labels(values: Any, n: int, whose: str) -> np.ndarray:
    """Class numbers or names, one for each of n samples."""
    found = arrays.to_numpy(values)
    if found.dtype.kind == "S":
        found = found.astype(str)
    _require_one_each(found, n, "labels", whose)
    if found.dtype.kind == "O":
        missing = [i for i, label in enumerate(found.tolist()) if label is None or label != label]
        if missing:
            raise LabelsError(f"{whose}: sample {missing[0]} has no label; leave it out")
        if all(isinstance(label, str) for label in found.tolist()):
            found = found.astype(str)
    if found.dtype.kind == "f":
        wrong = np.flatnonzero(~(found == np.rint(found)) | ~np.isfinite(found))
        if len(wrong):
            raise LabelsError(
                f"{whose}: labels must be class numbers or names, found fractions or NaN (sample {wrong[0]}: "
                f"{found[wrong[0]]:g}); for continuous targets use regression=True (--regression)"
            )
        found = found.astype(np.int64)
    if found.dtype.kind not in "iubU":
        raise LabelsError(f"{whose}: labels must be class numbers or names, got dtype {found.dtype}")
    return found


def encode(found: np.ndarray) -> tuple[np.ndarray, tuple[int | str, ...]]:
    """Class codes 0..C-1 of checked labels, and the labels they stand for, in sorted order."""
    known, codes = np.unique(found, return_inverse=True)
    names = known if known.dtype.kind == "U" else known.astype(int)
    return codes.reshape(found.shape), tuple(names.tolist())


def values(given: Any, n: int, outputs: int | None, whose: str) -> np.ndarray:
    """Continuous targets as n rows of float64, finite; `outputs` of them, where that is known."""
    found = arrays.to_numpy(given)
    try:
        found = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise LabelsError(f"{whose}: targets must be numbers, got dtype {found.dtype}") from None
    if found.ndim == 0 or len(found) != n:
        raise LabelsError(f"{whose} has {n} samples but {found.size if found.ndim < 2 else len(found)} targets")
    found = found.reshape(n, int(np.prod(found.shape[1:], dtype=np.int64)))
    if outputs is not None and found.shape[1] != outputs:
        raise LabelsError(f"{whose} has {found.shape[1]} targets per sample, the others {outputs}")
    wrong = np.flatnonzero(~np.isfinite(found).all(1))
    if len(wrong):
        raise LabelsError(f"{whose} has targets that are NaN or infinite, first at sample {wrong[0]}; remove them")
    return found


def names(given: Any, n: int, what: str, whose: str) -> np.ndarray:
    """A name for each of n samples, as text; whole numbers lose their decimal point, and nobody is called NaN."""
    found = arrays.to_numpy(given)
    _require_one_each(found, n, what, whose)
    missing = [i for i, name in enumerate(found.tolist()) if name is None or name != name] if found.dtype.kind in "fO" else []
    if missing:
        raise SamplesError(f"{whose}: `{what}` does not say whose sample {missing[0]} is; name somebody or leave it out")
    if found.dtype.kind == "f" and (found == np.rint(found)).all():
        found = found.astype(np.int64)
    return found.astype(str)


def _require_one_each(found: np.ndarray, n: int, what: str, whose: str) -> None:
    if found.shape != (n,):
        hint = ""
        if found.ndim == 2 and len(found) == n:
            hint = "; use .ravel()" if found.shape[1] == 1 else _of_rows(found)
        raise LabelsError(f"{whose}: `{what}` has shape {found.shape}, but there are {n} samples{hint}")


def _of_rows(found: np.ndarray) -> str:
    """What to do with rows where one label each was expected."""
    marks = found.dtype.kind in "iubf" and bool(np.isin(found, (0, 1)).all())
    if not marks:
        return "; for values use regression=True"
    several = "targets='labels' (--targets labels)"
    if (found.sum(1) == 1).all():
        return f"; for one-hot rows use .argmax(1); if a sample may have several of these labels, say {several}"
    return f"; several labels a sample are rows of 0 and 1: {several}"
