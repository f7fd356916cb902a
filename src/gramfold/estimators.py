"""The scikit-learn interface: an estimator with a head for every group, and a shared head for groups not seen in fit."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gramfold.engines import run
from gramfold.errors import GramfoldError
from gramfold.federation import Federation
from gramfold.heads import Head
from gramfold.methods import METHODS, Method, make_method

SINGLE_GROUP = ""
"""The name of the only group where no groups are given."""


class _Personalized(BaseEstimator):  # type: ignore[misc]
    """Base of both estimators: groups, heads, and the choice of head for each sample."""

    def __init__(self, method: str | Method = "pace", *, seed: int = 0, device: str = "cpu") -> None:
        self.method = method
        self.seed = seed
        self.device = device

    def _method(self) -> Method:
        return make_method(self.method) if isinstance(self.method, str) else self.method

    def _fit(self, X: np.ndarray, targets: np.ndarray, groups: Any, labels: range | None) -> Self:
        names = _names(groups, len(X))
        members = {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}
        federation = Federation.from_clients(
            {name: (X[rows], targets[rows]) for name, rows in members.items()},
            test=0.0,
            seed=self.seed,
            labels=labels,
            regression=labels is None,
        )
        result = run(self._method(), federation, device=self.device)
        self.heads_ = dict(result.heads)
        self.global_head_ = result.global_head
        self.groups_ = np.array(list(members))
        self.chosen_ = {name: dict(head.chosen) for name, head in result.heads.items()}
        return self

    def _head(self, name: str) -> Head:
        if len(self.heads_) == 1 and SINGLE_GROUP in self.heads_:
            return self.heads_[SINGLE_GROUP]
        head = self.heads_.get(name, self.global_head_)
        if head is None:
            raise GramfoldError(f"group {name!r} was not seen in fit, and method {self._method().name!r} has no shared model")
        return head

    def _by_group(self, X: Any, groups: Any, answer: Any) -> np.ndarray:
        """`answer(head, rows)` for every group's rows, put back in the order of X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        names = _names(groups, len(X))
        out: np.ndarray | None = None
        for name in np.unique(names).tolist():
            rows = np.flatnonzero(names == name)
            part = np.asarray(answer(self._head(name), X[rows]))
            if out is None:
                out = np.empty((len(X), *part.shape[1:]), part.dtype)
            out[rows] = part
        assert out is not None
        return out


def _names(groups: Any, n: int) -> np.ndarray:
    if groups is None:
        return np.full(n, SINGLE_GROUP)
    names = np.asarray(groups).astype(str)
    if names.shape != (n,):
        raise GramfoldError(f"groups must name one group per sample: got shape {names.shape} for {n} samples")
    return names


def _has_probabilities(estimator: "PersonalizedClassifier") -> bool:
    method = estimator.method
    kind = METHODS.get(method) if isinstance(method, str) else type(method)
    return kind is not None and kind.probabilistic


class PersonalizedClassifier(ClassifierMixin, _Personalized):  # type: ignore[misc]
    """A classifier with a head per group; samples of unseen groups, or without groups, get the shared head.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> site = np.arange(len(y)) % 3
    >>> model = PersonalizedClassifier().fit(X, y, groups=site)
    >>> model.score(X, y, groups=site) > 0.9
    True

    `method` is a name as in `gramfold methods`, or a method with its parameters: PersonalizedClassifier(gf.APFL(lam=0.3)).
    In searches and cross-validation `groups` travels by metadata routing (set_fit_request, set_score_request).
    """

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit every group's head. `groups` names the group of each sample; None: all samples form one group."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:  # scikit-learn's contract asks for its own kind of error
            raise ValueError("y holds only one class; classification needs at least two")
        return self._fit(X, codes, groups, range(len(self.classes_)))

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        codes = self._by_group(X, groups, lambda head, rows: head.predict_codes(rows))
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        return self._by_group(X, groups, lambda head, rows: head.predict_proba(rows))

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X, groups=groups)))


class PersonalizedRegressor(RegressorMixin, _Personalized):  # type: ignore[misc]
    """The same for continuous targets, one or several: a head per group, the shared one for unseen groups."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit every group's head. `groups` names the group of each sample; None: all samples form one group."""
        X, y = validate_data(self, X, y, y_numeric=True, multi_output=True)
        return self._fit(X, y, groups, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        return self._by_group(X, groups, lambda head, rows: head.predict(rows))

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """The coefficient of determination."""
        return float(r2_score(y, self.predict(X, groups=groups)))
