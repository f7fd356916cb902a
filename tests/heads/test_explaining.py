"""Effects sum to the prediction less the baseline, are the weights of a linear model, and those of a table bear its names."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import features
from gramfold.errors import HeadError
from gramfold.features.ways import Way
from gramfold.heads import Stream
from gramfold.numerics import arrays

MAPS = ["raw+bias+linear", "bias+linear", "fourier:30", "relu:20", "bias+linear+fourier:9:0.5", "tanh:8", "raw+gelu:7"]


def head_of(text: str, labels=None, **more) -> gf.Head:
    drawn = features.draw(features.parse(text), 5, seed=3)
    weights = np.random.default_rng(1).standard_normal((drawn.dim, 1 if labels is None else len(labels)))
    return gf.Head([Stream(drawn, weights, 0.7)], labels, **more)


@given(st.sampled_from(MAPS), st.integers(0, 2**31))
def test_effects_sum_to_the_prediction_less_the_baseline(text, seed):
    rng = np.random.default_rng(seed)
    X, compared = rng.standard_normal((4, 5)), rng.standard_normal((3, 5))
    made = head_of(text)
    found = made.explain(X, baseline=compared)
    assert found.exact
    np.testing.assert_allclose(found.effects.sum(1), found.prediction - found.baseline, atol=1e-9)
    np.testing.assert_allclose(found.prediction, made.predict(X), atol=1e-12)
    np.testing.assert_allclose(found.baseline, made.predict(compared.mean(0)[None])[0], atol=1e-12)


@given(st.sampled_from(["raw+fourier:30", "raw+tanh:8", "raw+gelu:7"]), st.integers(0, 2**31))
def test_they_are_the_gradient_integrated_along_the_way(text, seed):
    """Midpoints of 400 steps: off by the second derivative over 400^2."""
    rng = np.random.default_rng(seed)
    made, a, b = head_of(text), rng.standard_normal(5), rng.standard_normal(5)
    steps, small = (np.arange(400) + 0.5) / 400, 1e-5
    points = a + steps[:, None] * (b - a)
    slopes = [
        (made.predict(points + small * unit) - made.predict(points - small * unit)).mean() / (2 * small) for unit in np.eye(5)
    ]
    np.testing.assert_allclose(made.explain(b, baseline=a[None]).effects[0], slopes * (b - a), atol=1e-4)


def test_a_linear_models_effects_are_its_weights_times_the_differences(rng):
    made, X = head_of("raw+bias+linear"), rng.standard_normal((6, 5))
    np.testing.assert_allclose(made.explain(X).effects, X * 0.7 * made.streams[0].weights[1:, 0], atol=1e-12)


def test_what_is_explained_of_classes(rng):
    X = rng.standard_normal((6, 5))
    two = head_of("relu:20", ("no", "yes"), probabilistic=True, temperature=0.5)
    shares = two.predict_proba(X)
    np.testing.assert_allclose(two.explain(X).prediction, np.log(shares[:, 1] / shares[:, 0]), atol=1e-9)
    np.testing.assert_allclose(two.explain(X, of="no").effects, -two.explain(X, of="yes").effects, atol=1e-12)
    three = head_of("relu:20", ("a", "b", "c"), offset=np.array([0.0, 1.0, -np.inf]))
    assert three.explain(X).of == three.predict(X).tolist()
    of_a = three.explain(X, of="a")
    np.testing.assert_allclose(of_a.effects.sum(1), of_a.prediction - of_a.baseline, atol=1e-9)
    with pytest.raises(gf.GramfoldError, match="no class 'd'; it has: a, b, c"):
        three.explain(X, of="d")


@pytest.mark.parametrize(
    "method", ["pace", gf.PACE(learn=False), "apfl", "fedhip", "localclasses", "local", gf.AFL("bias+linear+fourier:64")]
)
@pytest.mark.parametrize("kind", ["classes", "two classes", "values"])
def test_every_method_is_explained_exactly(method, kind, blobs):
    X, codes = blobs
    y = {"classes": codes, "two classes": codes % 2, "values": X @ np.arange(8.0) + np.sin(X[:, 0])}[kind]
    if method == "localclasses" and kind == "values":
        pytest.skip("it is for classes")
    head = gf.run(method, gf.Federation.split(X, y, clients=3, partition="iid", regression=kind == "values")).heads["1"]
    found = head.explain(X[:20])
    assert found.exact
    np.testing.assert_allclose(found.effects.sum(1), found.prediction - found.baseline, atol=1e-7)


def test_layers_are_explained_by_differences_and_say_so(blobs):
    X, y = blobs
    head = gf.run(gf.DeepAFL(), gf.Federation.split(X, y, clients=3, partition="iid")).heads["1"]
    found = head.explain(X[:5], of=2)
    assert not found.exact
    changed = X[:5].copy()
    changed[:, 3] = 0.0
    scores, before = (arrays.to_numpy(head.scores(part)) for part in (X[:5], changed))
    gone = (scores - before) / head.temperature
    np.testing.assert_allclose(found.effects[:, 3], gone[:, 2] - gone.mean(1), atol=1e-9)
    assert "need not add up" in repr(found)


def test_a_map_without_shares_is_told_from_others(rng):
    landmarks = features.draw(features.Nystroem(rng.standard_normal((4, 5))), 5, seed=0)
    with pytest.raises(TypeError, match="has no shares"):
        Way(landmarks, np.zeros((1, 5)), np.ones((1, 5)))


@pytest.fixture(scope="module")
def table() -> dict[str, list]:
    rng = np.random.default_rng(5)
    age, sex = rng.normal(60, 10, 300), rng.choice(["f", "m"], 300)
    died = rng.random(300) < 1 / (1 + np.exp(-(age - 60) / 5 - 2 * (sex == "m")))
    return {
        "age": age.round(1).tolist(), "sex": sex.tolist(), "noise": rng.standard_normal(300).tolist(),
        "died": np.where(died, "yes", "no").tolist(), "site": ["a", "b", "c"] * 100,
    }  # fmt: skip


@pytest.fixture(scope="module")
def table_head(table) -> gf.Head:
    data = gf.load_data(table, label_column="died", client_column="site")
    return gf.run("pace", gf.Federation.from_dataset(data, 3)).heads["a"]


def test_a_tables_columns_have_their_names_and_a_category_is_one(table, table_head):
    found = table_head.explain(table)
    assert list(found.columns) == ["age", "noise", "sex"]
    assert next(iter(found.importance)) == "age"
    np.testing.assert_allclose(found.effects.sum(1), found.prediction - found.baseline, atol=1e-7)
    older = table_head.explain([{"age": 80, "sex": "m", "noise": 0.0}])
    effects = older.rows()[0]
    assert effects["age"] > effects["sex"] > 0, "both speak for it"
    assert "log-odds of yes" in repr(older)
    assert "age" in repr(found)


def test_an_explanation_is_a_frame_and_plain_values(table, table_head):
    found = table_head.explain(table)
    assert list(found.to_frame().columns) == ["of", "prediction", "baseline", "age", "noise", "sex"]
    assert json.loads(json.dumps(found.to_dict()))["samples"][3]["age"] == found.effects[3, 0]
    assert len(found[3]) == len(found[-1]) == 1
    assert len(found[:7]) == 7
    assert repr(found[3]).startswith("Prediction")


def test_images_have_no_columns(monkeypatch):
    made = head_of("relu:20", (0, 1))
    monkeypatch.setattr(gf.Head, "shape", (1, 5, 1))
    with pytest.raises(HeadError):
        made.explain(np.zeros((1, 1, 5, 1)))
