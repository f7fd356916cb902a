"""Data sets as torch and Hugging Face have them are clients, or are cut into clients, in one line."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import ColumnsError

ROWS = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.int64)


@pytest.fixture
def torch_data():
    torch = pytest.importorskip("torch")
    return torch.utils.data.TensorDataset(torch.as_tensor(ROWS), torch.as_tensor(LABELS))


@pytest.fixture
def hugging_face():
    datasets = pytest.importorskip("datasets")
    kinds = {"a": datasets.Value("float32"), "b": datasets.Value("float32"), "label": datasets.ClassLabel(names=["no", "yes"])}
    return datasets.Dataset.from_dict({"a": ROWS[:, 0], "b": ROWS[:, 1], "label": LABELS}, features=datasets.Features(kinds))


class Own:
    """Neither torch's nor a list: pairs by their place."""

    def __len__(self):
        return 30

    def __getitem__(self, i):
        return ROWS[i], LABELS[i]


def test_torch_data_sets_are_clients_like_their_arrays(torch_data):
    utils = pytest.importorskip("torch").utils.data
    half = utils.Subset(torch_data, range(40))
    loader = utils.DataLoader(utils.Subset(torch_data, range(40, 80)), batch_size=7, shuffle=True)
    given = gf.Federation.from_clients({"north": half, "south": loader})
    plain = gf.Federation.from_clients({"north": (ROWS[:40], LABELS[:40]), "south": (ROWS[40:], LABELS[40:])})
    for one, other in zip(given, plain, strict=True):
        assert one.train().digest() == other.train().digest()
        assert one.test().digest() == other.test().digest()


def test_pairs_of_ones_own_class_and_several_behind_each_other(torch_data):
    utils = pytest.importorskip("torch").utils.data
    both = utils.ConcatDataset([torch_data, Own()])
    found = gf.load_data(both)
    assert np.array_equal(found.inputs, np.concatenate([ROWS, ROWS[:30]]))
    assert np.array_equal(found.targets, np.concatenate([LABELS, LABELS[:30]]))


def test_labels_are_read_without_the_samples_where_that_can_be():
    class Costly(Own):
        targets = LABELS[:30].tolist()
        read = 0

        def __getitem__(self, i):
            self.read += 1
            return super().__getitem__(i)

    data = Costly()
    gf.load_data(data)
    assert data.read == 31, "each sample once, and the first to see what it is"


def test_a_target_that_is_transformed_is_read():
    class Turned(Own):
        targets = LABELS[:30]
        target_transform = staticmethod(lambda label: 1 - label)

        def __getitem__(self, i):
            return ROWS[i], self.target_transform(LABELS[i])

    assert np.array_equal(gf.load_data(Turned()).targets, 1 - LABELS[:30])


def test_splits_by_name_are_splits_and_validation_trains_beside_a_test_split(hugging_face):
    datasets = pytest.importorskip("datasets")
    parts = {name: hugging_face.select(range(at, at + 20)) for name, at in (("train", 0), ("validation", 20), ("test", 40))}
    found = gf.load_data(datasets.DatasetDict(parts), label_column="label")
    assert found.train is not None
    assert found.train.tolist() == [True] * 40 + [False] * 20
    assert found.labels == ("no", "yes")
    with pytest.warns(UserWarning, match="split 'unsupervised' is neither for training nor for testing"):
        found = gf.load_data(datasets.DatasetDict(parts | {"unsupervised": parts["test"]}), label_column="label")
    assert len(found.targets) == 60


def test_splits_are_a_client_each_by_name(torch_data, hugging_face):
    utils = pytest.importorskip("torch").utils.data
    split = {"train": utils.Subset(torch_data, range(60)), "test": utils.Subset(torch_data, range(60, 80))}
    federation = gf.Federation.from_clients({"north": split, "south": split})
    assert [client.train().n for client in federation] == [60, 60]
    halves = hugging_face.train_test_split(0.25, seed=0)
    federation = gf.Federation.from_clients({"north": halves, "south": halves}, label_column="label")
    assert [client.test().n for client in federation] == [20, 20]
    assert federation.task.labels == ("no", "yes")


def test_an_embedding_is_a_row_of_numbers():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["a"] * 80, "embedding": ROWS.tolist(), "label": LABELS.tolist()})
    found = gf.load_data(made, label_column="label", columns=["embedding"])
    assert np.allclose(found.inputs, ROWS)
    federation = gf.Federation.from_clients({"north": made, "south": made}, label_column="label", columns=["embedding"])
    assert federation.task.inputs == 5
    with pytest.raises(gf.GramfoldError, match=r"sample 1 has shape \(2,\) in column 'e', sample 0 \(3,\)"):
        gf.load_data({"e": [[1, 2, 3], [1, 2]], "label": [0, 1]}, label_column="label")


def test_hugging_face_in_the_format_of_torch_is_the_same(hugging_face):
    pytest.importorskip("torch")
    plain = gf.load_data(hugging_face, label_column="label")
    other = gf.load_data(hugging_face.with_format("torch"), label_column="label")
    assert np.array_equal(plain.inputs, other.inputs)
    assert plain.labels == other.labels


def test_samples_beside_their_labels():
    found = gf.load_data((ROWS[:60], LABELS[:60], ROWS[60:], LABELS[60:]))
    assert found.train is not None
    assert found.train.sum() == 60
    assert np.array_equal(found.inputs, ROWS)
    sites = gf.load_data({"north": (ROWS[:40], LABELS[:40]), "south": (ROWS[40:], LABELS[40:])})
    assert sites.client is not None
    assert sites.client.tolist() == ["north"] * 40 + ["south"] * 40
    with pytest.raises(gf.GramfoldError, match="has 80 samples but 79 labels"):
        gf.load_data((ROWS, LABELS[:79]))


def test_images_of_torch_have_their_channels_behind():
    torch = pytest.importorskip("torch")
    pictures = torch.rand(20, 3, 8, 9)
    found = gf.load_data(torch.utils.data.TensorDataset(pictures, torch.arange(20) % 2))
    assert np.array_equal(found.inputs, pictures.numpy().transpose(0, 2, 3, 1))


class _Mappings(Own):
    def __getitem__(self, i):
        return {"x": ROWS[i], "y": LABELS[i]}


class _Alone(Own):
    def __getitem__(self, i):
        return ROWS[i]


class _Ragged(Own):
    def __getitem__(self, i):
        return ROWS[i][: 3 + i % 2], LABELS[i]


class _Broken(Own):
    def __getitem__(self, i):
        raise ValueError("no such disk")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (_Mappings(), r"_Mappings: sample 0 is a mapping \(x, y\); give pairs \(x, y\), or a data set of Hugging Face"),
        (_Alone(), r"_Alone: sample 0 is a ndarray; a data set gives pairs \(x, y\)"),
        (_Ragged(), r"_Ragged: sample 1 has shape \(4,\), sample 0 has \(3,\); bring them to one shape"),
        (_Broken(), "_Broken: sample 0 cannot be read: ValueError: no such disk"),
        (5, "cannot read samples from int"),
    ],
)
def test_what_is_wrong_with_a_data_set_is_one_line(data, said):
    with pytest.raises(gf.GramfoldError, match=said):
        gf.load_data(data)


def test_one_data_set_is_not_clients(torch_data, hugging_face):
    with pytest.raises(gf.GramfoldError, match="a TensorDataset is one data set; give clients by name"):
        gf.Federation.from_clients(torch_data)
    with pytest.raises(ColumnsError):
        gf.Federation.from_clients(hugging_face, label_column="label")


def test_a_loader_of_some_samples_is_told_to_be_a_subset(torch_data):
    utils = pytest.importorskip("torch").utils.data
    loader = utils.DataLoader(torch_data, sampler=utils.SubsetRandomSampler([1, 2, 3]))
    with pytest.raises(gf.GramfoldError, match="a loader with a SubsetRandomSampler does not say which samples are its own"):
        gf.load_data(loader)


def test_images_without_a_backbone_are_told_to_have_one():
    pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image")
    data = [(image.new("RGB", (4, 4)), i % 2) for i in range(4)]

    class Pictures(Own):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return data[i]

    with pytest.raises(gf.GramfoldError, match="holds images; name a backbone for them"):
        gf.load_data(Pictures())
    with pytest.raises(gf.GramfoldError, match=r"client 'north' holds images; make features of them: gf.Federation.from_dataset"):
        gf.Federation.from_clients({"north": Pictures()})
