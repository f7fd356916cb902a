"""A network solved layer by layer: how it is written, what its layers compute, and that blocks are no more than blocks."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.convolution import PRESETS, ConvolutionMap, layers, parse, solve_layer
from gramfold.errors import FeaturesError
from gramfold.moments import Moments
from gramfold.numerics import arrays
from strategies import relative

torch = pytest.importorskip("torch", reason="networks need PyTorch")

SHAPE = (7, 6, 2)
NETWORKS = [
    "conv:3:3+relu+max:2",
    "pad:1+conv:4:3:5+split:0.2+grid:2",
    "contrast+conv:0:3:6+relu+mean:2+conv:3:2+tanh+dense:5:4+relu",
    "dense:6+gelu",
]


def images(n: int, seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def codes(n: int, classes: int = 3) -> np.ndarray:
    return np.random.default_rng(9).integers(0, classes, n)


def solved(network: str, n: int = 40, penalty: float | None = 0.5) -> ConvolutionMap:
    """The network solved from random images."""
    description, weights = {"network": network, "shape": list(SHAPE), "seed": 3}, {}
    for number in range(layers(network)):
        partial = ConvolutionMap(description, weights)
        weights[f"layer.{number}"] = solve_layer(coded(partial, n), partial.next, 3, number, penalty).weights
    return ConvolutionMap(description, weights)


def coded(partial: ConvolutionMap, n: int) -> Moments:
    """The moments of random images' patches under the next layer."""
    encoder, labels = partial.codes(3), codes(n)
    if encoder is None:
        return Moments.from_features(partial.patches(images(n)), np.repeat(labels, partial.next.positions), classes=3)
    return Moments.from_features(partial.patches(images(n)), encoder[labels].reshape(-1, partial.next.solved))


def explicit_patches(x: np.ndarray, size: int) -> np.ndarray:
    """im2col by loops: n x positions x (channels size size), channels first, of n x H x W x channels."""
    n, height, width, _ = x.shape
    return np.stack(
        [x[:, i : i + size, j : j + size].transpose(0, 3, 1, 2).reshape(n, -1)
         for i in range(height - size + 1) for j in range(width - size + 1)], axis=1,
    )  # fmt: skip


def test_a_convolution_is_the_explicit_least_squares_on_patches():
    x, y = (images(20) / 255 - 0.5) / 0.25, codes(20)
    patches = explicit_patches(x, 3)
    P = np.concatenate([np.ones((*patches.shape[:2], 1)), patches], axis=2)
    first = ConvolutionMap({"network": "conv:4:3+relu", "shape": list(SHAPE), "seed": 3}, {})
    np.testing.assert_allclose(first.patches(images(20)), P.reshape(-1, 19), rtol=1e-12)
    layer = solve_layer(coded(first, 20), first.next, 3, 0, penalty=0.7)
    Q = first.codes(3)
    assert Q is not None
    np.testing.assert_allclose(Q.mean(0), 0.0, atol=1e-15)
    rows, targets = P.reshape(-1, 19), np.concatenate([Q[label] for label in y])
    free = np.sqrt(0.7) * np.eye(19)[1:]  # the constant is not shrunk
    stacked = np.concatenate([rows, free]), np.concatenate([targets, np.zeros((18, 4))])
    expected = np.linalg.lstsq(*stacked, rcond=None)[0]
    assert relative(layer.scales[0], 1 / (rows @ expected).std(0)) < 1e-9
    expected *= layer.scales[0]
    expected[0] += layer.scales[1]
    assert relative(layer.weights, expected) < 1e-9
    # and what it does is torch's convolution
    network = ConvolutionMap(first.description, {"layer.0": layer.weights})
    kernel = torch.as_tensor(layer.weights[1:].T.reshape(4, 2, 3, 3))
    out = torch.conv2d(torch.as_tensor(x).permute(0, 3, 1, 2), kernel, torch.as_tensor(layer.weights[0])).relu()
    np.testing.assert_allclose(network(images(20))[:, 1:], out.reshape(20, -1).numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_blocks_change_nothing(network, monkeypatch):
    whole = solved(network)(images(9))
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 1)
    assert len(solved(network).blocks(9)) == 9
    assert relative(solved(network)(images(9)), whole) < 1e-10


@pytest.mark.parametrize("network", NETWORKS)
def test_memory_does_not_grow_with_the_number_of_images(network):
    """A block's patches fit the block size, whatever the number of images; so does every layer between."""
    made = ConvolutionMap({"network": network, "shape": [32, 32, 3], "seed": 0}, {})
    sizes = {block.stop - block.start for block in made.blocks(10**5)}
    assert max(sizes) * made.next.positions * made.dim * 8 <= max(arrays.BLOCK_BYTES, made.next.positions * made.dim * 8)


@pytest.mark.parametrize("network", NETWORKS)
def test_torch_and_numpy_agree_and_one_image_will_do(network):
    made = solved(network)
    from_torch = made(torch.as_tensor(images(4)))
    assert isinstance(from_torch, torch.Tensor)
    np.testing.assert_array_equal(from_torch.numpy(), made(images(4)))
    assert relative(made(images(4)[2]), made(images(4))[2:3]) < 1e-12
    assert made(images(0)).shape == (0, made.dim)


def test_bytes_and_floats_are_the_same_images():
    made = solved(NETWORKS[1])
    np.testing.assert_allclose(made(images(3) / 255.0), made(images(3)), rtol=1e-12)


def test_contrast_makes_patches_blind_to_light():
    """Brighter and dimmer images have the same patches, but for the floor that keeps flat ones quiet."""
    made = ConvolutionMap({"network": "contrast+conv:1:3", "shape": list(SHAPE), "seed": 0}, {})
    x = np.random.default_rng(0).uniform(0.2, 0.4, (5, *SHAPE))
    assert relative(made.patches(1.5 * x + 0.1), made.patches(x)) < 0.01
    flat = made.patches(np.full((1, *SHAPE), 0.3))
    np.testing.assert_allclose(flat[:, 1:], 0.0, atol=1e-9)


def test_solved_filters_span_more_directions_than_there_are_classes():
    """Every place of an image has a code of its own. A dense layer has one place, and the ceiling stays: contrasts of classes."""
    first = ConvolutionMap({"network": "conv:12:3", "shape": list(SHAPE), "seed": 0}, {})
    assert np.linalg.matrix_rank(solve_layer(coded(first, 60), first.next, 0, 0, 0.5).weights) == 12
    first = ConvolutionMap({"network": "dense:12", "shape": list(SHAPE), "seed": 0}, {})
    assert np.linalg.matrix_rank(solve_layer(coded(first, 60), first.next, 0, 0, 0.5).weights, 1e-9) == 2


def test_drawn_filters_see_white_patches_and_lift_the_rank():
    first = ConvolutionMap({"network": "conv:4:3:40", "shape": list(SHAPE), "seed": 0}, {})
    patches = first.patches(images(60))
    weights = solve_layer(coded(first, 60), first.next, 0, 0, 0.5).weights
    out = patches @ weights
    np.testing.assert_allclose(out.mean(0), 0.0, atol=0.02)
    np.testing.assert_allclose(out[:, :4].std(0), 1.0, rtol=0.02)  # solved ones are scaled to it, the penalty aside
    assert 0.7 < out[:, 4:].std(0).min() <= out[:, 4:].std(0).max() < 1.2
    assert np.linalg.matrix_rank(weights) > 15


@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 3), st.sampled_from(NETWORKS + list(PRESETS)))
def test_shapes_are_foretold(height, width, channels, network):
    """Every step's output has the shape that parsing says."""
    shape = (height, width, channels)
    try:
        steps = parse(network, shape)
    except gf.GramfoldError:
        assume(False)
    weights = [np.zeros((step.patch, step.output[2])) for step in steps if step.kind in ("conv", "dense")][:-1]
    made = ConvolutionMap(
        {"network": network, "shape": list(shape), "seed": 0}, {f"layer.{i}": part for i, part in enumerate(weights)}
    )
    assert made(images(2, shape=shape)).shape == (2, made.dim)


@pytest.mark.parametrize(("network", "term"), [("pad:1+conv:2:9", "conv:2:9"), ("max:7", "max:7"), ("conv:2:5+grid:4", "grid:4")])
def test_networks_that_do_not_fit_the_images_are_refused(network, term):
    with pytest.raises(gf.GramfoldError, match=f"{term} does not fit its input of .* choose another network"):
        parse(network, SHAPE)


UNREADABLE = [
    "", "conv", "conv:3", "conv:3:0", "conv:-1:3", "conv:0:3", "conv:2:3:1:1", "pool:2", "max:x", "split", "split:-1", "relu:3",
    "grid",
]  # fmt: skip


@pytest.mark.parametrize("text", UNREADABLE)
def test_networks_that_cannot_be_read_are_refused_in_one_line(text):
    with pytest.raises(gf.GramfoldError, match=r"cannot read .* of a network; a term is one of .*lenet") as error:
        layers(text)
    assert "\n" not in str(error.value)


def test_weights_that_do_not_fit_are_refused():
    description = {"network": "conv:3:3+relu", "shape": list(SHAPE), "seed": 0}
    with pytest.raises(gf.GramfoldError, match="conv:3:3 has weights of shape"):
        ConvolutionMap(description, {"layer.0": np.zeros((18, 3))})
    with pytest.raises(gf.GramfoldError, match="2 layers for a network that has 1"):
        ConvolutionMap(description, {"layer.0": np.zeros((19, 3)), "layer.1": np.zeros((61, 3))})
    with pytest.raises(FeaturesError):
        ConvolutionMap(description, {})(images(2))
    with pytest.raises(gf.GramfoldError, match=r"expected images of shape \(7, 6, 2\)"):
        ConvolutionMap(description, {}).patches(images(2, shape=(6, 6, 2)))
