"""Step 6: wrong input of every kind. Each is one clear line that says what is wrong, and mostly what to do."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import gramfold as gf

X, Y = load_digits(return_X_y=True)
X, Y = X[:400], Y[:400]
WORDS = X.astype(object)
WORDS[2, 5] = "red"
HOLED = X.copy()
HOLED[3, 7] = np.nan


def cut(X, y, clients=3, **options) -> gf.Federation:
    return gf.Federation.split(X, y, clients=clients, **options)


@pytest.fixture(scope="module")
def result() -> gf.Result:
    return gf.run("pace", cut(X, Y))


def fitted() -> gf.PersonalizedClassifier:
    return gf.PersonalizedClassifier("afl").fit(X, Y, groups=np.arange(400) % 2)


MISTAKES = {
    "NaN in the data": (lambda r: cut(HOLED, Y), r"sample 3 has NaN .* column 7; remove or impute"),
    "NaN after training": (lambda r: r.heads["0"].predict(HOLED), r"sample 3 has NaN .* column 7; remove or impute"),
    "NaN of a newcomer": (lambda r: r.join(HOLED, Y), "client 'newcomer': sample 3 has NaN"),
    "another width": (lambda r: r.heads["0"].predict(X[:, :9]), r"expected rows of 64 numbers, got .* \(400, 9\)"),
    "a newcomer of another width": (lambda r: r.join(X[:, :9], Y), "has 9 numbers per sample, the others 64"),
    "an unknown label": (lambda r: r.join(X[:5], [77] * 5), r"has label 77 \(sample 0\), which is not among the 10 classes"),
    "ids of None": (lambda r: cut(X, Y, ids=[None] * 400), "does not say whose sample 0 is"),
    "too few ids": (lambda r: cut(X, Y, ids=[1, 2]), r"`client` has shape \(2,\), but there are 400"),
    "ids and a partition": (lambda r: cut(X, Y, ids=Y, partition="iid"), "give one"),
    "images for PACE": (lambda r: gf.run("pace", cut(X.reshape(-1, 8, 8), Y)), r"takes features.*extract features first"),
    "a column of words": (lambda r: cut(WORDS, Y), "sample 2 has 'red' in column 5; encode that column"),
    "all words": (lambda r: cut(X.astype(str), Y), "sample 0 has '0.0' in column 0"),
    "fractions for labels": (lambda r: cut(X, Y / 3), "for continuous targets use regression=True"),
    "one label less": (lambda r: cut(X, Y[1:]), r"`labels` has shape \(399,\)"),
    "one class": (lambda r: cut(X, Y * 0), "at least two"),
    "too many clients": (lambda r: cut(X, Y, clients=300), "ask for fewer clients"),
    "samples for test=": (lambda r: gf.Federation.from_clients([(X, Y)], test_size={"0": (X, Y)}), r"such as 0.25, got dict"),
    "no such partition": (lambda r: cut(X, Y, partition="moon"), "unknown partition 'moon'; use dirichlet:ALPHA"),
    "no such method": (lambda r: gf.run("pase", cut(X, Y)), "unknown method 'pase'"),
    "a class for a method": (lambda r: gf.run(gf.PACE, cut(X, Y)), r"an instance such as gf.PACE\(\)"),
    "arrays for a federation": (lambda r: gf.run("pace", (X, Y)), "run needs a Federation, got tuple; make one by gf"),
    "a word for a number": (lambda r: gf.run(gf.AFL(penalty="1"), cut(X, Y)),
                            "afl's penalty must be a number from 0 up.*got '1'"),
    "a secure sum by yes": (lambda r: gf.run("afl", cut(X, Y), secure=True), r"secure= takes gf.SecureSum\(\), or None"),
    "noise by number": (lambda r: gf.run("afl", cut(X, Y), dp=8), r"dp= takes gf.DP\(eps=8\), or None for a run without; got 8"),
    "a word for yes or no": (lambda r: gf.PACE(learn="no"), "learn is True, False or None"),
    "no word for a regime": (lambda r: gf.PACE(regime=""), "regime"),
    "no such feature map": (lambda r: gf.run(gf.PACE(features="foo"), cut(X, Y)), "term 'foo'; use linear"),
    "no such file": (lambda r: gf.load_head("nothing"), "cannot read nothing"),
    "no such result": (lambda r: gf.load_result("nothing"), "cannot read nothing"),
    "a head by number": (lambda r: r.evaluate(X, Y, client=1), "no head of a client 1 here; there are: '0', '1', '2'"),
    "forgetting a stranger": (lambda r: r.forget(X, Y, "x"), "cannot forget 400 samples of client 'x': 0 are in this model"),
    "groups of None": (lambda r: fitted().predict(X[:1], groups=[None]), r"have no group \(None or NaN\)|whose sample 0 is"),
    "a data set for arrays": (lambda r: gf.Federation.split(X), r"cut by gf.Federation.from_dataset\(gf.load_data\(data\)"),
    "samples of several lengths": (lambda r: gf.Federation.split([[1.0], [1.0, 2.0]], [0, 1]), r"rows of series by gf.series"),
    "kernels for rows": (lambda r: gf.run(gf.PACE(features="rocket:512"), cut(X, Y)), r"gf.series\(X, 'rocket:512'\)"),
    "too few groups": (lambda r: fitted().predict(X, groups=[0, 1]), "groups"),
    "no such column": (lambda r: gf.PersonalizedClassifier(group_column=99).fit(X, Y), "X has no column 99 to take groups from"),
    "groups twice": (lambda r: gf.PersonalizedClassifier(group_column=0).fit(X, Y, groups=Y), "groups are given twice"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake, result):
    attempt, message = MISTAKES[mistake]
    with pytest.raises(gf.GramfoldError, match=message) as error:
        attempt(result)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("of", ["clients", "heads"])
def test_names_are_strings(of, result):
    with pytest.raises(KeyError, match=r"names are strings.*write \['1'\]"):
        getattr(result, of)[1]
    with pytest.raises(KeyError, match="7"):
        getattr(result, of)[7]


def test_grey_pictures_need_no_channel():
    pytest.importorskip("torch", reason="convolution needs PyTorch")
    federation = cut(X.reshape(-1, 8, 8) / 16, Y)
    head = gf.run(gf.PaceCNN(network="contrast+conv:5:4:10+split:0.4+grid:2"), federation).heads["0"]
    assert head.predict(X.reshape(-1, 8, 8)[:4] / 16).shape == (4,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing.npz"], "no such data file: nothing.npz"),
        (["run", "--methods", "pase"], "unknown method 'pase'"),
        (["run", "--clinets", "3"], "--clinets"),
        (["run", "--seeds", "0"], "--seeds"),
        (["report", "nowhere"], "nowhere"),
    ],
    ids=" ".join,
)
def test_a_mistake_on_the_command_line_is_one_line(gramfold, arguments, message):
    code, _, complained = gramfold(*arguments)
    assert code == 2
    assert complained.startswith("error: ")
    assert complained.count("\n") == 1
    assert message in complained
