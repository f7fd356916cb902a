"""HEART-PFL: its published size, its three parts, each of which can be left out, and their definitions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

import gramfold as gf
from gradient_cases import distance
from gramfold import networks
from gramfold.methods import ClientData
from gramfold.methods.gradient import akt
from gramfold.methods.gradient.hda import alignment, class_means
from gramfold.networks.layers import Norm
from gramfold.networks.resnet import StridedConv1x1

SMALL = gf.HeartPFL(model="resnet:4x1", lr=0.05, rounds=2, epochs=1, participation=1.0, akt_steps=2, akt_batch=64)


@pytest.fixture(scope="module")
def whole(pictures, image_file) -> gf.Result:
    """A run with all its parts."""
    return gf.run(replace(SMALL, proxy=image_file), pictures)


def published(**more):
    return networks.describe("resnet18", (32, 32, 3), 100, 0, **{"adapters": True, "freeze": True, "pretrained": None, **more})


def test_the_published_shape_trains_the_published_number_of_weights():
    net = networks.build(published())
    assert net.num_parameters == 1_459_428
    assert sum("adapter" in name and name.endswith("mix.weight") for name in net.initial) == 16
    assert net(net.initial, torch.zeros(2, 32, 32, 3, dtype=torch.uint8)).shape == (2, 100)


def test_adapters_start_as_the_identity_to_within_their_tiny_weights():
    x = torch.rand(3, 8, 8, 3)
    shape = ("resnet:4x1", (8, 8, 3), 5, 0)
    plain, adapted = (
        networks.build(networks.describe(*shape, adapters=with_them, freeze=True, pretrained=None)) for with_them in (False, True)
    )
    a, b = (net(net.initial, x, "base") for net in (plain, adapted))
    torch.testing.assert_close(a, b, rtol=0.01, atol=0.01)


def test_shortcuts_are_the_usual_strided_convolutions_by_another_way():
    """Strided 1x1 convolutions of few channels crash some processors (uxlfoundation/oneDNN#6035)."""
    strided, x = StridedConv1x1(3, 5, 2), torch.rand(2, 3, 9, 9)
    torch.testing.assert_close(strided(x), torch.nn.functional.conv2d(x, strided.weight, stride=2))


def test_pretrained_weights_load_by_their_usual_names_and_wrong_ones_are_refused(tmp_path):
    shape = ("resnet:4x1", (8, 8, 3), 5, 0)
    describe = {"adapters": True, "freeze": True}
    given_net = networks.build(networks.describe(*shape, **describe, pretrained=None))
    state = {name.removeprefix("base."): t + 1 for name, t in given_net.full_state({}).items() if "adapter" not in name}
    torch.save(state, tmp_path / "weights.pt")
    net = networks.build(networks.describe(*shape, **describe, pretrained=str(tmp_path / "weights.pt")))
    torch.testing.assert_close(net.full_state({})["base.layer1.0.conv1.weight"], state["layer1.0.conv1.weight"])
    torch.save({"conv1.weight": torch.zeros(3)}, tmp_path / "wrong.pt")
    for name, message in (("wrong.pt", "no weights of the right shape"), ("absent.pt", "cannot read pretrained weights")):
        with pytest.raises(gf.GramfoldError, match=message):
            networks.build(networks.describe(*shape, **describe, pretrained=str(tmp_path / name)))


def test_it_learns_keeps_convolutions_frozen_and_gives_the_same_bits_again(pictures, image_file, whole):
    result = gf.run(replace(SMALL, rounds=4, epochs=3), pictures)
    assert result.mean_accuracy > 0.45, "three classes: chance is 0.33"
    assert not any("conv" in name for name in result.heads["0"].state), "frozen weights neither train nor travel"  # type: ignore[attr-defined]
    again = gf.run(replace(SMALL, proxy=image_file), pictures)
    for name in whole.heads:
        assert distance(whole.heads[name], again.heads[name]) == 0


@pytest.mark.parametrize("more", [{}, {"adapters": False, "freeze": False, "prox": 0.0}])
def test_clients_trained_side_by_side_learn_what_each_would_alone(more, pictures):
    """Padding enters no statistics, and every client's dropout is its own."""
    x, y = pictures.clients[0].train()
    sources = {client.name: (*client.train(), *client.test()) for client in pictures}
    federation = gf.Federation.from_clients({**sources, "single": (x[:1], y[:1], x[:1], y[:1])}, labels=range(3))
    loop, batched = (gf.run(replace(SMALL, batch_size=7, batched=given, **more), federation) for given in (False, True))
    for name in loop.heads:
        for key, tensor in loop.heads[name].state.items():  # type: ignore[attr-defined]
            torch.testing.assert_close(batched.heads[name].state[key], tensor, rtol=1e-3, atol=1e-4)  # type: ignore[attr-defined]


def test_normalisation_in_training_is_the_usual_one():
    ours, usual = Norm(3), torch.nn.BatchNorm2d(3)
    x = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(0)) + 2
    ours.share = torch.full((5,), 0.2)
    torch.testing.assert_close(ours(x), usual(x))
    for key, value in ours.fresh.items():
        torch.testing.assert_close(value, getattr(usual, key))


def test_a_run_stopped_in_the_middle_of_a_round_goes_on_to_the_same_bits(pictures, image_file, whole, tmp_path, monkeypatch):
    method = replace(SMALL, proxy=image_file)
    calls, update = [], gf.HeartPFL.update

    def stopped(self, cohort, broadcast):
        calls.append(broadcast.round)
        if len(calls) == len(pictures.clients) + 2:
            raise KeyboardInterrupt
        return update(self, cohort, broadcast)

    with monkeypatch.context() as patch:
        patch.setattr(gf.HeartPFL, "update", stopped)
        with pytest.raises(KeyboardInterrupt):
            gf.run(method, pictures, checkpoint=tmp_path)
    assert calls[-1] == 1
    resumed = gf.run(method, pictures, checkpoint=tmp_path)
    for name in whole.heads:
        assert distance(whole.heads[name], resumed.heads[name]) == 0


def test_a_head_file_holds_the_frozen_weights_too(pictures, tmp_path):
    head = gf.run(SMALL, pictures).heads["0"]
    head.save(tmp_path / "head.safetensors")
    again, x = gf.load_head(tmp_path / "head.safetensors"), pictures.clients[0].test().inputs
    assert "base.conv1.weight" in again.state  # type: ignore[attr-defined]
    np.testing.assert_array_equal(again.scores(x), head.scores(x))


@pytest.mark.parametrize("left_out", [{"adapters": False}, {"hda": 0.0}, {"akt_rounds": 0}, {"freeze": False}])
def test_each_part_can_be_left_out_and_makes_a_difference(left_out, pictures, image_file, whole):
    without = gf.run(replace(SMALL, proxy=image_file, **left_out), pictures)
    x = pictures.clients[0].test().inputs
    assert np.abs(whole.heads["0"].scores(x) - without.heads["0"].scores(x)).max() > 0 or "akt_rounds" in left_out
    assert ("akt_kept" in without.chosen) == ("akt_rounds" not in left_out)


def test_clients_never_sampled_and_clients_of_one_sample_are_fine(pictures):
    x, y = pictures.clients[0].train()
    sources = {client.name: (*client.train(), *client.test()) for client in pictures}
    federation = gf.Federation.from_clients({**sources, "single": (x[:1], y[:1], x[:1], y[:1])}, labels=range(3))
    result = gf.run(replace(SMALL, participation=0.3), federation)
    assert all(client.accuracy is not None for client in result.clients.values())


# --- HDA ---


def stages_and_prototypes(rng: torch.Generator, n: int = 6):
    widths = (4, 8, 16, 32)
    stages = [torch.rand(n, w, generator=rng).requires_grad_() for w in widths]
    return stages, [torch.rand(3, w, generator=rng) for w in widths], torch.arange(n) % 3


def test_hda_gradient_reaches_the_features_of_every_stage():
    stages, prototypes, y = stages_and_prototypes(torch.Generator().manual_seed(0))
    grads = torch.autograd.grad(alignment(stages, prototypes, y).mean(), stages)
    assert all(float(g.abs().max()) > 0 for g in grads)


def test_hda_aligns_early_stages_by_direction_and_late_ones_by_value():
    stages, prototypes, y = stages_and_prototypes(torch.Generator().manual_seed(1))
    losses = torch.stack([1 - cosine_similarity(z, p[y]) for z, p in zip(stages[:2], prototypes[:2], strict=True)]
                         + [(z - p[y]).square().mean(1) for z, p in zip(stages[2:], prototypes[2:], strict=True)])  # fmt: skip
    torch.testing.assert_close(alignment(stages, prototypes, y), losses.mean(0))
    longer = [3 * z if early else z for z, early in zip(stages, (True, True, False, False), strict=True)]
    torch.testing.assert_close(alignment(longer, prototypes, y), alignment(stages, prototypes, y))
    later = [z if early else 3 * z for z, early in zip(stages, (True, True, False, False), strict=True)]
    assert float((alignment(later, prototypes, y) - alignment(stages, prototypes, y)).detach().abs().min()) > 0.01


def test_prototypes_are_class_means_at_the_start_of_the_round(pictures):
    client = ClientData("0", pictures.clients[0].train())
    cohort = SMALL._cohort([client], SMALL.begin(pictures.task))
    found = SMALL.prototypes(cohort, cohort.spread(cohort.shared))
    x, y = cohort.samples(0)
    z = cohort.net(cohort.shared, x, "stages")
    for stage, means in zip(z, found.values(), strict=True):
        for c in y.unique():
            torch.testing.assert_close(means[0, c], stage[y == c].mean(0), rtol=1e-4, atol=1e-5)
    empty = class_means([torch.ones(2, 3)], torch.tensor([0, 0]), 2)[0]
    assert empty.tolist() == [[1, 1, 1], [0, 0, 0]]


# --- AKT ---

LOGITS = st.lists(st.lists(st.floats(-60, 60, width=32), min_size=4, max_size=4), min_size=2, max_size=2)


symmetric_kl = akt.Distillation().divergence


@given(LOGITS)
def test_the_symmetric_kl_is_symmetric_finite_and_zero_only_between_equals(rows):
    a, b = torch.tensor(rows[:1]), torch.tensor(rows[1:])
    forth, back = float(symmetric_kl(a, b)), float(symmetric_kl(b, a))
    assert forth == back
    assert np.isfinite(forth)
    assert forth >= 0
    assert float(symmetric_kl(a, a)) == 0
    # the sum of the two directions, where neither underflows
    p, q = a.double().softmax(1), b.double().softmax(1)
    expected = float((p * (p / q).log() + q * (q / p).log()).sum())
    assert forth == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_two_directions_of_the_divergence_add_up_to_the_symmetric_one(temperature):
    student, clients = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    forward, reverse, both = (
        float(akt.Distillation(temperature=temperature, direction=name).divergence(student, clients))
        for name in ("forward", "reverse", "symmetric")
    )
    p, q = (clients / temperature).softmax(1), (student / temperature).softmax(1)
    assert forward == pytest.approx(float((p * (p / q).log()).sum(1).mean()) * temperature**2, rel=1e-4)
    assert forward + reverse == pytest.approx(both, rel=1e-4)


def test_pgd_stays_in_its_ball_and_in_the_image_and_raises_the_loss(pictures):
    net = networks.build(networks.describe("cnn:4", (8, 8, 3), 3, 0))
    state = {name: t + 0.1 * torch.randn(t.shape, generator=torch.Generator().manual_seed(1)) for name, t in net.initial.items()}
    images = torch.as_tensor(pictures.clients[0].train().inputs).float() / 255
    wanted = net(state, images).detach()
    target = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(0))

    def loss(x):
        return symmetric_kl(net(state, x), target)

    moved = images + akt.EPSILON * (2 * torch.rand(images.shape, generator=torch.Generator().manual_seed(0)) - 1)
    for _ in range(akt.STEPS):
        moved = akt.climbed(loss, images, moved)
    assert float((moved - images).abs().max()) <= akt.EPSILON + 1e-6
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 1
    assert float(loss(moved)) > float(loss(images))


FEW_STEPS = akt.Distillation(steps=30, batch=64)


def right_on(net, images, codes):
    """The accuracy of a model on these."""
    return lambda state: float((net(state, images).argmax(1) == codes).float().mean())


@pytest.fixture
def distillation(pictures):
    """A network, an average, clients that agree on something else, and images with labels."""
    net = networks.build(networks.describe("cnn:4", (8, 8, 3), 3, 0))
    images, codes = (torch.as_tensor(part) for part in pictures.clients[0].train())
    average = dict(net.initial)
    biased = {**average, "head.bias": torch.tensor([3.0, 0.0, -3.0])}
    return net, average, [biased, biased], images, codes


def test_akt_keeps_the_average_when_the_distilled_model_validates_worse(distillation):
    net, average, clients, images, _ = distillation
    held_out = images, net(average, images).argmax(1)  # the average is right about everything
    clients = [{**client, "head.bias": torch.tensor([-9.0, 9.0, 0.0])} for client in clients]
    shared, better = akt.distilled(net, average, clients, images, right_on(net, *held_out), FEW_STEPS, seed=0)
    assert not better
    assert all(torch.equal(shared[name], average[name]) for name in average)


def test_a_run_in_which_akt_keeps_nothing_is_the_run_without_akt(pictures, image_file, monkeypatch):
    monkeypatch.setattr(akt, "distilled", lambda net, average, *_, **__: (average, False))
    with_it, without = (gf.run(replace(SMALL, rounds=1, proxy=proxy), pictures) for proxy in (image_file, None))
    assert with_it.chosen["akt_kept"] == 0
    assert all(distance(with_it.heads[name], head) == 0 for name, head in without.heads.items())
    # the mean of a stack beside a sum divided, in float32: a rounding apart, which further rounds multiply
    assert distance(with_it.global_head, without.global_head) < 1e-6


def test_akt_moves_towards_the_clients_and_is_kept_when_that_validates_better(distillation):
    net, average, clients, images, _ = distillation
    clients = [{**client, "head.bias": torch.tensor([-9.0, 9.0, 0.0])} for client in clients]
    wanted = net(clients[0], images)
    shared, better = akt.distilled(net, average, clients, images, right_on(net, images, wanted.argmax(1)), FEW_STEPS, seed=0)
    assert better
    before, after = (float(symmetric_kl(net(state, images), wanted)) for state in (average, shared))
    assert after < before


def test_akt_keeps_the_best_checkpoint_not_the_last(distillation):
    net, average, clients, images, _ = distillation
    seen = []

    def score(state):  # better and better, then worse
        seen.append(state)
        return -abs(len(seen) - 4)

    how = replace(FEW_STEPS, steps=akt.CHECKPOINTS)
    shared, better = akt.distilled(net, average, clients, images, score, how, seed=0)
    assert better
    assert len(seen) == akt.CHECKPOINTS + 1
    assert shared is seen[3]


@pytest.mark.parametrize("adversary", ["own", "none"])
def test_akt_draws_near_the_clients_whatever_the_adversary(adversary, distillation):
    net, average, clients, images, _ = distillation
    wanted = akt.answers(net, clients, images)

    def near(state):
        return -float(symmetric_kl(net(state, images), wanted))

    how = replace(FEW_STEPS, adversary=adversary, steps=akt.CHECKPOINTS)
    shared, better = akt.distilled(net, average, clients, images, near, how, seed=0)
    assert better
    assert near(shared) > near(average)


def test_a_proxy_that_does_not_fit_is_refused(pictures, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "features.npz", features=rng.standard_normal((8, 4)), labels=np.arange(8) % 2)
    np.savez(tmp_path / "strange.npz", images=np.zeros((8, 8, 8, 3), np.uint8), labels=np.arange(8) % 2 + 70)
    with pytest.raises(gf.GramfoldError, match="does not contain byte images"):
        gf.run(replace(SMALL, proxy=str(tmp_path / "features.npz")), pictures)
    with pytest.raises(gf.GramfoldError, match="other classes than the federation's"):
        gf.run(replace(SMALL, proxy=str(tmp_path / "strange.npz"), validation=str(tmp_path / "strange.npz")), pictures)
    for more, message in (({"akt_direction": "up"}, "direction is one of"), ({"hda_side": "left"}, "personal or shared")):
        with pytest.raises(gf.GramfoldError, match=message):
            gf.run(replace(SMALL, proxy=str(tmp_path / "strange.npz"), **more), pictures)


def test_proxy_images_of_foreign_classes_need_no_labels(pictures, image_file, tmp_path):
    rng = np.random.default_rng(0)
    foreign = str(tmp_path / "foreign.npz")
    np.savez(foreign, images=rng.integers(0, 255, (16, 8, 8, 3), dtype=np.uint8), labels=np.arange(16) % 2 + 70)
    for validation in (None, image_file):
        result = gf.run(replace(SMALL, proxy=foreign, validation=validation), pictures)
        assert 0 <= result.chosen["akt_kept"] <= 2


def test_the_history_says_how_large_hda_is_beside_cross_entropy(pictures, image_file):
    method = replace(SMALL, rounds=1, batched=True)
    sizes = [
        gf.run(replace(method, hda=w, proxy=p), pictures).history[0]["hda_gradient"] for w, p in ((0.1, image_file), (1, None))
    ]
    assert sizes[0] > 0
    assert sizes[1] == pytest.approx(10 * sizes[0], rel=1e-3)
    assert "hda_gradient" not in gf.run(replace(method, hda=0.0), pictures).history[0]


@pytest.mark.parametrize("more", [{"hda_side": "shared"}, {"hda_split": 4}])
def test_the_sides_and_the_split_of_hda_make_a_difference(more, pictures):
    one, other = (gf.run(replace(SMALL, batched=True, hda=1.0, **given), pictures) for given in ({}, more))
    assert distance(one.heads["0"], other.heads["0"]) > 1e-6


def test_features_are_refused(federation):
    with pytest.raises(gf.GramfoldError, match="heart-pfl takes images; this data holds features"):
        gf.run(SMALL, federation)
