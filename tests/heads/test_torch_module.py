"""Every head as a PyTorch module: the same scores, weights that move and are saved with it."""

import numpy as np
import pytest

import gramfold as gf
from gradient_cases import quick
from gramfold.heads import Stream

torch = pytest.importorskip("torch", reason="modules need PyTorch")

ON_FEATURES = {
    "linear": gf.AFL(),
    "masked": gf.LocalClasses(),
    "two streams": gf.APFL(features="relu:16", refinement="bias+fourier:32"),
    "evidence": gf.PACE(),
    "deep": gf.DeepAFL(features="gelu:12", depth=2),
    "trained": quick(gf.FedAvg, model="mlp:8"),
}
ON_IMAGES = {
    "layers": gf.FedACnnL(network="conv:4:3+relu+max:2"),
    "own layers": gf.PFedACnnL(network="contrast+conv:2:3:4+split:0.2+grid:2", groups=1),
    "layers and evidence": gf.PaceCNN(network="contrast+conv:2:3:4+split:0.2+grid:2"),
    "trained layers": quick(gf.FedAvg, model="cnn:4"),
}


@pytest.fixture(scope="module")
def pictures() -> gf.Federation:
    rng = np.random.default_rng(2)
    images, y = rng.integers(0, 255, (60, 8, 8, 1)).astype(np.uint8), rng.integers(0, 3, 60)
    return gf.Federation.split(images, y, clients=3, partition="iid", random_state=1)


def check(head: gf.Head, X: np.ndarray) -> None:
    module, inputs = head.to_torch(), torch.as_tensor(X)
    out, scores = module(inputs), head.scores(X)
    assert isinstance(module, torch.nn.Module)
    assert isinstance(out, torch.Tensor)
    finite = np.isfinite(scores)
    np.testing.assert_array_equal(np.isfinite(out.numpy()), finite)
    np.testing.assert_allclose(out.numpy()[finite], scores[finite], rtol=1e-9, atol=1e-12)
    # what it scores by is its own state: another head's module takes this one's state and says the same
    twin = head.to_torch()
    for tensor in twin.state_dict().values():
        tensor.zero_()
    assert not torch.equal(twin(inputs), out)
    twin.load_state_dict(module.state_dict())
    assert torch.equal(twin(inputs), out)


@pytest.mark.parametrize("kind", ON_FEATURES)
def test_heads_on_features_become_modules(kind, federation, blobs):
    check(gf.run(ON_FEATURES[kind], federation).heads["2"], blobs[0][:20])


@pytest.mark.parametrize("kind", ON_IMAGES)
def test_heads_on_images_become_modules(kind, pictures):
    check(gf.run(ON_IMAGES[kind], pictures).heads["0"], pictures.clients[1].test().inputs)


def test_a_regressor_and_an_offset_too(federation, blobs):
    head = gf.run(gf.AFL(), federation).heads["0"]
    stream = head.streams[0]
    check(gf.Head([Stream(stream.map, stream.weights, 0.5)], None, offset=np.array([1.0, -2.0, 0.0, 3.0])), blobs[0][:20])


def test_a_module_does_not_share_memory_with_its_head(federation, blobs):
    head = gf.run(gf.AFL(), federation).heads["0"]
    before, module = head.scores(blobs[0]), head.to_torch()
    for tensor in module.state_dict().values():
        tensor.zero_()
    np.testing.assert_array_equal(head.scores(blobs[0]), before)
