"""Maps after one another and side by side, how they are written, and how they are told apart."""

import json

import numpy as np
import pytest

from gramfold.errors import GramfoldError
from gramfold.features import (
    Bias,
    Chain,
    Concat,
    FeatureMap,
    Fourier,
    Linear,
    Normalize,
    Nystroem,
    Projection,
    draw,
    draw_described,
    parse,
)
from strategies import relative

SPECS = [
    Linear(), Bias(), Normalize(), Projection(4), Projection(4, "gelu"), Fourier(4), Fourier(4, 0.5), Nystroem(np.eye(3)),
    Nystroem(np.eye(3), 2.0), Nystroem(np.eye(3)[:2]), Nystroem(2 * np.eye(3)), Chain([Normalize(), Fourier(4)]),
    Concat([Normalize(), Fourier(4)]), Concat([Fourier(4), Normalize()]), Concat([Bias(), Chain([Projection(3), Fourier(2)])]),
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_description_survives_json_and_gives_the_same_map(spec, rng):
    x = rng.standard_normal((5, 3))
    drawn = draw(spec, 3, seed=2)
    again = draw_described(json.loads(json.dumps(drawn.description)))
    np.testing.assert_array_equal(again(x), drawn(x))
    assert again.fingerprint == drawn.fingerprint
    assert drawn(x).shape == (5, drawn.dim) == (5, spec.width(3))
    assert FeatureMap.from_description(spec.describe()).describe() == spec.describe()


def test_fingerprints_differ_where_anything_differs():
    drawn = [draw(spec, 3, seed=2) for spec in SPECS]
    drawn += [draw(Fourier(4), 3, seed=3), draw(Fourier(4), 3, seed=2, name="refinement"), draw(Fourier(4), 5, seed=2)]
    assert len({d.fingerprint for d in drawn}) == len(drawn)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_maps_can_be_compared(spec):
    assert spec == FeatureMap.from_description(spec.describe())
    assert sum(spec == other for other in SPECS) == 1


def test_stacks_are_composition_and_concatenation(rng):
    x = rng.standard_normal((5, 3))
    stacked = draw(Chain([Normalize(), Concat([Bias(), Linear(), Projection(4, "identity")])]), 3, seed=0)(x)
    normal = draw(Normalize(), 3, seed=0)(x)
    np.testing.assert_array_equal(stacked[:, :4], np.hstack([np.ones((5, 1)), normal]))
    assert relative(stacked[:, 4:], normal @ np.linalg.lstsq(normal, stacked[:, 4:], rcond=None)[0]) < 1e-12


def test_equal_maps_at_different_places_differ(rng):
    left, right = np.split(draw(Concat([Fourier(4), Fourier(4)]), 3, seed=0)(rng.standard_normal((5, 3))), 2, axis=1)
    assert relative(left, right) > 0.1


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("linear", Chain([Normalize(), Linear()])),
        ("raw+linear", Linear()),
        ("bias+linear", Chain([Normalize(), Concat([Bias(), Linear()])])),
        ("raw+bias+linear", Concat([Bias(), Linear()])),
        (" bias + fourier:8:0.5 ", Chain([Normalize(), Concat([Bias(), Fourier(8, 0.5)])])),
        ("fourier:8", Chain([Normalize(), Fourier(8)])),
        ("relu:16", Chain([Normalize(), Projection(16, "relu")])),
        ("raw+softshrink:3", Projection(3, "softshrink")),
    ],
)
def test_maps_are_written_as_terms(text, spec):
    assert parse(text) == spec


@pytest.mark.parametrize(
    "text",
    [
        "", "raw", "+", "linear+", "lineal", "linear:3", "bias:1", "relu", "relu:", "relu:x", "relu:1.5", "relu:0", "relu:-4",
        "relu:3:4", "fourier", "fourier:0", "fourier:4:0", "fourier:4:-1", "fourier:4:nan", "fourier:4:inf", "fourier:4:x",
        "fourier:4:1:1", "linear+raw", "sine:4", "nystroem:4",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_words(text):
    with pytest.raises(GramfoldError) as error:
        parse(text)
    assert "feature map" in str(error.value) or "Fourier" in str(error.value)


@pytest.mark.parametrize(
    "description",
    [{}, {"kind": "hologram"}, {"kind": None}, {"kind": "fourier"}, {"kind": "fourier", "dim": 3, "depth": 2},
     {"kind": "nystroem"}, {"kind": "chain"},
     {"kind": "concat", "parts": [{"kind": "hologram"}]}, {"kind": "_stack", "parts": []}],
)  # fmt: skip
def test_descriptions_of_no_map_are_refused(description):
    with pytest.raises(GramfoldError):
        draw_described({"map": description, "inputs": 3, "seed": 0, "name": "features"})
