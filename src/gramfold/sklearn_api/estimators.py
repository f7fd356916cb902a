"""The scikit-learn interface: an estimator with a head for every group, and a shared head for groups not seen in fit."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from gramfold.errors import GramfoldError, InputError
from gramfold.methods import Method, find_method
from gramfold.sklearn_api.personalized import Personalized, value_errors
from gramfold.sklearn_api.weights import weighed
from gramfold.sources.targets import SEVERAL, kind_of, refuse_survival


def _has_probabilities(estimator: "PersonalizedClassifier") -> bool:
    method = estimator.method
    if isinstance(method, Method):
        return method.probabilistic
    try:
        return find_method(method).probabilistic
    except (GramfoldError, TypeError):
        return False


def _require_one_class_each(y: Any) -> None:
    with value_errors():
        refuse_survival(y, "y")
    if (getattr(y, "ndim", 1) == 2 and y.shape[1] > 1) or kind_of(y) == SEVERAL:
        raise InputError(
            "a classifier takes one class a sample, and y has several labels; for those run a federation: gf.run('pace', "
            "gf.Federation.split(X, y, ids=groups))"
        )


class PersonalizedClassifier(ClassifierMixin, Personalized):  # type: ignore[misc]
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
        _require_one_class_each(y)
        X, y, names = self._checked(X, groups, y, counting=sample_weight)
        check_classification_targets(y)
        kept, weights = weighed(sample_weight, len(y))
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


class PersonalizedRegressor(RegressorMixin, Personalized):  # type: ignore[misc]
    """The same for continuous targets, one or several: a head per group, the shared one for unseen groups."""

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit every group's head. `groups` and `sample_weight`: as for the classifier."""
        X, y, names = self._checked(X, groups, y, counting=sample_weight, y_numeric=True, multi_output=True)
        kept, weights = weighed(sample_weight, len(y))
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
