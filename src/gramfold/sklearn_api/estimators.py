"""The scikit-learn interface: an estimator with a head for every group, and a shared head for groups not seen in fit."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from gramfold.engines import run
from gramfold.errors import GramfoldError, InputError, SharedHeadWarning
from gramfold.federation import Federation, Samples
from gramfold.heads import Head
from gramfold.methods import METHODS, Method, find_method, make_method, spec_of
from gramfold.numerics.arrays import Array, is_sparse, to_numpy
from gramfold.origin import known_rows
from gramfold.renamed import current, renamed, taken
from gramfold.sources import TableEncoder, columns_of, encoded, folded_encoder, is_complete, is_frame

SINGLE_GROUP = ""
"""The name of the only group where no groups are given."""
NESTED = "method__"
"""What the names of the method's own parameters begin with."""


@renamed(seed="random_state")
class _Personalized(BaseEstimator):  # type: ignore[misc]
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
            with _value_errors():
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
        return rows, targets, None if groups is None else _names(groups, rows.shape[0])

    def _encoded(self, X: Any, groups: Any, *y: Any, counting: Any = None, **asked: Any) -> tuple[Any, Any]:
        """A frame with words, dates or gaps, whose encoder is folded over groups in fit, of the samples that have any weight."""
        if not is_frame(X):
            raise InputError(f"the model was fitted on a frame: give one with columns {_listed(list(self.feature_names_in_))}")
        self._require_once(groups)
        if y:
            validate_data(self, X, *y, reset=True, skip_check_array=True)
        rows = X
        if self.group_column is not None:
            rows, groups = _without_column(X, self.group_column)
        with _value_errors():
            if y:
                owners = None if groups is None else _names(groups, len(X))
                self.encoder_ = _encoder_of(rows, owners, counting)
            assert self.encoder_ is not None
            origin = self.encoder_.origin
            numbers = encoded(origin, rows, "X")
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
            X, groups = _without_column(X, self.group_column)
            asked |= {"estimator": self, "accept_sparse": "csr"}
            checked = check_X_y(X, *y, **asked) if y else check_array(X, **asked)
        return checked, groups

    def _fit(
        self, X: Array, targets: np.ndarray, names: np.ndarray | None, weights: np.ndarray | None, labels: range | None
    ) -> Self:
        owners = np.full(X.shape[0], SINGLE_GROUP) if names is None else names
        members = {name: np.flatnonzero(owners == name) for name in np.unique(owners).tolist()}
        with _value_errors():
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
                federation = _weighted(federation, {name: weights[rows] for name, rows in members.items()})
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
def _value_errors() -> Iterator[None]:
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
    return is_complete(frame if group_column is None else _without_column(frame, group_column)[0])


def _encoder_of(frame: Any, owners: np.ndarray | None, sample_weight: Any) -> TableEncoder:
    """The encoder that groups fold to; samples without a weight are not there."""
    table = columns_of(frame, "X")
    kept, _ = _counting(sample_weight, len(frame))
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


# --- groups ---


def _without_column(X: Any, column: str | int) -> tuple[Any, Any]:
    """X without the column that names groups, and that column."""
    if hasattr(X, "columns"):
        columns = list(X.columns)
        place = column if column not in columns and isinstance(column, int | np.integer) else None
        if place is not None and -len(columns) <= place < len(columns):
            column = columns[place]
        if column not in columns:
            raise InputError(f"X has no column {column!r} to take groups from; it has: {_listed(columns)}")
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


def _names(groups: Any, n: int) -> np.ndarray:
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


def _listed(names: list[Any]) -> str:
    return ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")


# --- weights ---


def _counting(sample_weight: Any, n: int) -> tuple[np.ndarray | slice, np.ndarray | None]:
    """Which samples have any weight, and their weights; None where all count once."""
    if sample_weight is None:
        return slice(None), None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sample_weight must hold numbers, one per sample") from None
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise InputError(f"sample_weight must hold one number per sample: got shape {weights.shape} for {n} samples")
    if not (np.isfinite(weights).all() and weights.min() >= 0):
        raise InputError("sample_weight must hold finite numbers, none of them negative")
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise InputError("sample_weight is zero for all samples; at least one must have a weight")
    weights = weights[kept]
    return kept, None if (weights == 1).all() else weights


def _weighted(federation: Federation, weights: dict[str, np.ndarray]) -> Federation:
    """The federation with its training samples weighted; of how many samples it is goes by their sum."""
    clients = [
        dataclasses.replace(client, train=partial(_with_weights, client.train, weights[client.name])) for client in federation
    ]
    total = sum(float(part.sum()) for part in weights.values())
    return dataclasses.replace(federation, clients=clients, task=dataclasses.replace(federation.task, samples=round(total)))


def _with_weights(train: Callable[[], Samples], weights: np.ndarray) -> Samples:
    samples = train()
    return Samples(*samples, weights, samples.blocks)


def _has_probabilities(estimator: "PersonalizedClassifier") -> bool:
    method = estimator.method
    if isinstance(method, Method):
        return method.probabilistic
    try:
        return find_method(method).probabilistic
    except (GramfoldError, TypeError):
        return False


class PersonalizedClassifier(ClassifierMixin, _Personalized):  # type: ignore[misc]
    """A classifier with a head per group; samples of unseen groups get the shared head.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> site = np.arange(len(y)) % 3
    >>> model = PersonalizedClassifier().fit(X, y, groups=site)
    >>> model.score(X, y, groups=site) > 0.9
    True

    `method` is a name as in `gramfold methods`, or a method with its parameters: PersonalizedClassifier(gf.APFL(lam=0.3)).
    Searches reach these as method__NAME:

    >>> PersonalizedClassifier("apfl").set_params(method__lam=0.3).method.lam
    0.3

    With `group_column`, the name of a column of a DataFrame or the place of one in an array, groups travel in X, and every
    scorer, pipeline and search personalises without more ado:

    >>> model = PersonalizedClassifier(group_column=-1).fit(np.column_stack([X, site]), y)
    >>> model.score(np.column_stack([X, site]), y) > 0.9
    True

    A frame with words, dates or gaps is encoded, by statistics that are folded over groups: see `TableTransformer`. So are those
    that it is asked about then, and what they lack is missing. Frames of numbers alone are taken as they are.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [40, 60, None, 50] * 9, "sex": list("ffmm") * 9, "site": list("abc") * 12})
    >>> model = PersonalizedClassifier(group_column="site").fit(X, ["well", "ill", "ill", "well"] * 9)
    >>> model.score(X, ["well", "ill", "ill", "well"] * 9) > 0.7
    True

    Otherwise `groups` travels by metadata routing (set_fit_request, set_score_request, ...), which does not reach scorers by
    name such as "roc_auc": these get the shared head, and a SharedHeadWarning says so.
    """

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit every group's head. `groups` names the group of each sample; None: all samples form one group. A sample of weight 2
        counts as two would, one of weight 0 is not there; weights on another scale are best brought to a mean of one. Where
        something is chosen by leave-one-out, a sample is left out with all its weight. Gradient methods know no weights, and say
        so. X may be sparse, but for these."""
        X, y, names = self._checked(X, groups, y, counting=sample_weight)
        check_classification_targets(y)
        kept, weights = _counting(sample_weight, len(y))
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y holds only one class (among samples with a weight); classification needs at least two")
        return self._fit(X[kept], codes, None if names is None else names[kept], weights, range(len(self.classes_)))

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        codes = self._by_group(X, groups, lambda head, rows: head.predict_codes(rows))
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        return self._by_group(X, groups, lambda head, rows: head.predict_proba(rows))

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))


class PersonalizedRegressor(RegressorMixin, _Personalized):  # type: ignore[misc]
    """The same for continuous targets, one or several: a head per group, the shared one for unseen groups."""

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit every group's head. `groups` and `sample_weight`: as for the classifier."""
        X, y, names = self._checked(X, groups, y, counting=sample_weight, y_numeric=True, multi_output=True)
        kept, weights = _counting(sample_weight, len(y))
        return self._fit(X[kept], y[kept], None if names is None else names[kept], weights, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        return self._by_group(X, groups, lambda head, rows: head.predict(rows))

    def predict_interval(self, X: Any, groups: Any = None, coverage: float = 0.9) -> np.ndarray:
        """An interval for each sample that holds so large a part of new values: n x 2, or n x outputs x 2. See Head's."""
        return self._by_group(X, groups, lambda head, rows: head.predict_interval(rows, coverage))

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination."""
        return float(r2_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))
