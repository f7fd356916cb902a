"""A network of torch is a backbone as it is: frozen, known by its weights, left as it was."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.backbones import reopen
from gramfold.errors import FileError

torch = pytest.importorskip("torch")
nn = torch.nn


def network(seed=0):
    torch.manual_seed(seed)
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), *pooled)


def images(n=20):
    return torch.rand(n, 3, 9, 9, generator=torch.Generator().manual_seed(1))


def dataset(n=20):
    return torch.utils.data.TensorDataset(images(n), torch.arange(n) % 2)


def test_features_are_the_networks_in_evaluation_mode_and_it_stays_as_it_was():
    net, before = network(), images()
    found = gf.load_data(dataset(), net)
    assert net.training, "put back"
    assert torch.equal(net[1].running_mean, torch.zeros(4)), "nothing was learned"
    with torch.no_grad():
        expected = net.eval()(before).numpy()
    assert np.allclose(np.asarray(found.inputs), expected, atol=1e-6)  # float32, in other batches


def test_its_fingerprint_is_that_of_weights_layers_and_statistics():
    net = network()
    known = gf.open_backbone(net).fingerprint
    assert gf.open_backbone(network()).fingerprint == known, "the same weights"
    assert gf.open_backbone(network(1)).fingerprint != known
    net[1].running_var += 1
    assert gf.open_backbone(net).fingerprint != known, "statistics count"
    assert gf.open_backbone(nn.Sequential(network(), nn.ReLU())).fingerprint != known


def test_rows_know_what_made_them_and_a_head_refuses_others():
    X, y = gf.open_backbone(network())(images(40)), np.arange(40) % 2
    federation = gf.Federation.from_clients({"north": (X[:20], y[:20]), "south": (X[20:], y[20:])})
    head = gf.run("afl", federation).heads["north"]
    head.predict(X)
    with pytest.raises(gf.GramfoldError, match="comes from backbone module:Sequential"):
        head.predict(gf.open_backbone(network(1))(images()))
    with pytest.raises(gf.GramfoldError, match=r"a network of one's own, Sequential; name it: --backbone FILE.py:NAME"):
        reopen(head.origin)


def test_a_cache_tells_networks_apart(tmp_path):
    first = gf.load_data(dataset(), network(), cache=tmp_path)
    again = gf.load_data(dataset(), network(), cache=tmp_path)
    other = gf.load_data(dataset(), network(1), cache=tmp_path)
    assert np.array_equal(first.inputs[:], again.inputs[:])
    assert not np.allclose(first.inputs[:], other.inputs[:])


def test_images_go_in_as_colours_in_front_in_zero_to_one():
    picture = np.zeros((9, 9, 3), np.uint8)
    picture[..., 1] = 255
    mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert np.allclose(gf.open_backbone(mean)([picture]), [[0, 1, 0]])


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (nn.Linear, "Linear is the class of a network; give a network, such as Linear"),
        (nn.Linear(5, 2), r"backbone module:Linear failed on samples of shape \(3, 9, 9\): "),
        (nn.Conv2d(3, 4, 3), "gave an array of shape .* it must be n x d"),
        (nn.LSTM(9, 3), "backbone module:LSTM"),
    ],
)
def test_what_does_not_fit_is_one_line(net, said):
    with pytest.raises(gf.GramfoldError, match=said) as error:
        gf.load_data(dataset(), net)
    assert "\n" not in str(error.value)


def test_samples_of_several_shapes_are_refused():
    both = torch.utils.data.ConcatDataset([dataset(), [(torch.rand(3, 8, 8), 1)]])
    with pytest.raises(gf.GramfoldError, match=r"takes samples of one shape, got \(3, 9, 9\) and \(3, 8, 8\); resize"):
        gf.load_data(both, network())


def test_by_the_place_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\ntorch.manual_seed(0)\nnet = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(243, 4))\n"
    )
    backbone = gf.open_backbone(f"{path}:net")
    assert backbone(images()).shape == (20, 4)
    assert backbone.name == f"python:{path}:net"
    with pytest.raises(gf.GramfoldError, match="cannot be imported: AttributeError"):
        gf.open_backbone(f"{path}:nothing")
    with pytest.raises(FileError):
        gf.open_backbone(f"{tmp_path / 'missing.py'}:net")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(gf.GramfoldError, match="cannot be imported: ZeroDivisionError: division by zero"):
        gf.open_backbone(f"{tmp_path / 'broken.py'}:net")
