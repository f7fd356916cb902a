"""A mixed table of eight hospitals, as it would come out of a spreadsheet: numbers in several units, words, and empty cells."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gramfold as gf

NAMES = [f"hospital {letter}" for letter in "ABCDEFGH"]


def table(seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """The table and its labels: thirty measurements of which one in ten is missing, a device by name, and the hospital."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(seed)
    X = X.mask(rng.random(X.shape) < 0.1)
    X["device"] = rng.choice(["old", "new"], len(X))
    X["hospital"] = rng.choice(NAMES, len(X))
    return X, y.map({0: "malignant", 1: "benign"})


def pipeline(X: pd.DataFrame, method: str = "pace") -> Pipeline:
    numbers = [name for name in X.columns if name not in ("device", "hospital")]
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(sparse_output=False), ["device"]),
        ("passthrough", ["hospital"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    return make_pipeline(prepare, gf.PersonalizedClassifier(method, group_column="hospital"))
