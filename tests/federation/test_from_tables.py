"""Federations of tables, frames and data sets, given by name."""

import numpy as np
import pytest

import gramfold as gf
from gramfold import GramfoldError
from gramfold.errors import LabelsError
from gramfold.federation import load_npz
from planted import found_in, write_tables

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture(scope="module")
def frames():
    made = {}
    for seed, name in enumerate(("north", "south")):
        rng = np.random.default_rng(seed)
        age, ward = rng.normal(50, 10, 80), rng.choice(["day", "icu"], 80)
        ill = np.where(age + 8 * (ward == "icu") + rng.normal(0, 4, 80) > 53, "ill", "well")
        made[name] = pandas.DataFrame({"age": np.where(rng.random(80) < 0.1, np.nan, age), "ward": ward, "outcome": ill})
    return made


def same(one, other) -> bool:
    assert one.task.origin == other.task.origin
    pairs = [(mine, theirs) for mine, theirs in zip(one, other, strict=True)]
    return all(
        mine.name == theirs.name
        and np.array_equal(mine.train().inputs, theirs.train().inputs)
        and np.array_equal(mine.test().targets, theirs.test().targets)
        for mine, theirs in pairs
    )


def test_all_ways_to_give_tables_are_one(frames, tmp_path):
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    whole = pandas.concat([frame.assign(site=name) for name, frame in frames.items()], ignore_index=True)
    given = {"label_column": "outcome"}
    wanted = gf.Federation.from_clients(frames, **given)
    forms = [
        tmp_path, str(tmp_path / "*.csv"), [tmp_path / "north.csv", tmp_path / "south.csv"],
        {"north": frames["north"], "south": tmp_path / "south.csv"},
        {name: frame.to_dict("list") for name, frame in frames.items()},
        {name: gf.load_data(frame, **given) for name, frame in frames.items()},
    ]  # fmt: skip
    for form in forms:
        assert same(gf.Federation.from_clients(form, **given), wanted)
    assert same(gf.Federation.from_clients(whole, **given, client_column="site"), wanted)
    beside = {name: (frame.drop(columns="outcome"), frame["outcome"]) for name, frame in frames.items()}
    assert same(gf.Federation.from_clients(beside), wanted)
    assert same(gf.Federation.from_dataset(gf.load_data(frames, **given)), wanted)


def test_test_rows_of_their_own_have_no_say_in_the_encoder(frames):
    train = {name: (frame[:60].drop(columns="outcome"), frame[:60]["outcome"]) for name, frame in frames.items()}
    both = {
        name: (*train[name], frame[60:].drop(columns="outcome").assign(age=1e6), frame[60:]["outcome"])
        for name, frame in frames.items()
    }
    federation = gf.Federation.from_clients(both)
    assert [client.test().n for client in federation] == [20, 20]
    assert federation.task.origin == gf.Federation.from_clients(train, test_size=0.0).task.origin


def test_frames_of_numbers_beside_their_labels_stay_as_they_are(frames):
    numbers = {name: (frame[["age"]].fillna(50.0), frame["outcome"]) for name, frame in frames.items()}
    federation = gf.Federation.from_clients(numbers, test_size=0.0)
    assert federation.task.origin is None
    assert federation.clients[0].train().inputs.tolist() == numbers["north"][0].to_numpy().tolist()


def test_data_sets_of_features(tmp_path):
    rng = np.random.default_rng(0)
    made = {}
    for name in ("north", "south"):
        np.savez(tmp_path / f"{name}.npz", features=rng.normal(size=(30, 4)), labels=np.arange(30) % 3, classes=list("abc"))
        made[name] = (rng.normal(size=(30, 4)), np.array(list("abc") * 10))
    paths = {name: tmp_path / f"{name}.npz" for name in made}
    federation = gf.Federation.from_clients(paths)
    assert (federation.task.labels, len(federation)) == (("a", "b", "c"), 2)
    assert gf.Federation.from_clients({**made, "south": paths["south"]}).task.labels == ("a", "b", "c")
    loaded = {name: load_npz(path) for name, path in paths.items()}
    with pytest.raises(GramfoldError, match=r"client 'north': north.npz has classes for labels; leave out regression=True"):
        gf.Federation.from_clients(loaded, regression=True)


def test_what_does_not_go_together(frames, tmp_path):
    arrays = (np.eye(4), [0, 1, 0, 1])
    with pytest.raises(GramfoldError, match="client 'north' is a table and client 'x' is numbers already; give all as tables"):
        gf.Federation.from_clients({"x": arrays, **frames}, label_column="outcome")
    with pytest.raises(GramfoldError, match="label_column= is for clients given as tables, and these are numbers already"):
        gf.Federation.from_clients({"x": arrays}, label_column="outcome")
    with pytest.raises(LabelsError):
        gf.Federation.from_clients(frames, label_column="outcome", labels=["ill", "well"])
    encoded = [gf.load_data(frame, label_column="outcome").inputs for frame in frames.values()]
    with pytest.raises(GramfoldError, match=r"client 'b' has inputs from table .*, client 'a' from table .*; use one for all"):
        gf.Federation.from_clients({"a": (encoded[0], [0, 1] * 40), "b": (encoded[1], [0, 1] * 40)})
    with pytest.raises(GramfoldError, match=r"client 'north': .*north.txt is no table; give one of .csv"):
        gf.Federation.from_clients({"north": tmp_path / "north.txt"})
    with pytest.raises(
        GramfoldError, match="label_column= is one text; of several columns of labels write label_column='outcome,ward'"
    ):
        gf.Federation.from_clients(frames, label_column=["outcome", "ward"])
    with pytest.raises(GramfoldError, match="client 'south' is None; give its table, or leave it out"):
        gf.Federation.from_clients({"north": frames["north"], "south": None}, label_column="outcome")
    with pytest.raises(GramfoldError, match="cannot read samples of a int; give a path, a frame, or a mapping of columns"):
        gf.load_data(7)


def test_the_old_way_to_name_columns_is_taken_with_a_warning(frames):
    with pytest.warns(FutureWarning, match=r"write label_column=\.\.\., client_column=\.\.\., and columns=\[\.\.\.\] for those"):
        old = gf.load_data(frames["north"], columns=gf.Columns(label="outcome"))
    assert np.array_equal(old.inputs, gf.load_data(frames["north"], label_column="outcome").inputs)
    with pytest.raises(GramfoldError, match=r"columns= lists those to use; for 'age' alone write columns=\['age'\]"):
        gf.load_data(frames["north"], label_column="outcome", columns="age")


@pytest.mark.filterwarnings("ignore:column .* it is not used")
def test_files_apart_keep_their_words_to_themselves(tmp_path):
    """As one table that names its clients does: rare words, IDs and free text are in nothing that is written or said."""
    paths = write_tables(tmp_path / "data")
    (tmp_path / "data" / "all.csv").unlink()
    federation = gf.Federation.from_clients(tmp_path / "data", label_column="sick")
    result = gf.run("pace", federation)
    result.save(tmp_path / "out")
    with pytest.warns(UserWarning, match=r"north.csv: in \d+ of 80 rows column 'ward' has a word") as said:
        result.heads["north"].predict(paths["north"])
    written = [repr((federation, result)), *(str(warning.message) for warning in said)]
    (tmp_path / "out" / "said.txt").write_text("\n".join(written), encoding="utf-8")
    assert found_in(tmp_path / "out") == []
