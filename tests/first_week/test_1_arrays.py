"""Step 1: arrays. The first lines that anyone types, and what they print."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import gramfold as gf


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def result(digits) -> gf.Result:
    return gf.run("pace", gf.Federation.split(*digits, clients=10, partition="dirichlet:0.1"))


def test_the_first_result_fits_a_screen(result):
    lines = str(result).splitlines()
    assert len(lines) <= 5
    assert max(map(len, lines)) <= 130
    assert result.mean_accuracy > 0.95
    assert abs(result.leave_one_out_accuracy - result.mean_accuracy) < 0.02  # 450 test samples at .99: a standard error is .005


def test_what_is_offered_is_what_is_public():
    assert sorted(dir(gf)) == sorted(gf.__all__)


def test_a_head_is_used_saved_and_read_back(result, digits, tmp_path):
    X, y = digits
    head = result.heads["7"]
    head.save(tmp_path / "head.safetensors")
    again = gf.load_head(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X[:9]), head.predict_proba(X[:9]))
    np.testing.assert_allclose(again.predict_proba(X[:9]).sum(1), 1.0, atol=1e-12)  # ten rounded numbers
    assert again.score(X, y) == np.mean(again.predict(X) == y)


def test_a_client_joins_later(result, digits):
    X, y = digits
    assert result.join(X[:200], y[:200], "late").score(X[200:400], y[200:400]) > 0.9


def test_labels_may_be_words_and_the_data_a_frame(digits):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    X, y = pandas.DataFrame(digits[0][:400]), pandas.Series(words[digits[1][:400]])
    result = gf.run("pace", gf.Federation.split(X, y, clients=3, partition="iid"))
    assert set(result.heads["0"].predict(X)) <= set(words)


def test_whose_each_sample_is_may_be_given(digits):
    X, y = digits
    site = np.array(["north", "south", "west"])[np.arange(len(y)) % 3]
    assert set(gf.run("afl", gf.Federation.split(X, y, ids=site)).clients) == {"north", "south", "west"}
