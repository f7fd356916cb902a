"""Data as people have it: folders, tables, frames, Hugging Face data sets."""

from datetime import date

import numpy as np
import pytest

import gramfold as gf
from gramfold import GramfoldError
from gramfold.backbones import open_backbone
from gramfold.errors import FileError
from gramfold.extraction import load_data
from gramfold.federation import Federation
from gramfold.sources import image_folder, open_source, source_of
from raw_cases import pictures, write_function, write_photos

TEXTS = ["my card is gone", "where is my card", "what is the rate", "the rate please"] * 3
INTENTS = ["lost", "lost", "rate", "rate"] * 3


# --- folders of images ---


def test_folders_are_classes(tmp_path):
    paths = write_photos(tmp_path / "photos")
    source = image_folder(tmp_path / "photos")
    assert sorted(paths) == list(source.items)
    assert source.labels.tolist() == [path.parent.name for path in source.items]
    assert source.client is None


def test_folders_above_classes_are_clients(tmp_path):
    write_photos(tmp_path, clients=("north", "south"))
    source = image_folder(tmp_path)
    assert set(source.client) == {"north", "south"}
    assert set(source.labels) == {"red", "green", "blue"}


def test_train_and_test_are_no_clients(tmp_path):
    write_photos(tmp_path / "train", 9)
    write_photos(tmp_path / "test", 6, clients=())
    source = image_folder(tmp_path)
    assert (source.train.sum(), source.n, source.client) == (9, 15, None)


def test_images_without_folders_have_no_labels(tmp_path):
    write_photos(tmp_path / "a", 6)
    assert image_folder(tmp_path / "a" / "red").labels is None


@pytest.mark.parametrize(
    ("layout", "words"),
    [([], "holds no images"), (["a.txt"], "holds no images"), (["x/a.png", "b.png"], "does not lie as deep")],
)
def test_folders_that_are_none(layout, words, tmp_path):
    for name in layout:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(GramfoldError, match=words):
        image_folder(tmp_path)
    with pytest.raises(FileError):
        image_folder(tmp_path / "nowhere")


# --- tables ---


def write_csv(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_a_csv_of_paths_is_read_beside_its_images(tmp_path):
    paths = write_photos(tmp_path / "photos", 12)
    rows = [(path.relative_to(tmp_path), path.parent.name, i % 2) for i, path in enumerate(paths)]
    source = open_source(str(write_csv(tmp_path / "list.csv", "path,label,client", rows)))
    assert [item.name for item in source.items] == [path.name for path in paths]
    own = open_backbone(f"python:{write_function(tmp_path)}:colours")
    dataset = load_data(tmp_path / "list.csv", own)
    assert dataset.inputs.shape == (12, 54)
    assert set(dataset.client) == {"0", "1"}


def test_frames_and_files_give_the_same(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    letters = open_backbone(f"python:{write_function(tmp_path)}:letters")
    frame = pandas.DataFrame({"text": TEXTS, "intent": INTENTS, "desk": ["a", "b", "a"] * 4})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    columns = {"label_column": "intent", "client_column": "desk"}
    forms = [frame, polars.DataFrame(frame.to_dict("list")), tmp_path / "t.csv", tmp_path / "t.parquet", frame.to_dict("list")]
    made = [load_data(form, letters, **columns) for form in forms]
    for one in made:
        assert np.array_equal(np.asarray(one.inputs), np.asarray(made[0].inputs))
        assert (one.labels, one.client.tolist()) == (("lost", "rate"), ["a", "b", "a"] * 4)
        assert one.targets.tolist() == made[0].targets.tolist()


def test_a_data_set_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    from PIL import Image

    images, codes = pictures(6)
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["red", "green", "blue"])})
    made = datasets.Dataset.from_dict({"image": [Image.fromarray(image) for image in images], "label": codes.tolist()}, features)
    colours = open_backbone(f"python:{write_function(tmp_path)}:colours")
    dataset = load_data(made, colours)
    assert dataset.labels == ("blue", "green", "red")
    assert np.asarray(dataset.labels)[dataset.targets].tolist() == ["red", "green", "blue"] * 2
    assert np.allclose(np.asarray(dataset.inputs), colours(images))


def test_images_of_an_npz_file(tmp_path):
    images, codes = pictures(6)
    np.savez(tmp_path / "i.npz", images=images, labels=codes, classes=np.array(["red", "green", "blue"]))
    dataset = load_data(tmp_path / "i.npz", open_backbone(f"python:{write_function(tmp_path)}:colours"))
    assert np.asarray(dataset.labels)[dataset.targets].tolist() == ["red", "green", "blue"] * 2


def test_clients_with_other_classes_in_another_order_fold_by_name(tmp_path):
    """Each client numbers its own classes; the federation goes by their names."""
    write_photos(tmp_path / "p", 36, clients=("north", "south", "west"))
    for gone in ("north/blue", "south/red"):
        for path in (tmp_path / "p" / gone).iterdir():
            path.unlink()
    dataset = load_data(tmp_path / "p", open_backbone(f"python:{write_function(tmp_path)}:colours"))
    federation = Federation.from_dataset(dataset)
    held = {c.name: {federation.task.labels[code] for code in c.train().targets} for c in federation}
    assert held == {"north": {"red", "green"}, "south": {"green", "blue"}, "west": {"red", "green", "blue"}}
    assert federation.task.origin == dataset.origin


def test_an_unknown_label_is_said(tmp_path):
    dataset = load_data({"text": TEXTS, "label": INTENTS}, open_backbone(f"python:{write_function(tmp_path)}:letters"))
    task = Federation.from_dataset(dataset, 2, "iid").task
    with pytest.raises(GramfoldError, match=r"client 'south' has label 'chat' \(sample 0\), which is not among the 2 classes"):
        task.admit("south", np.asarray(dataset.inputs)[:1], np.array(["chat"]))


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("", {}, "is empty"),
        ("text,label\n", {}, "no samples"),
        ("text,label\na,b,c\n", {}, "row 2 has 3 values"),
        ("text,text\na,b\n", {}, "two columns have the same name"),
        ("words,label\na,b\n", {"text_column": "text"}, "has no column 'text'; it has: words, label"),
        ("words,label\na,b\n", {}, "no column of texts; name it with --text-column"),
        ("text,kind\na,b\n", {}, "has no labels; name the column with --label-column"),
        ("text,label\na,\nb,c\n", {}, "sample 0 has no label"),
        ("text,label,split\na,b,perhaps\n", {}, "train or test, found 'perhaps'"),
    ],
)
def test_a_table_that_is_wrong(text, columns, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(GramfoldError, match=words):
        load_data(tmp_path / "t.csv", open_backbone(f"python:{write_function(tmp_path)}:letters"), **columns)


PRICES = "size,town,price\n" + "".join(f"{i},{'ab'[i % 2]},{i / 4}\n" for i in range(8))


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        (PRICES, {"label_column": "price"}, r"found fractions or NaN .*use regression=True \(--regression\)"),
        (PRICES, {"label_column": "price", "client_column": "price"}, "a column is named twice"),
        (PRICES, {"label_column": "price", "columns": ["size", "price"], "regression": True}, "column 'price' holds the labels"),
        (PRICES, {"label_column": "town", "regression": True}, "column 'town' holds more than numbers"),
        (PRICES + "9,a,\n", {"label_column": "price", "regression": True}, "sample 8 has no label: nothing in column 'price'"),
        ("size,town,price\n1,é,2\n", {"label_column": "price"}, "is not UTF-8 text; save it as CSV in UTF-8"),
    ],
)
def test_a_table_of_numbers_that_is_wrong(text, columns, words, tmp_path):
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(GramfoldError, match=words):
        load_data(tmp_path / "t.csv", **columns)


def test_continuous_labels(tmp_path):
    (tmp_path / "t.csv").write_text(PRICES)
    dataset = load_data(tmp_path / "t.csv", label_column="price", client_column="town", regression=True)
    assert dataset.labels is None
    assert dataset.targets.tolist() == [[i / 4] for i in range(8)]
    result = gf.run("pace", Federation.from_dataset(dataset))
    assert result.mean_rmse < 0.5


@pytest.mark.parametrize(("between", "name"), [(";", "t.csv"), ("\t", "t.csv"), ("\t", "t.tsv")])
def test_other_separators(between, name, tmp_path):
    """Semicolons go with decimal commas: 1,5 is a number and a half."""
    text = PRICES.replace(",", between)
    (tmp_path / name).write_text(text.replace(".", ",") if between == ";" else text)
    (tmp_path / "usual.csv").write_text(PRICES)
    columns = {"label_column": "price", "client_column": "town", "regression": True}
    here, usual = (load_data(tmp_path / found, **columns) for found in (name, "usual.csv"))
    assert here.inputs.tolist() == usual.inputs.tolist()
    assert here.targets.tolist() == usual.targets.tolist()


def test_dates_are_numbers_in_every_form(tmp_path):
    days = np.array(["2024-02-28", "2024-02-29", "2024-03-03", "2024-03-04"])
    forms = {
        "words": days.tolist(), "times": [f"{day} 00:00" for day in days], "dates": [date.fromisoformat(day) for day in days],
        "array": days.astype("datetime64[ns]"), "spans": days.astype("datetime64[s]") - np.datetime64("2020-01-01"),
        "parts": [date.fromisoformat(day) - date(2020, 1, 1) for day in days], "days": days.astype("datetime64[D]").astype(int),
    }  # fmt: skip
    dataset = load_data({**forms, "label": list("abab")})
    assert np.ptp(dataset.inputs, axis=1).max() < 1e-12
    assert dataset.inputs.shape == (4, 7)
    assert load_data({"day": [None, *days[:3]], "label": list("abab")}).inputs[0].tolist() == [0.0, 1.0]


def test_a_column_of_names_is_said_to_be_of_no_use():
    with pytest.warns(UserWarning, match="column 'name' has no word in enough training rows of a client: it is not used"):
        load_data({"name": list("pqrs"), "age": [1, 2, 3, 4], "label": list("abab")})


def test_a_backbone_takes_what_it_takes(tmp_path):
    letters = open_backbone(f"python:{write_function(tmp_path)}:letters")
    write_photos(tmp_path / "p", 3)
    with pytest.raises(GramfoldError, match=r"p holds images, but backbone .* takes texts"):
        load_data(tmp_path / "p", letters)
    with pytest.raises(GramfoldError, match="p holds images; name a backbone for them, such as --backbone dinov2s"):
        load_data(tmp_path / "p")
    with pytest.raises(FileError):
        source_of(str(tmp_path / "own_backbone.py"))
