"""Targets that are more than a class or a value, from tables, data files and the command line."""

import numpy as np
import pandas as pd
import pytest

import gramfold as gf
from gramfold.federation import load_npz

TITLES = ["joy", "fear", "rage"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 4))
    scores = X @ rng.standard_normal((4, 3)) + rng.standard_normal((240, 3))
    made = pd.DataFrame(X.round(3), columns=list("wxyz"))
    made[TITLES] = (scores > 1).astype(int)
    grade = np.array(["low", "mid", "high"])[np.digitize(scores[:, 0], [-1, 1])]
    made["grade"] = pd.Categorical(grade, ["low", "mid", "high"], ordered=True)
    return made.assign(visits=rng.poisson(np.exp(scores[:, 0] / 4)), site=rng.choice(["n", "s", "e"], 240))


def test_several_columns_of_a_table_are_several_labels(frame):
    rest = frame.drop(columns=["grade", "visits"])
    federation = gf.Federation.from_clients(dict(iter(rest.groupby("site"))), label_column="joy, fear,rage", client_column="site")
    assert (federation.task.targets, federation.task.names, federation.task.inputs) == ("labels", ("joy", "fear", "rage"), 4)
    head = gf.run("pace", federation).heads["n"]
    assert head.predict(frame[list("wxyz")]).shape == (240, 3)
    with pytest.raises(gf.GramfoldError, match="has no column 'anger'"):
        gf.load_data(rest, label_column="joy,anger")
    with pytest.raises(gf.GramfoldError, match=r"sample 0 has .* for label 'w'; several labels are rows of 0 and 1"):
        gf.load_data(rest, label_column="joy,w")


def test_an_ordered_categorical_of_a_frame_keeps_its_order(frame):
    given = frame.drop(columns=[*TITLES, "visits"])
    data = gf.load_data(given, label_column="grade", client_column="site")
    assert (data.kind, data.labels) == ("ordered", ("low", "mid", "high"))
    apart = gf.Federation.from_clients(dict(iter(given.groupby("site"))), label_column="grade", client_column="site")
    assert (apart.task.targets, apart.task.labels) == ("ordered", ("low", "mid", "high"))


def test_a_survival_table_is_refused_in_one_line(frame):
    with pytest.raises(gf.GramfoldError, match="survival times"):
        gf.load_data(frame.assign(event=1, time=3.0), label_column="event,time")


def test_an_npz_file_holds_rows_of_labels(tmp_path, frame):
    path = tmp_path / "data.npz"
    np.savez(path, features=frame[list("wxyz")], labels=frame[TITLES], classes=TITLES)
    assert load_npz(path).names == tuple(TITLES)
    np.savez(path, features=frame[list("wxyz")], labels=frame["grade"].cat.codes, classes=["low", "mid", "high"])
    assert (load_npz(path, targets="ordered").labels, load_npz(path).kind) == (("low", "mid", "high"), "")
    assert load_npz(path, targets="counts").kind == "counts"


def test_the_command_line_reads_and_writes_them(frame, gramfold, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = ["--columns", "w,x,y,z", "--client-column", "site", "--methods", "pace"]
    code, out, err = gramfold("run", "t.csv", "--label-column", "joy,fear,rage", *given, "--heads", "heads")
    assert (code, "AP" in out) == (0, True), err
    assert gramfold("predict", "heads/pace/n.safetensors", "t.csv", "--out", "p.csv")[0] == 0
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert list(predicted) == ["sample", "labels", *(f"probability of {title}" for title in TITLES)]
    said = predicted["labels"].fillna("").str.split(";").map(set)
    assert set().union(*said) - {""} <= set(TITLES)
    code, out, err = gramfold(
        "run", "t.csv", "--label-column", "grade", "--targets", "ordered", "--labels", "low,mid,high", *given
    )
    assert (code, "RPS" in out) == (0, True), err
    code, out, err = gramfold("run", "t.csv", "--label-column", "visits", "--targets", "counts", *given)
    assert (code, "deviance" in out) == (0, True), err
    assert "need their order" in gramfold("run", "t.csv", "--label-column", "grade", "--targets", "ordered", *given)[2]
