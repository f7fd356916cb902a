"""A head of a table takes its rows as people have them, by one door, and nothing that another encoder made."""

import pickle

import numpy as np
import pytest

import gramfold as gf
from gramfold import GramfoldError
from gramfold.origin import KnownRows, Origin, known_rows

N = 120


@pytest.fixture(scope="module")
def patients() -> dict[str, dict]:
    """Two hospitals; the south has measured no crp."""
    made = {}
    for seed, name in enumerate(("north", "south")):
        rng = np.random.default_rng(seed)
        age, ward = rng.normal(50, 10, N), rng.choice(["day", "er", "icu"], N)
        ill = (age + 8 * (ward == "icu") + rng.normal(0, 4, N) > 53).astype(int)
        made[name] = {"age": np.where(rng.random(N) < 0.1, np.nan, age), "ward": ward, "num": 2 * ill}
    made["north"]["crp"] = np.random.default_rng(9).normal(size=N)
    return made


@pytest.fixture(scope="module")
def run(patients):
    federation = gf.Federation.from_clients(patients, label_column="num > 0")
    return federation, gf.run("pace", federation)


def rows_of(patients, name, *without) -> dict:
    return {title: values for title, values in patients[name].items() if title not in ("num", *without)}


@pytest.mark.filterwarnings("ignore:.*has no column 'crp', which is taken as missing")
def test_all_forms_of_raw_rows_give_what_the_runs_own_rows_give(run, patients, tmp_path):
    """Exactly: it is the same encoder, and the same head."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    federation, result = run
    for client in federation:
        head, own = result.heads[client.name], rows_of(patients, client.name)
        own_rows = np.concatenate([client.train().inputs, client.test().inputs])
        frame = pandas.DataFrame(own)
        frame.to_csv(tmp_path / "rows.csv", index=False)
        frame.to_parquet(tmp_path / "rows.parquet")
        listed = frame.replace({np.nan: None}).to_dict("records")
        forms = [
            own,
            frame,
            polars.DataFrame(frame),
            arrow.table(own),
            tmp_path / "rows.csv",
            str(tmp_path / "rows.parquet"),
            listed,
        ]
        for form in forms:
            found = head.predict_proba(form)
            wanted = head.predict_proba(_in_order(own_rows, head.rows(form)))
            assert np.array_equal(found, wanted), type(form)
            assert head.predict(form).tolist() == np.asarray(head.labels)[wanted.argmax(1)].tolist()


def _in_order(own_rows, encoded) -> np.ndarray:
    """The run's own rows, in the order of these: a product may round a row by where it stands."""
    known = {tuple(row): place for place, row in enumerate(own_rows.tolist())}
    return own_rows[[known[tuple(row)] for row in encoded.tolist()]]


def test_a_head_that_was_saved_does_the_same(run, patients, tmp_path):
    head = run[1].heads["north"]
    head.save(tmp_path / "north.safetensors")
    again = gf.load_head(tmp_path / "north.safetensors")
    assert np.array_equal(again.predict_proba(rows_of(patients, "north")), head.predict_proba(rows_of(patients, "north")))
    gf.write_sklearn(head, tmp_path / "north.joblib")
    joblib = pytest.importorskip("joblib")
    exported = joblib.load(tmp_path / "north.joblib")
    assert np.array_equal(exported.predict_proba(rows_of(patients, "north")), head.predict_proba(rows_of(patients, "north")))


def test_a_single_row_comes_as_it_is(run, patients):
    pandas = pytest.importorskip("pandas")
    head, frame = run[1].heads["north"], pandas.DataFrame(rows_of(patients, "north"))
    wanted = head.predict_proba(frame)[7:8]
    for row in (frame.iloc[7], frame.iloc[7].to_dict(), [frame.iloc[7].to_dict()], frame[7:8]):
        assert head.predict_proba(row) == pytest.approx(wanted, rel=1e-9), "a product of one row is summed in another order"


def test_missing_columns_unused_ones_and_unknown_words_are_said_once(run, patients, recwarn):
    head = run[1].heads["north"]
    asked = {**rows_of(patients, "north", "crp"), "CRP": np.zeros(N), "phone": [f"0{i}" for i in range(N)]}
    asked["ward"] = np.where(np.arange(N) < 3, "attic", asked["ward"])
    head.predict(asked)
    said = [str(warning.message) for warning in recwarn]
    assert said == [
        f"the input of pace: it has no column 'crp' (is 'CRP' it?), which is taken as missing; in 3 of {N} rows column "
        "'ward' has a word that this head does not know"
    ]  # fmt: skip


def test_intervals_and_scores_take_raw_rows(patients):
    regression = {name: {**rows, "age": np.nan_to_num(rows["age"], nan=50.0)} for name, rows in patients.items()}
    made = gf.Federation.from_clients(regression, label_column="age", regression=True)
    head = gf.run("pace", made).heads["north"]
    rows = {title: values for title, values in regression["north"].items() if title != "age"}
    assert head.predict_interval(rows).shape == (N, 2)
    assert head.score(rows, regression["north"]["age"]) > 0
    with pytest.raises(GramfoldError, match=f"{N} samples but 1 targets to score them by"):
        head.score(rows, 50.0)


def test_numbers_of_another_encoder_are_refused(run, patients):
    federation, result = run
    head = result.heads["north"]
    other = gf.load_data(patients["north"], label_column="num > 0").inputs
    for part in (other, other[:5], other[[3, 1]], other[::2]):
        with pytest.raises(GramfoldError, match=r"comes from table columns .*, but this head was made for .* it encodes itself"):
            head.predict_proba(part)
    elsewhere = gf.Federation.from_clients({name: patients[name] for name in ("north",)}, label_column="num > 0")
    with pytest.raises(GramfoldError, match="comes from table columns"):
        head.score(elsewhere.clients[0].test().inputs, [0])
    assert head.predict(federation.clients[0].test().inputs).shape == (30,)


def test_a_head_of_numbers_knows_no_table():
    X = np.random.default_rng(0).normal(size=(40, 3))
    head = gf.run("afl", gf.Federation.split(X, np.arange(40) % 2, clients=2, partition="iid")).heads["0"]
    for raw in ("t.csv", {"age": [1.0]}):
        with pytest.raises(
            GramfoldError, match="the input of afl: this head takes rows of 3 numbers; it knows no encoder of tables"
        ):
            head.predict(raw)
    assert head.predict(X).shape == (40,)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"height": [1.0]}, "the table has none of the columns that its encoder takes: age, crp, ward"),
        ({"age": ["old"]}, "column 'age' holds no number in sample 0, and numbers where its encoder was made; correct that cell"),
        (
            {"age": [1, "old", "older"]},
            "column 'age' holds no number in 2 of 3 rows, the first is sample 1, and numbers where",
        ),
        ({"age": []}, "the input of pace holds no samples"),
        ([{"age": 1}, {"age": [1, 2]}], "sample 1 has a list in column 'age'; give one value"),
        ("rows.txt", "rows.txt is no table; give one of .csv, .tsv, .parquet, .pq, a frame, a mapping of columns, or rows"),
        ("nowhere.csv", "no such table: nowhere.csv"),
    ],
)
def test_raw_rows_that_are_none(rows, words, run):
    with pytest.raises(GramfoldError, match=words):
        run[1].heads["north"].predict(rows)


# --- rows that know where they come from ---


def test_what_is_computed_from_known_rows_is_plain():
    origin = Origin("table", "columns", "5f1c")
    rows = known_rows(np.arange(6.0).reshape(3, 2), origin)
    assert rows[1:].origin == rows[[0, 2]].origin == rows[rows[:, 0] > 1].origin == origin
    computations = (rows * 2, rows @ np.eye(2), np.add(rows, rows), rows - rows.mean(0), np.linalg.solve(np.eye(3), rows))
    for computed in (*computations, np.concatenate([rows, rows]), np.where(rows > 1, rows, 0)):
        assert type(computed) is np.ndarray
    kept = rows
    kept -= 1.0
    assert type(kept) is np.ndarray
    assert rows[0].tolist() == [-1.0, 0.0], "in place is in place"
    assert pickle.loads(pickle.dumps(rows)).tolist() == rows.tolist()
    assert type(known_rows(np.eye(2), None)) is np.ndarray
    assert isinstance(known_rows(np.eye(2), origin), KnownRows)
