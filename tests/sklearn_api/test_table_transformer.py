"""The tables' encoder in scikit-learn's pipelines."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import gramfold as gf
from gramfold import InputError

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def patients():
    rng = np.random.default_rng(0)
    n = 160
    frame = pandas.DataFrame({
        "age": rng.normal(50, 10, n), "income": rng.normal(3e4, 8e3, n), "ward": rng.choice(["a", "b", "c"], n),
        "site": rng.choice(["x", "y"], n),
    })  # fmt: skip
    target = np.where(frame["age"] + 8 * (frame["ward"] == "a") + rng.normal(0, 4, n) > 53, "ill", "well")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame, target


def test_statistics_are_folded_over_groups(patients):
    X, _ = patients
    apart, pooled = gf.TableTransformer("site").fit(X), gf.TableTransformer().fit(X.drop(columns="site"))
    assert (
        apart.encoder_.columns
        == pooled.encoder_.columns
        == ["age", "age is missing", "income", "ward = a", "ward = b", "ward = c"]
    )
    ours, theirs = apart.transform(X), pooled.transform(X.drop(columns="site"))
    assert np.allclose(ours.drop(columns="site"), theirs)
    assert ours["site"].tolist() == X["site"].tolist()
    assert list(apart.get_feature_names_out()) == list(ours.columns)


def test_in_a_pipeline_with_cross_validation(patients):
    X, y = patients
    model = make_pipeline(gf.TableTransformer("site"), gf.PersonalizedClassifier(group_column="site"))
    assert cross_val_score(clone(model), X, y, cv=3).mean() > 0.75
    unseen = X.iloc[:3].assign(ward=["z", None, "a"])
    assert set(model.fit(X, y).predict(unseen)) <= {"ill", "well"}


def test_polars_too(patients):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = patients
    frame = polars.DataFrame({name: X[name].tolist() for name in X})
    model = make_pipeline(gf.TableTransformer("site"), gf.PersonalizedClassifier(group_column="site"))
    assert model.fit(frame, y).predict(frame).tolist() == model.fit(X, y).predict(X).tolist()


def test_what_it_does_not_take(patients):
    X, _ = patients
    with pytest.raises(InputError, match="takes a frame with named columns"):
        gf.TableTransformer().fit(X.to_numpy())
    with pytest.raises(InputError, match="no column 'hospital' to take groups from"):
        gf.TableTransformer("hospital").fit(X)
