"""A head as a scikit-learn estimator, in a joblib file."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from gramfold import wire
from gramfold.errors import HeadError
from gramfold.heads import Head
from gramfold.imports import require
from gramfold.wire import Packet


class _Fitted(BaseEstimator):  # type: ignore[misc]
    """A head that was made elsewhere: it predicts, and fitting it again is refused. It travels as its own file's bytes."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.n_features_in_ = head.inputs

    def fit(self, X: Any, y: Any = None) -> Self:
        raise HeadError("this estimator is an exported head: fit a PersonalizedClassifier, or run gramfold, for a new one")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {"head": self.head.pack().to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _Fitted.__init__(self, Head.unpack(Packet.from_bytes(state["head"])))

    def predict(self, X: Any) -> np.ndarray:
        return self.head.predict(X)


class HeadClassifier(ClassifierMixin, _Fitted):  # type: ignore[misc]
    """A classifier's head: predict, predict_proba (PACE's), decision_function, score."""

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.head.labels)

    def decision_function(self, X: Any) -> np.ndarray:
        return self.head.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.head.predict_proba(X)


class HeadRegressor(RegressorMixin, _Fitted):  # type: ignore[misc]
    """A regressor's head."""


def write_sklearn(head: Head, path: Path) -> None:
    """A file for `joblib.load`, which runs code in it: take such files only from people you trust. gramfold must be installed
    where it is read."""
    if head.kind != "linear":
        raise HeadError("a trained network is not exported to scikit-learn; use --torch")
    joblib = require("joblib", "torch", "exporting to scikit-learn")  # comes with scikit-learn
    temporary = path.with_name(f".{path.name}.part")
    joblib.dump(HeadRegressor(head) if head.labels is None else HeadClassifier(head), temporary)
    wire.write_atomically(path, temporary.read_bytes(), public=True)
    temporary.unlink()
