"""The tables' encoder as a scikit-learn transformer, for pipelines with the estimators."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramfold.errors import InputError
from gramfold.sources import RELEASE_WORDS, columns_of, folded_encoder


class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Frames with missing values and categories as numbers, by statistics that are folded over groups.

    `group_column` names the column that says whose a row is: it stays as it is, for an estimator with the same `group_column`.
    A word has a column only where `release_words` rows of one group have it.

    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from gramfold import PersonalizedClassifier
    >>> X = pd.DataFrame({"age": [40, 60, None, 50] * 9, "sex": list("ffmm") * 9, "site": list("abc") * 12})
    >>> y = ["well", "ill", "ill", "well"] * 9
    >>> model = make_pipeline(TableTransformer("site"), PersonalizedClassifier(group_column="site")).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    def __init__(self, group_column: str | None = None, release_words: int = RELEASE_WORDS) -> None:
        self.group_column = group_column
        self.release_words = release_words

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fold the groups' statistics; what they are made of is not kept."""
        table, groups = self._table(X)
        self.encoder_ = folded_encoder(table, groups, self.release_words, "X")
        return self

    def transform(self, X: Any) -> Any:
        """A frame of the same kind: the encoder's columns, and the groups' where there is one."""
        check_is_fitted(self)
        table, groups = self._table(X)
        encoded: dict[str | None, np.ndarray] = dict(zip(self.encoder_.columns, self.encoder_(table).T, strict=True))
        made = type(X)(encoded if groups is None else {**encoded, self.group_column: groups})
        if hasattr(X, "index"):  # pandas: rows keep their names
            made.index = X.index
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        check_is_fitted(self)
        own = [] if self.group_column is None else [self.group_column]
        return np.array([*self.encoder_.columns, *own], dtype=object)

    def _table(self, X: Any) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        if not hasattr(X, "columns"):
            raise InputError("TableTransformer takes a frame with named columns, of pandas or polars")
        table = dict(columns_of(X))
        if self.group_column is None:
            return table, None
        if self.group_column not in table:
            raise InputError(f"X has no column {self.group_column!r} to take groups from; it has: {', '.join(table)}")
        return table, table.pop(self.group_column)
