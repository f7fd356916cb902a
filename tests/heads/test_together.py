"""Heads of several clients, each on its own samples: together they say what each says alone."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

import gramfold as gf
from gramfold.evaluation import score_each, score_head
from gramfold.federation import Samples
from gramfold.heads import Head, Together
from gramfold.methods import Method

WITH_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
DEVICES = ["cpu", pytest.param("cpu:0", marks=WITH_TORCH)]


def run_of(kind: str, method: Method | None = None) -> tuple[gf.Result, list[np.ndarray], list[np.ndarray]]:
    """A run, and samples for each of its heads, of other sizes for each."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((240, 5))
    y = X[:, :2] + rng.standard_normal((240, 2)) if kind == "values" else rng.integers(0, 2 if kind == "two" else 4, 240)
    clients = {str(k): (X[k * 30 : k * 30 + 30], y[k * 30 : k * 30 + 30]) for k in range(8)}
    federation = gf.Federation.from_clients(clients, regression=kind == "values")
    made = gf.run(method or gf.PACE(features="bias+linear+fourier:16", refinement="relu:12"), federation)
    sizes = [1, 7, 7, 3, 12, 2, 5, 0]
    return made, [rng.standard_normal((n, 5)) for n in sizes], [y[:n] for n in sizes]


def with_own_centroids(head: Head, turn: float) -> Head:
    shared = head.evidence.discriminant
    return replace(head, evidence=replace(head.evidence, discriminant=replace(shared, mean=shared.mean + turn)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["classes", "own places", "two", "values"])
def test_heads_together_score_what_each_scores_alone(kind, device):
    made, inputs, _ = run_of(kind)
    heads = list(made.heads.values())
    if kind == "own places":
        heads[1::2] = [with_own_centroids(head, 0.1 * k) for k, head in enumerate(heads[1::2])]
    for head, rows, scores in zip(heads, inputs, Together(heads, inputs, device).scores(heads), strict=True):
        np.testing.assert_allclose(scores, head.scores(rows), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", [gf.AFL(), gf.APFL(), gf.LocalClasses(), gf.Local()])
def test_so_do_heads_of_other_methods(method, device):
    made, inputs, _ = run_of("classes", method)
    heads = list(made.heads.values())
    for head, rows, scores in zip(heads, inputs, Together(heads, inputs, device).scores(heads), strict=True):
        np.testing.assert_allclose(scores, head.scores(rows), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_figures_are_those_of_each_alone_however_many_samples_are_mapped_at_a_time(kind, monkeypatch):
    made, inputs, targets = run_of(kind)
    heads, samples = list(made.heads.values()), [Samples(*part) for part in zip(inputs, targets, strict=True)]
    for numbers in (1, 2**25):
        monkeypatch.setattr("gramfold.evaluation.metrics.NUMBERS", numbers)
        for head, own, (mine, shared) in zip(heads, samples, score_each(heads, made.global_head, samples), strict=True):
            for found, wanted in ((mine, score_head(head, own)), (shared, score_head(made.global_head, own, uncertain=False))):
                assert (found.n, found.right) == (wanted.n, wanted.right)
                for name in ("squared_error", "surprise", "auc"):
                    figure = getattr(wanted, name)
                    assert getattr(found, name) == (None if figure is None else pytest.approx(figure, rel=1e-9))
                assert {key: pytest.approx(ends, rel=1e-7) for key, ends in wanted.intervals.items()} == found.intervals


def test_samples_that_are_no_numbers_are_refused_by_the_head_they_are_for():
    made, inputs, _ = run_of("classes")
    heads: list[Head] = list(made.heads.values())
    inputs[4][2, 1] = np.nan
    with pytest.raises(gf.GramfoldError, match="the input of pace: sample 2"):
        Together(heads, inputs)
