"""Learned maps: a fingerprint covers what was learned, and a registry brings every kind back."""

import json

import numpy as np
import pytest
import torch

import gramfold as gf
from gramfold import features
from gramfold.convolution import ConvolutionMap
from gramfold.errors import FeaturesError, GramfoldError
from gramfold.features import Bias, Concat, DeepMap, Linear, Map, MetricMap, draw, layer_names, parse

DRAWN = draw(parse("bias+linear"), 4, seed=3)
DEEP = {"base": DRAWN.description, "activation": "gelu"}
NETWORK = {"network": "conv:3:3+relu+max:2", "shape": [6, 6, 1], "seed": 3}


def layers(rng: np.random.Generator, count: int = 2) -> dict[str, np.ndarray]:
    return {name: rng.standard_normal((DRAWN.dim, 3)) for t in range(count) for name in layer_names(t)}


def deep(seed: int = 0, **changes) -> DeepMap:
    return DeepMap(DEEP, {**layers(np.random.default_rng(seed)), **changes})


def network(seed: int = 0) -> ConvolutionMap:
    return ConvolutionMap(NETWORK, {"layer.0": np.random.default_rng(seed).standard_normal((10, 3))})


@pytest.mark.parametrize("make", [deep, network])
def test_moments_under_different_learned_layers_do_not_add(make):
    x = np.random.default_rng(1).uniform(size=(5, 4) if make is deep else (5, 6, 6, 1))
    maps = make(0), make(0), make(1)
    one, same, other = (gf.Moments.from_features(phi(x), np.arange(5) % 2, 2, phi.fingerprint) for phi in maps)
    assert (one + same).n == 10
    with pytest.raises(GramfoldError, match="differ in their feature map"):
        _ = one + other


def test_the_fingerprint_of_learned_layers_covers_every_number_and_nothing_else():
    learned = layers(np.random.default_rng(0))
    nudged = learned["outer.1"].copy()
    nudged[0, 0] = np.nextafter(nudged[0, 0], 9)
    assert deep().fingerprint == DeepMap(DEEP, learned).fingerprint
    prints: list[Map] = [
        deep(),
        deep(**{"outer.1": nudged}),
        deep(1),
        DeepMap(DEEP, layers(np.random.default_rng(0), 1)),
        DeepMap(DEEP, {}),
        DeepMap({**DEEP, "activation": "relu"}, learned),
        DRAWN,
        network(0),
        network(1),
        ConvolutionMap(NETWORK, {}),
    ]
    assert len({phi.fingerprint for phi in prints}) == len(prints)
    swapped = {**learned, "inner.0": learned["outer.0"], "outer.0": learned["inner.0"]}
    assert DeepMap(DEEP, swapped).fingerprint != deep().fingerprint


def test_how_the_numbers_are_held_does_not_matter():
    learned = layers(np.random.default_rng(0))
    for held in (torch.as_tensor, np.asfortranarray, lambda a: np.concatenate([a, a], 1)[:, :3]):
        assert DeepMap(DEEP, {name: held(array) for name, array in learned.items()}).fingerprint == deep().fingerprint


@pytest.mark.parametrize("make", [deep, network])
def test_a_fingerprint_that_is_given_is_trusted_and_one_that_is_not_is_computed_once(make, monkeypatch):
    kind = type(make())
    given = kind(make().description, make().arrays, "as broadcast")
    assert given.fingerprint == "as broadcast"
    phi, calls = make(), []
    monkeypatch.setattr("gramfold.features.base.fingerprint_of", lambda *parts: calls.append(1) or "hash")
    assert not calls
    assert phi.fingerprint == phi.fingerprint == "hash"
    assert len(calls) == 1


@pytest.mark.parametrize("phi", [DRAWN, deep(), network()], ids=lambda phi: phi.kind)
def test_a_description_and_its_arrays_give_the_same_map(phi):
    assert phi.description["kind"] == phi.kind
    again = features.restore(json.loads(json.dumps(phi.description)), phi.arrays)
    assert type(again) is type(phi)
    assert again.fingerprint == phi.fingerprint
    x = np.random.default_rng(1).uniform(size=(5, *NETWORK["shape"]) if phi.kind == "convolution" else (5, 4))
    np.testing.assert_array_equal(again(x), phi(x))
    if phi.kind != "drawn":
        assert features.restore(phi.description, phi.arrays, "broadcast").fingerprint == "broadcast"


@pytest.mark.parametrize("kind", [None, "hologram", 3, ["drawn"]])
def test_an_unknown_kind_of_map_is_refused(kind):
    with pytest.raises(FeaturesError):
        features.restore({**DRAWN.description, "kind": kind}, {})


def test_a_drawn_map_is_the_same_with_and_without_its_kind():
    # descriptions travel in broadcasts; a drawn one without its kind is still that map, with the fingerprint it always had
    bare = {key: value for key, value in DRAWN.description.items() if key != "kind"}
    assert features.draw_described(bare) is features.draw_described(DRAWN.description)


def test_tails_are_logarithms_beyond_two_standard_deviations_and_maps_of_before_have_none():
    plain = draw(Concat([Bias(), Linear()]), 1, 0)
    map = MetricMap.of(plain, [], (np.zeros(1), np.ones(1)))
    z = np.array([[-2 * np.e], [-1.0], [0.0], [2.0], [2 * np.e**0.5]])
    np.testing.assert_allclose(map.comparable(z)[:, 0], [-4.0, -1.0, 0.0, 2.0, 3.0])
    before = {key: value for key, value in map.description.items() if key not in ("tails", "reach")}
    np.testing.assert_array_equal(MetricMap(before, map.arrays).comparable(z), z)


def test_numbers_beyond_floats_are_no_columns():
    with pytest.raises(gf.GramfoldError, match="cannot read feature map"):
        features.FeatureMap.from_description({"kind": "standardize", "centre": [10**400], "scale": [1.0]})
