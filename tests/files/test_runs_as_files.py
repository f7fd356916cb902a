"""A run as files is the run in one process: every method, heads and figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold import files
from gramfold.errors import PartsError
from gramfold.federation import load_npz
from gramfold.files.reading import Reading
from gramfold.methods import ANALYTIC
from strategies import relative

ALL = [*(method() for method in ANALYTIC), gf.FedHiP(at="server")]
PARTS = 3


def arrays(n: int = 420, clients: int = 7) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 4, n)
    X = rng.standard_normal((4, 8))[codes] * 1.5 + rng.standard_normal((n, 8))
    return {"features": X, "labels": codes, "client": np.array([f"site {k}" for k in rng.integers(0, clients, n)])}


def cut(folder: Path, content: dict[str, np.ndarray], parts: int = PARTS) -> list[Path]:
    """The same samples in so many files, a client in one of them; and all of them, in all.npz."""
    names = np.unique(content["client"])
    np.savez(folder / "all.npz", **content)
    paths = [folder / f"part-{p}.npz" for p in range(parts)]
    for p, path in enumerate(paths):
        mine = np.isin(content["client"], names[p::parts])
        np.savez(path, **{key: values[mine] for key, values in content.items()})
    return paths


def finish(task: files.TaskFile, paths: list[Path], folder: Path) -> files.TaskFile:
    """All rounds of a run, every value through its file."""
    while not task.finished:
        task.save(folder / "now.task")
        task = files.TaskFile.load(folder / "now.task")
        for k, path in enumerate(paths):
            files.fold(task, [path]).save(folder / f"{k}.moments")
        files.merge([folder / f"{k}.moments" for k in range(1, len(paths))]).save(folder / "some.moments")
        files.merge([folder / "some.moments", folder / "0.moments"]).save(folder / "all.moments")
        task = files.following(task, files.PartFile.load(folder / "all.moments"))
    task.save(folder / "final.model")
    return files.TaskFile.load(folder / "final.model")


def check_same(result: gf.Result, model: files.TaskFile, paths: list[Path], federation: gf.Federation, tolerance: float) -> None:
    found = {
        name: (part, head) for path in paths for part in [files.personal(model, [path])] for name, head in part.heads.items()
    }
    assert sorted(found) == sorted(result.heads)
    for client in federation:
        part, head = found[client.name]
        rows = np.asarray(client.test().inputs)
        scores = result.heads[client.name].scores(rows)
        finite = np.isfinite(scores)
        assert relative(head.scores(rows)[finite], scores[finite]) < tolerance
        assert part.clients[client.name].scored.n == client.test().n
        assert part.clients[client.name].accuracy == result.clients[client.name].accuracy
        assert part.clients[client.name].train == client.train().n


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_every_method_is_as_in_one_process(method, tmp_path):
    paths = cut(tmp_path, arrays())
    federation = gf.Federation.from_dataset(load_npz(tmp_path / "all.npz"), partition="natural", random_state=3)
    model = finish(files.begin(method, Reading(), seed=3), paths, tmp_path)
    result = gf.run(method, federation)
    assert model.round == result.rounds
    # sums in another order; a further round starts from the rounding of the one before
    check_same(result, model, paths, federation, 1e-9)


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(), gf.APFL(), gf.PACE(features="bias+columns")], ids=repr)
def test_tables_are_encoded_by_what_all_parts_say(method, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    who, age, sex = rng.integers(0, 6, 480), rng.normal(50, 10, 480), rng.choice(["f", "m"], 480)
    ill = np.where(age + who + 4 * (sex == "f") + 5 * rng.standard_normal(480) > 55, "ill", "well")
    age[rng.random(480) < 0.05] = np.nan
    table = {"ward": who, "age": age, "sex": sex, "outcome": ill}
    paths = [tmp_path / f"part-{p}.parquet" for p in range(PARTS)]
    for p, path in enumerate(paths):
        parquet.write_table(pyarrow.table({key: values[who % PARTS == p] for key, values in table.items()}), path)
    named = {"label_column": "outcome", "client_column": "ward"}
    federation = gf.Federation.from_dataset(gf.load_data(table, **named), partition="natural", random_state=0)
    model = finish(files.begin(method, Reading(**named)), paths, tmp_path)
    task = model.known_task()
    assert (task.inputs, task.labels, task.samples) == (federation.task.inputs, federation.task.labels, federation.task.samples)
    check_same(gf.run(method, federation), model, paths, federation, 1e-9)


def test_regression_and_files_that_are_a_client_each(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5))
    y = X @ rng.standard_normal(5) + 0.1 * rng.standard_normal(200)
    paths = [tmp_path / f"plant-{k}.npz" for k in range(4)]
    for k, path in enumerate(paths):
        np.savez(path, features=X[k::4], labels=y[k::4])
    model = finish(files.begin(gf.FedHiP(), Reading(regression=True, test=0.2)), paths, tmp_path)
    federation = gf.Federation.from_clients({f"plant-{k}": (X[k::4], y[k::4]) for k in range(4)}, test_size=0.2, regression=True)
    expected = gf.run(gf.FedHiP(), federation)
    for path in paths:
        [(name, client)] = files.personal(model, [path]).clients.items()
        assert name == path.stem
        assert client.rmse == pytest.approx(expected.clients[name].rmse, rel=1e-9)


def test_where_all_data_is_at_hand_nobody_needs_to_describe_it(tmp_path):
    paths = cut(tmp_path, arrays())
    described = files.begin(gf.AFL(), Reading(), data=paths)
    asked = files.begin(gf.AFL(), Reading())
    for k, path in enumerate(paths):
        files.fold(asked, [path]).save(tmp_path / f"{k}.about")
    said = files.merge([tmp_path / f"{k}.about" for k in (2, 0, 1)])
    assert files.following(asked, said).asked == described.asked


def test_newcomers_get_a_head_too(tmp_path):
    paths = cut(tmp_path, arrays())
    model = finish(files.begin(gf.PACE(features="bias+linear"), Reading()), paths[:2], tmp_path)
    result = files.personal(model, [paths[2]])
    federation = gf.Federation.from_dataset(load_npz(tmp_path / "all.npz"), partition="natural", random_state=0)
    late = {client.name: client for client in federation if client.name in result.heads}
    run = gf.run(gf.PACE(features="bias+linear"), replace(
        federation, clients=[client for client in federation if client.name not in late],
        task=replace(federation.task, samples=model.known_task().samples),
    ))  # fmt: skip
    for name, client in late.items():
        X, y = client.train()
        expected = run.join(np.asarray(X), y, name).scores(np.asarray(X))
        assert relative(result.heads[name].scores(np.asarray(X)), expected) < 1e-9


def test_a_part_of_earlier_rounds_alone_is_refused(tmp_path):
    """Its estimates would take samples for left out that are in the features."""
    paths = cut(tmp_path, arrays())
    task = files.begin(gf.DeepAFL(features="linear", refinement="relu:16", depth=1), Reading(), data=paths)
    while not task.finished:
        taking = paths if task.round == 0 else paths[:2]
        for k, path in enumerate(taking):
            files.fold(task, [path]).save(tmp_path / f"{k}.moments")
        task = files.following(task, files.merge([tmp_path / f"{k}.moments" for k in range(len(taking))]))
    assert len(files.personal(task, [paths[0]]).heads) > 1
    with pytest.raises(PartsError):
        files.personal(task, [paths[2]])


@pytest.mark.parametrize("method", [gf.FedAvg(lr=0.1), gf.Ditto(lr=0.1)], ids=lambda method: method.name)
def test_methods_that_train_are_refused(method):
    with pytest.raises(PartsError):
        files.begin(method, Reading())


def test_a_part_whose_rows_are_all_for_training_has_no_test_rows(tmp_path):
    """A split that the data names is kept in every part, one-sided ones too."""
    content = arrays(120, 4)
    train = content["client"] == "site 0"
    train |= np.arange(120) % 2 == 0
    paths = cut(tmp_path, {**content, "train": train}, parts=4)
    model = finish(files.begin(gf.AFL(), Reading()), paths, tmp_path)
    tests = {name: client.test for path in paths for name, client in files.personal(model, [path]).clients.items()}
    assert tests.pop("site 0") == 0
    assert min(tests.values()) > 0
