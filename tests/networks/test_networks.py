"""Networks as functions of named tensors: how they are written, what they hold; equal descriptions are equal networks."""

import numpy as np
import pytest

from gramfold import networks
from gramfold.errors import GramfoldError

torch = pytest.importorskip("torch", reason="networks need PyTorch")

FEATURES, IMAGES = (6,), (8, 8, 3)


HEART = {"adapters": True, "freeze": True, "pretrained": None}


@pytest.mark.parametrize(
    ("spec", "shape", "more"),
    [("linear", FEATURES, {}), ("mlp:5", FEATURES, {}), ("cnn:4", IMAGES, {}), ("resnet:4x1", IMAGES, HEART)],
)
def test_a_description_is_a_network_drawn_from_its_seed(spec, shape, more):
    description = networks.describe(spec, shape, 3, seed=7, **more)
    net, again = networks.build(description), networks.build(dict(description))
    other = networks.build({**description, "seed": 8})
    x = torch.as_tensor(np.random.default_rng(0).uniform(size=(4, *shape)).astype(np.float32))
    logits = net(net.initial, net.prepare(x, net.initial))
    assert logits.shape == (4, 3)
    assert bool(torch.isfinite(logits).all())
    torch.testing.assert_close(again(again.initial, again.prepare(x, again.initial)), logits)
    assert net.num_parameters == sum(tensor.numel() for tensor in net.initial.values())
    if spec != "linear":  # which begins at zero
        drawn = [name for name, tensor in net.initial.items() if not torch.equal(tensor, other.initial[name])]
        assert drawn or not torch.equal(logits, other(other.initial, other.prepare(x, other.initial)))


def test_the_head_is_what_its_names_say():
    net = networks.build(networks.describe("mlp:5", FEATURES, 3, seed=0))
    assert {name for name in net.initial if name.startswith("head.")} == {"head.weight", "head.bias"}
    x = torch.randn(2, 6)
    features = net(net.initial, x, "base")
    assert features.shape == (2, net.width)
    torch.testing.assert_close(net(net.initial, features, "head"), net(net.initial, x))


@pytest.mark.parametrize(
    ("spec", "shape", "match"),
    [
        ("mlp", FEATURES, "cannot read model"),
        ("mlp:0", FEATURES, "cannot read model"),
        ("resnet:4", IMAGES, "cannot read model"),
        ("transformer", FEATURES, "cannot read model"),
        ("cnn:4", FEATURES, "is for images"),
        ("linear", IMAGES, "is for features"),
    ],
)
def test_what_is_not_a_network_is_refused(spec, shape, match):
    with pytest.raises(GramfoldError, match=match):
        networks.describe(spec, shape, 3, seed=0)
