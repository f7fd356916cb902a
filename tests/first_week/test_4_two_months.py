"""Step 4: two months of data. Save, come back in another process, add the new month, forget what must go."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import gramfold as gf

Samples = tuple[np.ndarray, np.ndarray]
MONTHS = np.array_split(np.random.default_rng(0).permutation(1797), 3)


@pytest.fixture(scope="module")
def parts() -> list[dict[str, Samples]]:
    """Each month's samples of three clients; the third month is for tests."""
    X, y = load_digits(return_X_y=True)
    months = [dict(zip(("north", "south", "west"), np.array_split(rows, 3), strict=True)) for rows in MONTHS]
    return [{name: (X[rows], y[rows]) for name, rows in month.items()} for month in months]


def joined(*both) -> Samples:
    X, y = (np.concatenate(part) for part in zip(*both, strict=True))
    return X, y


def test_the_second_month(parts, tmp_path):
    first, second, third = parts
    features = "bias+linear"  # the same in all runs: PACE's own choice goes by the number of samples
    gf.run(gf.PACE(features=features), gf.Federation.from_clients(first, test_size=0.0)).save(tmp_path / "kept")

    result = gf.load_result(tmp_path / "kept")
    assert result.leave_one_out_accuracy > 0.9  # no test samples, and still a figure
    more = result.update(add=second)
    assert "1198 samples of 3 clients" in str(more)
    head = more.personalize(*joined(first["north"], second["north"]), "north")
    assert head.score(*third["north"]) > 0.9

    both = {name: joined(first[name], second[name]) for name in first}
    at_once = gf.run(gf.PACE(features=features), gf.Federation.from_clients(both, test_size=0.0))
    X = third["south"][0]
    np.testing.assert_allclose(
        more.global_head.scores(X), at_once.global_head.scores(X), rtol=1e-6, atol=1e-6
    )  # sums in another order
    with pytest.raises(gf.GramfoldError, match=r"samples of client 'north' are in this model and .* were given; give those"):
        more.personalize(*second["north"], name="north")


def test_what_is_forgotten_was_never_there(parts):
    first, second, third = parts
    method = gf.PACE(features="bias+linear")
    result = gf.run(method, gf.Federation.from_clients(first, test_size=0.0)).update(add=second)
    less = (
        result.forget(*second["west"], name="west").forget(*first["south"], name="south").forget(*second["south"], name="south")
    )
    left = {"north": joined(first["north"], second["north"]), "west": first["west"]}
    never = gf.run(method, gf.Federation.from_clients(left, test_size=0.0))
    X = third["south"][0]
    np.testing.assert_allclose(
        less.global_head.scores(X), never.global_head.scores(X), rtol=1e-6, atol=1e-6
    )  # sums and differences
    with pytest.raises(gf.GramfoldError, match="0 are in this model"):
        less.forget(*first["south"], name="south")


def test_a_client_of_a_simulation_leaves(parts):
    X, y = load_digits(return_X_y=True)
    federation = gf.Federation.split(X, y, clients=4, partition="iid")
    result = gf.run("pace", federation).without("2", federation)
    assert set(result.heads) == {"0", "1", "3"}
    assert result.mean_accuracy > 0.9
