"""What both estimators are made of: parameters, groups, heads, and the choice of a head for each sample."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from gramfold.engines import run
from gramfold.errors import GramfoldError, InputError, SharedHeadWarning
from gramfold.federation import Federation
from gramfold.heads import Head
from gramfold.methods import METHODS, Method, find_method, make_method, spec_of
from gramfold.numerics.arrays import Array
from gramfold.origin import known_rows
from gramfold.renamed import current, renamed, taken
from gramfold.sklearn_api.groups import listed, names_of, without_column
from gramfold.sklearn_api.weights import weighed, weighted
from gramfold.sources import TableEncoder, columns_of, encoded, encoded_with_remark, folded_encoder, is_complete, is_frame

SINGLE_GROUP = ""
"""The name of the only group where no groups are given."""
NESTED = "method__"
"""What the names of the method's own parameters begin with."""


@renamed(seed="random_state")
class Personalized(BaseEstimator):  # type: ignore[misc]
    """Base of both estimators: parameters, groups, heads, and the choice of head for each sample."""

    def __init__(
        self, method: str | Method = "pace", *, group_column: str | int | None = None, random_state: int = 0, device: str = "cpu"
    ) -> None:
        self.method = method
        self.group_column = group_column
        self.random_state = random_state
        self.device = device

    # --- parameters ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and with `deep` also those of the method, as method__NAME."""
        params: dict[str, Any] = super().get_params(deep=False)
        try:
            method = self._method() if deep else None
        except GramfoldError:  # an unknown name: fit says so
            method = None
        if isinstance(method, Method):
            params |= {NESTED + field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Those of the method, method__NAME, make a new method; the one that was given stays as it is."""
        own = {key: value for key, value in params.items() if not key.startswith(NESTED)}
        super().set_params(**taken(type(self), own))
        nested = {key.removeprefix(NESTED): value for key, value in params.items() if key.startswith(NESTED)}
        if nested:
            with value_errors():
                self.method = _with_parameters(self.method, nested)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(current(type(self), state))

    def _method(self) -> Method:
        return make_method(self.method) if isinstance(self.method, str) else self.method

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- what comes in ---

    def _checked(self, X: Any, groups: Any, *y: Any, counting: Any = None, **asked: Any) -> tuple[Array, Any, np.ndarray | None]:
        """The features, the targets (where there are some to check), and each sample's group by name, None without groups."""
        if y:
            self.encoder_: TableEncoder | None = None
        if self.encoder_ is not None or (y and is_frame(X) and not _is_complete(X, self.group_column)):
            checked, groups = self._encoded(X, groups, *y, counting=counting, **asked)
        else:
            with _words_for_gaps(X, self.group_column):
                checked, groups = self._validated(X, groups, *y, **asked)
        rows, targets = checked if y else (checked, None)
        return rows, targets, None if groups is None else names_of(groups, rows.shape[0])

    def _encoded(self, X: Any, groups: Any, *y: Any, counting: Any = None, **asked: Any) -> tuple[Any, Any]:
        """A frame with words, dates or gaps, whose encoder is folded over groups in fit, of the samples that have any weight."""
        if not is_frame(X):
            raise InputError(f"the model was fitted on a frame: give one with columns {listed(list(self.feature_names_in_))}")
        self._require_once(groups)
        if y:
            validate_data(self, X, *y, reset=True, skip_check_array=True)
        rows = X
        if self.group_column is not None:
            rows, groups = without_column(X, self.group_column)
        with value_errors():
            if y:
                owners = None if groups is None else names_of(groups, len(X))
                self.encoder_ = _encoder_of(rows, owners, counting)
            assert self.encoder_ is not None
            origin = self.encoder_.origin
            numbers = encoded_with_remark(origin, rows, "X")[0] if y else encoded(origin, rows, "X")
        asked |= {"estimator": self}
        checked = check_X_y(numbers, *y, **asked) if y else (check_array(numbers, **asked), None)
        known = known_rows(checked[0], origin)
        return (known, checked[1]) if y else known, groups

    def _require_once(self, groups: Any) -> None:
        if groups is not None and self.group_column is not None:
            raise InputError(f"groups are given twice, as groups= and by group_column={self.group_column!r}; leave one out")

    def _validated(self, X: Any, groups: Any, *y: Any, **asked: Any) -> tuple[Any, Any]:
        if self.group_column is None:
            checked = validate_data(self, X, *y, reset=bool(y), accept_sparse="csr", **asked)
        else:
            self._require_once(groups)
            validate_data(self, X, *y, reset=bool(y), skip_check_array=True)  # names and number of columns, the group's included
            X, groups = without_column(X, self.group_column)
            asked |= {"estimator": self, "accept_sparse": "csr"}
            checked = check_X_y(X, *y, **asked) if y else check_array(X, **asked)
        return checked, groups

    def _fit(
        self, X: Array, targets: np.ndarray, names: np.ndarray | None, weights: np.ndarray | None, labels: range | None
    ) -> Self:
        owners = np.full(X.shape[0], SINGLE_GROUP) if names is None else names
        members = {name: np.flatnonzero(owners == name) for name in np.unique(owners).tolist()}
        with value_errors():
            method = self._method()
            if not isinstance(method, Method):
                raise InputError(f"method is a name or one of gramfold's methods, not {method!r}")
            federation = Federation.from_clients(
                {name: (X[rows], targets[rows]) for name, rows in members.items()},
                test_size=0.0,
                random_state=self.random_state,
                labels=labels,
                regression=labels is None,
            )
            if weights is not None:
                federation = weighted(federation, {name: weights[rows] for name, rows in members.items()})
            result = run(method, federation, device=self.device, progress=False)
        self.heads_ = dict(result.heads)
        self.global_head_ = result.global_head
        self.groups_ = np.array(list(members))
        self.chosen_ = {name: dict(head.chosen) for name, head in result.heads.items()}
        self._grouped = names is not None
        return self

    # --- what goes out ---

    def _head(self, name: str | None) -> Head:
        if not self._grouped:
            return self.heads_[SINGLE_GROUP]
        head = self.global_head_ if name is None else self.heads_.get(name, self.global_head_)
        if head is not None:
            return head
        who = "the model was fitted with groups and is asked without" if name is None else f"group {name!r} was not seen in fit"
        raise InputError(f"{who}, and method {self._method().name!r} has no shared model")

    def _by_group(self, X: Any, groups: Any, answer: Callable[[Head, Array], Any]) -> np.ndarray:
        """`answer(head, rows)` for every group's rows, put back in the order of X."""
        check_is_fitted(self)
        X, _, names = self._checked(X, groups)
        if names is None:
            if self._grouped and self.global_head_ is not None:
                warnings.warn(
                    "the model was fitted with groups and is asked without: all samples get the shared head. Pass groups=, or "
                    "use group_column=, with which groups travel in X, to scorers too",
                    SharedHeadWarning,
                    stacklevel=3,
                )
            return np.asarray(answer(self._head(None), X))
        out: np.ndarray | None = None
        for name in np.unique(names).tolist():
            rows = np.flatnonzero(names == name)
            part = np.asarray(answer(self._head(name), X[rows]))
            if out is None:
                out = np.empty((len(names), *part.shape[1:]), part.dtype)
            out[rows] = part
        assert out is not None
        return out


@contextmanager
def value_errors() -> Iterator[None]:
    """Mistakes in what was given as scikit-learn wants them."""
    try:
        yield
    except InputError:
        raise
    except GramfoldError as error:
        raise InputError(str(error)) from error


@contextmanager
def _words_for_gaps(X: Any, group_column: str | int | None) -> Iterator[None]:
    """What to do about a frame with words or gaps where that in fit had none, of which scikit-learn only says what is wrong."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        if not is_frame(X) or _is_complete(X, group_column):
            raise
        what = str(error).splitlines()[0]
        raise InputError(f"{what}; in fit all columns were numbers without gaps: fill these, or fit on some gaps too") from error


def _is_complete(frame: Any, group_column: str | int | None) -> bool:
    """Whether a frame's columns, but for the group's, hold numbers and nothing else."""
    return is_complete(frame if group_column is None else without_column(frame, group_column)[0])


def _encoder_of(frame: Any, owners: np.ndarray | None, sample_weight: Any) -> TableEncoder:
    """The encoder that groups fold to; samples without a weight are not there."""
    table = columns_of(frame, "X")
    kept, _ = weighed(sample_weight, len(frame))
    counted = {title: values[kept] for title, values in table.items()}
    return folded_encoder(counted, None if owners is None else owners[kept], whose="X")


def _with_parameters(method: str | Method, given: dict[str, Any]) -> Method:
    """The method with some of its parameters replaced, checked as those on a command line are."""
    if not isinstance(method, str | Method):
        raise InputError(f"method is a name or one of gramfold's methods, not {method!r}")
    spec = method if isinstance(method, str) else spec_of(method)
    given = taken(find_method(spec), given)
    if isinstance(method, str) or spec in METHODS:
        checked = make_method(spec, **given)
        given = {name: getattr(checked, name) for name in given}
        return dataclasses.replace(method, **given) if isinstance(method, Method) else checked
    known = [field.name for field in dataclasses.fields(method)]
    for name in given:
        if name not in known:
            raise InputError(f"method {method.name!r} has no parameter {name}; it has: {', '.join(known)}")
    return dataclasses.replace(method, **given)
