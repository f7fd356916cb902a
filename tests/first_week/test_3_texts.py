"""Step 3: texts, as sparse TF-IDF rows."""

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.feature_extraction.text import TfidfVectorizer

import gramfold as gf

GOOD, BAD = ["great", "fine", "lovely", "bright", "warm"], ["dull", "slow", "cold", "long", "flat"]
COMMON = ["the", "a", "film", "plot", "cast", "was", "and", "with", "of", "in"]


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.choice(["good", "bad"], 240)
    written = [" ".join([*rng.choice(COMMON, 6), *rng.choice(GOOD if label == "good" else BAD, 2)]) for label in labels]
    return written, labels, rng.choice(["cinema", "forum", "press"], 240)


@pytest.mark.parametrize("method", ["pace", "afl", "apfl"])
def test_a_matrix_of_words_is_data(method, texts):
    written, labels, site = texts
    X = TfidfVectorizer().fit_transform(written)
    assert issparse(X)
    result = gf.run(method, gf.Federation.split(X, labels, ids=site))
    assert result.mean_accuracy > 0.9
    head = result.heads["forum"]
    np.testing.assert_allclose(head.predict_proba(X), head.predict_proba(X.toarray()), atol=1e-9)  # sums in another order
    assert result.join(X[:30], labels[:30], "blog").predict(X[0]).shape == (1,)
