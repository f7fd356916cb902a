"""PACE's one idea: candidates, each with what it says of samples that are left out, averaged by how likely it makes them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import Samples
from gramfold.methods import ClientData
from gramfold.methods.pace import PACE
from gramfold.methods.pace.candidates import PARTS, Candidate, Own, OwnRidge, Part, Residual, mean_of
from gramfold.methods.pace.client import Given, OwnSamples
from gramfold.methods.pace.likelihood import OfClasses, OfValues, average


@pytest.fixture
def moons(rng):
    """Three classes along a curve, turned a little at every client."""
    parts = {}
    for k in range(3):
        y = rng.integers(0, 3, 90)
        X = rng.standard_normal((90, 4)) + 2.0 * np.eye(3, 4)[y]
        parts[str(k)] = (X @ np.linalg.qr(np.eye(4) + 0.7 * rng.standard_normal((4, 4)))[0], y)
    return parts


def at_one(parts, name: str = "0", regression: bool = False, method: PACE | None = None) -> tuple[OwnSamples, gf.Head, PACE]:
    """What a client of a run knows, with the head that it made of it."""
    method = PACE(features="bias+linear", refinement="relu:32") if method is None else method
    result = gf.run(method, gf.Federation.from_clients(parts, test_size=0.0, regression=regression))
    client = ClientData(name, result.run.given(name, *parts[name]), contributed=True)
    final: Any = result.run.broadcast
    rows = final.space.map(client.train.inputs)
    samples = OwnSamples.of([client], Given(final.space, final.pooled, final.refinement), rows)
    return samples, result.heads[name], result.run.method


def of_classes(samples: OwnSamples) -> OfClasses:
    assert isinstance(samples.likelihood, OfClasses)
    return samples.likelihood


def test_the_box_is_what_the_code_computes(moons):
    """Its formulas, written out once more for one client."""
    samples, head, method = at_one(moons)
    likelihood, y = of_classes(samples), moons["0"][1]
    Y, n = np.eye(3)[y], len(y)
    # u_i, the left-out scores, from the sums of everybody
    phi = head.streams[0].map
    everybody = np.concatenate([phi(X) for X, _ in moons.values()])
    labels = np.eye(3)[np.concatenate([y for _, y in moons.values()])]
    final: Any = gf.run(method, gf.Federation.from_clients(moons, test_size=0.0)).run.broadcast
    pooled = final.pooled
    inverse = np.linalg.inv(pooled.leverage.lower @ pooled.leverage.lower.T)
    rows = samples.rows[0]
    h = np.einsum("ij,jk,ik->i", rows, inverse, rows)
    W = inverse @ everybody.T @ labels
    np.testing.assert_allclose(samples.scores[0], Y - (Y - rows @ W) / (1 - h)[:, None], atol=1e-8)
    # candidates, and their shares q_c exp(L_c) / sum
    stay = Candidate("stay", samples.scores, 0 * samples.scores)
    likelihood.weigh(stay)
    found = [stay, *(each for part in PARTS for each in part.candidates(samples, stay))]
    told = []
    for candidate in found:
        logits = candidate.share * np.tensordot(likelihood.weights[0], likelihood.evidence(candidate)[0], 1) + candidate.added[0]
        logits = logits + likelihood.left_out_shares[0]
        told.append(float((logits[np.arange(n), y] - np.log(np.exp(logits).sum(1))).sum()))
    shares = np.array([np.broadcast_to(each.before, 1)[0] for each in found]) * np.exp(np.array(told) - max(told))
    shares /= shares.sum()
    mixture, by_name = average(found, likelihood)
    for name, share in by_name.items():
        mine = sum(w for w, each in zip(shares, found, strict=True) if each.name == name)
        assert share[0] == pytest.approx(mine, abs=1e-2)  # candidates with hardly any share are left out
        assert head.chosen[name] == pytest.approx(share[0], abs=1e-4)
    # the head: weighted evidence of the moved solution, what is added, the client's prior
    weights = likelihood.fitted(mixture, added=True)[0]
    X = moons["1"][0][:20]
    scores = phi(X) @ head.streams[0].weights
    place = pooled.discriminant.place(scores)
    logits = sum(
        np.broadcast_to(mixture.share, 1)[0] * w * term(place) for w, term in zip(weights, likelihood.terms, strict=False)
    )
    logits = logits + sum(s.scale * s.map(X) @ s.weights for s in head.refinement) + head.offset
    np.testing.assert_allclose(head.scores(X), logits, atol=1e-9)


def test_what_a_mean_says_of_a_left_out_sample_is_the_mean_of_what_candidates_say(moons):
    samples, _, _ = at_one(moons)
    stay = Candidate("stay", samples.scores, 0 * samples.scores)
    likelihood = of_classes(samples)
    likelihood.weigh(stay)
    residual, own = Residual().candidates(samples, stay)[0], Own().candidates(samples, stay)[0]
    mean = mean_of([stay, residual, own], [0.2, 0.5, 0.3])
    assert mean.share == pytest.approx(0.7)
    said = 0.2 * likelihood.logits(stay) + 0.5 * likelihood.logits(residual) + 0.3 * likelihood.logits(own)
    np.testing.assert_allclose(likelihood.logits(mean), said, atol=1e-9)


@pytest.mark.parametrize("regression", [False, True])
def test_nobody_is_worse_off_for_joining(moons, regression):
    """In left-out likelihood a mean falls short of no candidate, a model of one's own among them, by more than log 1/q."""
    if regression:
        moons = {name: (X, np.sin(3 * X[:, 0]) + int(name) * X[:, 1]) for name, (X, _) in moons.items()}
    samples, _, _ = at_one(moons, regression=regression)
    stay = Candidate("stay", samples.scores, 0 * samples.scores)
    if isinstance(samples.likelihood, OfClasses):
        samples.likelihood.weigh(stay)
    # blends share no evidence with the rest: their scores are averaged, not their logits, and the bound is not theirs
    found = [stay, *Residual().candidates(samples, stay), *Own().candidates(samples, stay)]
    mixture, _ = average(found, samples.likelihood)
    before = np.array([each.before for each in found])
    least = [samples.likelihood.of(each)[0] + np.log(q) for each, q in zip(found, before / before.sum(), strict=True)]
    assert samples.likelihood.of(mixture) >= max(least) - 1e-6 - np.log(1 + 1e-3 * len(found))


def test_clients_that_differ_in_everything_are_as_well_off_as_alone(rng):
    """Nothing is shared but the columns: one's own model is among the candidates."""
    X, site = rng.standard_normal((800, 6)), np.arange(800) % 4
    slopes = 5.0 * rng.standard_normal((4, 6))
    y = (X * slopes[site]).sum(1) + 10 * site + 0.1 * rng.standard_normal(800)
    parts = {str(k): (X[site == k], y[site == k]) for k in range(4)}
    federation = gf.Federation.from_clients(parts, regression=True, test_size=0.3, random_state=0)
    for regime in ("sum", "sketch"):
        result = gf.run(PACE(features="raw+bias+linear", regime=regime), federation)
        assert result.mean_rmse < 0.12
        assert min(client.chosen["own"] for client in result.clients.values()) > 0.5
    assert gf.run(PACE(features="raw+bias+linear", parts=(Residual(of_values=(1e4,)),)), federation).mean_rmse > 1.0


def test_a_part_that_is_taken_away_has_no_candidates(moons):
    federation = gf.Federation.from_clients(moons, test_size=0.0)
    whole = PACE(features="bias+linear", refinement="relu:32")
    assert set(gf.run(whole, federation).heads["0"].chosen) >= {"stay", "residual", "own"}
    for part in PARTS:
        rest = replace(whole, parts=tuple(each for each in PARTS if each is not part))
        head = gf.run(rest, federation).heads["0"]
        assert part.name not in head.chosen
        if part.name == "blend":
            assert "alpha" not in head.chosen, "nothing is said of what was not tried"


def test_few_samples_decide_little_and_many_decide():
    rng = np.random.default_rng(0)
    for n, least in ((4, 0.05), (400, 0.99)):
        targets = rng.standard_normal((n, 1))
        shared, own = targets + rng.standard_normal((n, 1)), targets + 0.5 * rng.standard_normal((n, 1))
        candidates = [Candidate("stay", shared, 0 * shared), Candidate("own", shared, own, share=0.0, before=0.1)]
        _, shares = average(candidates, OfValues(targets, np.ones(n)))
        assert shares["own"] > least
        assert n > 100 or shares["stay"] > 0.05


def test_a_late_client_is_in_no_sum(moons):
    X, y = moons["0"]
    result = gf.run(PACE(features="bias+linear"), gf.Federation.from_clients({k: moons[k] for k in "12"}, test_size=0.0))
    final: Any = result.run.broadcast
    rows = final.space.map(X)
    samples = OwnSamples.of([ClientData("late", Samples(X, y))], Given(final.space, final.pooled, final.refinement), rows)
    np.testing.assert_allclose(samples.scores[0], rows @ final.pooled.weights, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("method", [PACE(features="raw+bias+linear"), PACE()])
def test_noise_is_foreseen_as_noise(classes, method):
    """Scores that say nothing lean away from a left-out sample's class, as the mean of the others does: that is no evidence."""
    rng = np.random.default_rng(classes)
    X, y = rng.standard_normal((900, 5)), rng.integers(0, classes, 900)
    parts = {str(k): (X[k::3], y[k::3]) for k in range(3)}
    result = gf.run(method, gf.Federation.from_clients(parts, test_size=0.5, random_state=0))
    assert abs(result.leave_one_out_accuracy - 1 / classes) < 0.15
    assert result.mean_log_loss < np.log(classes) + 0.06


# --- a candidate of somebody else's, in one file (docs/pace.md has it) ---


@dataclass(frozen=True)
class Waves(Part):
    """A ridge of the residuals, on waves of a length of its own."""

    name: ClassVar[str] = "waves"
    length: float = 1.0

    def candidates(self, samples: OwnSamples, stay: Candidate) -> list[Candidate]:
        if not samples.fits:
            return []
        waves = gf.features.draw(gf.features.parse(f"raw+fourier:64:{1 / self.length:g}"), samples.inputs.shape[1], 0)
        ridge = OwnRidge(waves, samples.mapped(waves), samples.roots)
        fit, numbers = samples.fitted(ridge, samples.likelihood.residuals(stay), 0.1)
        return [Candidate(self.name, stay.scores, stay.added + fit, coordinates={ridge: numbers})]


@pytest.mark.parametrize("regression", [False, True])
def test_a_part_of_somebody_elses_is_a_value_in_the_tuple(regression, rng, tmp_path):
    X, site = rng.uniform(-1, 1, (900, 2)), np.arange(900) % 3
    bends = np.sin(4 * X[:, 0] + 2 * site)
    y = bends + 0.1 * rng.standard_normal(900) if regression else (bends > 0).astype(int)
    parts = {str(k): (X[site == k], y[site == k]) for k in range(3)}
    federation = gf.Federation.from_clients(parts, regression=regression, test_size=0.3, random_state=0)
    plain = PACE(features="raw+bias+linear", parts=())
    without, found = gf.run(plain, federation), gf.run(replace(plain, parts=(Waves(0.5),)), federation)
    assert min(client.chosen["waves"] for client in found.clients.values()) > 0.5
    if regression:
        assert found.mean_rmse < 0.6 * without.mean_rmse
    else:
        assert found.mean_accuracy > without.mean_accuracy + 0.1
    head = found.heads["0"]
    head.save(tmp_path / "head")
    np.testing.assert_array_equal(gf.load_head(tmp_path / "head").scores(X), head.scores(X))
