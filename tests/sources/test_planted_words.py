"""No word of a table that could say who somebody is gets into anything that is written, shown or handed to others."""

import gzip
import io
import json
import warnings
import zipfile

import numpy as np
import pytest

import gramfold as gf
from gramfold.cli.main import app
from gramfold.federation import Federation
from gramfold.heads import Head
from gramfold.report import write_card
from gramfold.sources import TableEncoder
from planted import FIRST_ID, MARK, RARE, RELEASED, SITES, found_in, found_in_bytes, write_tables

PACKED = {
    "text": RARE.encode(), "UTF-16": f"x{MARK}".encode("utf-16"), "JSON": json.dumps({"a": RARE}).encode(),
    "JSON in JSON": json.dumps({"a": json.dumps([RARE])}).encode(), "gzip": gzip.compress(f"x {MARK}".encode()),
    "an ID as a number": b"abc" + np.array([1.0, FIRST_ID + 4]).tobytes(),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _said():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* it is not used")
        yield


@pytest.mark.parametrize("how", PACKED)
def test_the_search_finds_what_is_there(how, tmp_path):
    (tmp_path / "file").write_bytes(PACKED[how])
    assert found_in(tmp_path)
    assert not found_in(tmp_path, beside=[tmp_path / "file"])


def test_the_search_looks_into_archives():
    file = io.BytesIO()
    np.savez_compressed(file, words=np.array(["a", f"b {MARK}"]))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.npz", file.getvalue())
    assert found_in_bytes(outer.getvalue())
    assert not found_in_bytes(np.arange(100.0).tobytes() + b"nothing here")


def encoder_of(head: Head) -> TableEncoder:
    return TableEncoder.reopen(head.origin)


@pytest.mark.parametrize("split", [True, False])
def test_in_process(split, tmp_path):
    write_tables(tmp_path / "data", split)
    dataset = gf.load_data(tmp_path / "data" / "all.csv", label_column="sick")
    federation = Federation.from_dataset(dataset, random_state=1)
    out = tmp_path / "out"
    for method in (gf.PACE(), gf.AFL(), gf.Local()):
        result = gf.run(method, federation)
        result.save(out / method.name)
        for name, head in result.heads.items():
            folder = out / "exported" / method.name
            folder.mkdir(parents=True, exist_ok=True)
            gf.write_sklearn(head, folder / f"{name}.joblib")
            write_card(folder / f"{name}.safetensors", result.cards()[name])
        shown = dataset, federation, federation.task, result, result.rows(), head, head.origin, encoder_of(head), result.to_dict()
        (out / f"{method.name}.txt").write_text(repr(shown), encoding="utf-8")
    assert found_in(out) == []
    columns = encoder_of(head).columns
    assert [title for title in columns if title.startswith("ward")] == [
        "ward = cardiology", "ward = day", "ward = er", "ward = geriatrics", "ward = icu", *(["ward = other"] * (not split)),
    ]  # fmt: skip
    assert encoder_of(head).names == ["age", "sex", "ward"]
    for word in RELEASED.values():  # the search would have found what is there
        assert any(word.encode() in path.read_bytes() for path in out.rglob("*.safetensors"))


def test_every_cut_has_an_encoder_of_its_training_rows_alone(tmp_path):
    write_tables(tmp_path, split=False)
    dataset = gf.load_data(tmp_path / "all.csv", label_column="sick")
    means = set()
    for seed in range(3):
        federation = Federation.from_dataset(dataset, random_state=seed)
        trained = np.concatenate([client.train().inputs for client in federation])
        encoder = TableEncoder.reopen(federation.task.origin)
        assert np.abs(trained[:, encoder.columns.index("age")].mean()) < 1e-9
        means.add(federation.task.origin.fingerprint)
    assert len(means) == 3


def test_clients_drawn_from_one_table_share_its_owners_floor(tmp_path):
    write_tables(tmp_path)
    dataset = gf.load_data(tmp_path / "north.csv", label_column="sick")
    drawn = Federation.from_dataset(dataset, 10, "iid", random_state=0)
    assert TableEncoder.reopen(drawn.task.origin).columns == TableEncoder.reopen(dataset.origin).columns


def test_on_the_command_line(tmp_path, capsys):
    write_tables(tmp_path / "data")
    run = [
        "run", str(tmp_path / "data" / "all.csv"), "--label-column", "sick", "--methods", "pace,local", "--out",
        str(tmp_path / "out"), "--heads", str(tmp_path / "heads"), "--json",
    ]  # fmt: skip
    app(run, standalone_mode=False)
    app([*run[:-4], str(tmp_path / "many"), "--seeds", "2", "--heads", str(tmp_path / "more")], standalone_mode=False)
    head = next((tmp_path / "heads" / "pace").glob("*.safetensors"))
    app(["export", str(head), "--sklearn", str(tmp_path / "exported.joblib")], standalone_mode=False)
    shown = capsys.readouterr()
    (tmp_path / "shown.txt").write_text(shown.out + shown.err)
    assert found_in(tmp_path, beside=(tmp_path / "data").iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {
        "data", "exported.joblib", "heads", "many", "more", "out", "shown.txt"
    }  # fmt: skip
    assert {path.stem for path in (tmp_path / "heads" / "pace").glob("*.safetensors")} == set(SITES)
