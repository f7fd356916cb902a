"""What makes each method the method it is."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import gramfold as gf
from gradient_cases import client_data, distance, quick, weights
from gramfold.methods.gradient.fedas import fisher_traces

BASE = "base.0.weight"


def rounds_of(method, federation):
    """Run the rounds by hand: the clients with their memories, and the broadcast after each round."""
    clients, broadcasts = client_data(federation), [method.begin(federation.task)]
    for _ in range(method.rounds):
        uploads = method.local_many(clients, broadcasts[-1])
        total = uploads[0].copy()
        for upload in uploads[1:]:
            total += upload
        broadcasts.append(method.aggregate(total, broadcasts[-1]))
    return clients, broadcasts


def same(result, other) -> bool:
    return all(distance(result.heads[name], other.heads[name]) == 0 for name in result.heads)


def test_fedavg_averages_by_samples(federation):
    method = quick(gf.FedAvg, standardize=False, rounds=1)
    clients, (_, after) = rounds_of(method, federation)
    uploads = method.local_many(clients, method.begin(federation.task))
    n = np.array([client.train.n for client in clients])
    models = np.stack([np.asarray(u["model/head.weight"]) / k for u, k in zip(uploads, n, strict=True)])
    np.testing.assert_allclose(np.asarray(after.model["head.weight"]), np.tensordot(n / n.sum(), models, 1), atol=1e-6)


def test_one_epoch_of_full_batches_is_one_step_of_pooled_gradient_descent(federation):
    """FedAvg's own definition: with one full-batch step everywhere, averaging models is averaging gradients."""
    method = quick(gf.FedAvg, standardize=False, rounds=1, epochs=1, batch_size=1000)
    clients, (_, after) = rounds_of(method, federation)
    X = torch.cat([torch.as_tensor(c.train.inputs) for c in clients]).float()
    X = X * (X.shape[1] ** 0.5 / X.norm(dim=1, keepdim=True))
    y = torch.cat([torch.as_tensor(c.train.targets) for c in clients])
    W = torch.zeros(4, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(cross_entropy(X @ W.T, y), [W])
    np.testing.assert_allclose(np.asarray(after.model["head.weight"]), -0.1 * gradient.numpy(), atol=1e-6)


def test_fedprox_without_its_term_is_fedavg_and_with_a_strong_one_stays_put(federation):
    fedavg = gf.run(quick(gf.FedAvg), federation)
    assert same(gf.run(quick(gf.FedProx, mu=0.0), federation), fedavg)
    held = gf.run(quick(gf.FedProx, mu=9.0), federation)
    assert np.abs(weights(held.global_head)).max() < 0.7 * np.abs(weights(fedavg.global_head)).max()


def test_fine_tuning_starts_from_the_shared_model_and_lowers_the_clients_own_loss(federation):
    plain, tuned = gf.run(quick(gf.FedAvg), federation), gf.run(quick(gf.FedAvgFT), federation)
    assert distance(plain.global_head, tuned.global_head) == 0
    assert same(gf.run(quick(gf.FedProxFT, mu=0.0), federation), tuned)
    for client in federation:
        X, y = client.train()
        losses = [
            float(cross_entropy(torch.from_numpy(r.heads[client.name].scores(X)), torch.from_numpy(y))) for r in (plain, tuned)
        ]
        assert losses[1] < losses[0]


def test_fine_tuning_is_not_stopped_by_a_schedule_that_has_run_out(federation):
    plain, tuned = (gf.run(quick(kind, schedule="cosine"), federation) for kind in (gf.FedAvg, gf.FedAvgFT))
    assert distance(plain.heads["0"], tuned.heads["0"]) > 0.01


def test_ditto_without_its_term_is_local_training_and_with_a_strong_one_the_shared_model(federation):
    ditto = quick(gf.Ditto, standardize=False, lam=0.0)
    result = gf.run(ditto, federation)
    # a client's personal model must not depend on the others
    lonely = gf.Federation(federation.clients[:1], federation.task)
    assert distance(gf.run(ditto, lonely).heads["0"], result.heads["0"]) < 1e-6
    assert distance(result.global_head, gf.run(quick(gf.FedAvg, standardize=False), federation).global_head) == 0
    # lr * lam < 1 keeps the steps stable; the pull then beats the gradient by far
    gaps = []
    for lam in (0.0, 1.0, 90.0):
        held = gf.run(quick(gf.Ditto, lr=0.01, lam=lam, rounds=30), federation)
        gaps.append(max(distance(head, held.global_head) for head in held.heads.values()))
    assert gaps[0] > gaps[1] > 5 * gaps[2]


def test_fedala_with_weights_of_one_is_fedavg(federation):
    assert same(gf.run(quick(gf.FedALA, eta=0.0), federation), gf.run(quick(gf.FedAvg), federation))


def test_fedala_weights_stay_between_zero_and_one_and_take_between_old_and_shared(federation):
    method = quick(gf.FedALA)
    clients, broadcasts = rounds_of(method, federation)
    shared = np.asarray(broadcasts[-1].model["head.weight"])
    heads = method.personalize_many(clients, broadcasts[-1])
    for client, head in zip(clients, heads, strict=True):
        W = np.asarray(client.memory["weights/head.weight"])
        assert W.min() >= 0
        assert W.max() <= 1
        old = np.asarray(client.memory["previous/head.weight"])
        low, high = np.minimum(old, shared), np.maximum(old, shared)
        assert ((weights(head) >= low - 1e-6) & (weights(head) <= high + 1e-6)).all()
    assert any(np.asarray(client.memory["weights/head.weight"]).min() < 1 for client in clients)


@pytest.mark.parametrize("model", ["linear", "mlp:16"])
def test_feddbe_offsets_never_leave_the_client_and_are_what_makes_heads_differ(model, federation):
    method = quick(gf.FedDBE, model=model)
    clients, broadcasts = rounds_of(method, federation)
    shared = {"n", "mean", *(f"model/{name}" for name in broadcasts[-1].model)}
    for broadcast in broadcasts[1:]:
        for upload in method.local_many(client_data(federation), broadcast):
            assert set(upload.pack().arrays) <= shared
        assert {*(f"model/{name}" for name in broadcast.model), *broadcast.extra} <= shared
    offsets = [np.asarray(client.memory["private/offset"]) for client in clients]
    assert np.abs(offsets[0] - offsets[1]).max() > 1e-4
    heads = method.personalize_many(clients, broadcasts[-1])
    np.testing.assert_array_equal(weights(heads[0]), weights(heads[1]))
    assert np.abs(weights(heads[0], "head.bias") - weights(heads[1], "head.bias")).max() > 1e-4


def test_feddbe_holds_mean_features_near_the_global_mean(federation):
    def spread(kappa):
        clients, broadcasts = rounds_of(quick(gf.FedDBE, kappa=kappa, mean_momentum=1.0, model="mlp:16", rounds=6), federation)
        consensus = np.asarray(broadcasts[-1].extra["mean"])
        return np.mean([np.square(np.asarray(client.memory["private/mean"]) - consensus).mean() for client in clients])

    assert spread(20.0) < 0.8 * spread(0.0)


def test_fedas_weights_are_the_fisher_traces(federation):
    method = quick(gf.FedAS, model="mlp:6", standardize=False, rounds=1)
    clients, broadcast = client_data(federation), method.begin(federation.task)
    uploads = method.local_many(clients, broadcast)
    for client, upload in list(zip(clients, uploads, strict=True))[:3]:
        cohort = method._cohort([client], broadcast)
        own = cohort.recall("own", cohort.spread(cohort.net.initial))
        traces = []
        x, y = cohort.samples(0)
        for i in range(len(x)):
            state = {name: tensor[0].clone().requires_grad_() for name, tensor in own.items()}
            loss = cross_entropy(cohort.net(state, x[i : i + 1]), y[i : i + 1])
            traces.append(sum(float(g.square().sum()) for g in torch.autograd.grad(loss, list(state.values()))))
        assert float(upload["n"]) == pytest.approx(np.mean(traces), rel=1e-4)
        assert fisher_traces(method, cohort, own)[0] == pytest.approx(np.mean(traces), rel=1e-4)
        assert not any("head" in name for name in upload.pack().arrays), "the head is private"


def test_fedpcl_sends_prototypes_of_its_classes_and_nothing_else(federation):
    method = quick(gf.FedPCL, projector=5)
    _, broadcasts = rounds_of(method, federation)
    for client in client_data(federation):
        (parcel,) = method.local(client, broadcasts[-1]).in_order()
        assert set(parcel) == {"classes", "prototypes", "counts"}
        held, counts = np.unique(client.train.targets, return_counts=True)
        np.testing.assert_array_equal(np.asarray(parcel["classes"]), held)
        np.testing.assert_array_equal(np.asarray(parcel["counts"]), counts)
        assert parcel["prototypes"].shape == (len(held), 5)


def test_fedpcl_predicts_the_nearest_of_its_own_prototypes(federation):
    method = quick(gf.FedPCL, projector=5, standardize=False)
    clients, broadcasts = rounds_of(method, federation)
    head = method.personalize(clients[0], broadcasts[-1])
    X, y = clients[0].train
    cohort = method._cohort([clients[0]], broadcasts[-1])
    z = cohort.net({name: torch.as_tensor(t) for name, t in head.state.items()}, cohort.samples(0)[0], "base").numpy()
    held = np.unique(y)
    prototypes = np.stack([z[y == c].mean(0) for c in held])
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    nearest = held[np.square(z[:, None] - prototypes).sum(2).argmin(1)]
    np.testing.assert_array_equal(head.predict_codes(X), nearest)


def test_fedselect_with_an_empty_mask_is_fedavg(federation):
    assert same(gf.run(quick(gf.FedSelect, most=0.0), federation), gf.run(quick(gf.FedAvg), federation))


def test_fedselect_with_a_full_mask_is_local_training(federation):
    result = gf.run(quick(gf.FedSelect, standardize=False, share=1.0, every=1, most=1.0), federation)
    lonely = gf.Federation(federation.clients[:1], federation.task)
    alone = gf.run(quick(gf.FedAvg, standardize=False), lonely)  # a federation of one trains locally
    assert distance(result.heads["0"], alone.heads["0"]) < 1e-6


def test_fedselect_masks_grow_by_what_moved_most_up_to_their_limit(federation):
    method = quick(gf.FedSelect, rounds=14, every=1)
    clients, _ = rounds_of(method, federation)
    for client in clients:
        personal = np.concatenate([np.asarray(client.memory[f"mask/{name}"]).ravel() for name in ("head.weight", "head.bias")])
        assert personal.mean() == pytest.approx(0.8, abs=0.05)
    mask = method._grown({"w": torch.zeros(1, 8, dtype=torch.bool)}, {"w": torch.arange(8.0)[None]})["w"]
    assert mask[0].tolist() == [False] * 6 + [True] * 2


def test_fedselect_averages_over_those_who_share(federation):
    method = quick(gf.FedSelect, standardize=False, rounds=1)
    broadcast = method.begin(federation.task)
    uploads = method.local_many(client_data(federation)[:2], broadcast)
    sole = uploads[1]["model/head.bias"] / uploads[1]["weight/head.bias"]
    for name in ("model/head.bias", "weight/head.bias"):
        uploads[0][name] = torch.zeros_like(uploads[0][name])  # the first client keeps its biases
    total = uploads[0]
    total += uploads[1]
    np.testing.assert_allclose(np.asarray(method.aggregate(total, broadcast).model["head.bias"]), np.asarray(sole), rtol=1e-6)


def test_pfedme_solves_its_inner_problem_to_the_fixed_point(federation):
    """At the minimum of f + lam/2 ||theta - w||^2 the gradient of f is lam (w - theta)."""
    method = quick(gf.PFedMe, standardize=False, lr=0.05, inner_steps=400)
    cohort = method._cohort(client_data(federation), method.begin(federation.task))
    batch = next(cohort.batches(1, "train"))
    anchor = {name: torch.randn_like(tensor) for name, tensor in cohort.spread(cohort.shared).items()}
    theta = method.inner(cohort, anchor, batch)
    grads, _, _ = cohort.gradient(method.objective(cohort), theta, {}, batch)
    for name in theta:
        np.testing.assert_allclose(grads[name].numpy(), method.lam * (anchor[name] - theta[name]).numpy(), atol=1e-4)


def test_pfedme_moves_the_shared_model_towards_the_personal_one(federation):
    method = quick(gf.PFedMe, standardize=False, lr=0.03, eta=1 / 15, rounds=1, epochs=1, batch_size=1000)
    clients, broadcast = client_data(federation), method.begin(federation.task)
    for client, upload in zip(clients, method.local_many(clients, broadcast), strict=True):
        # eta lam = 1: one step takes w to theta
        np.testing.assert_allclose(
            np.asarray(upload["model/head.weight"]) / client.train.n, np.asarray(client.memory["personal/head.weight"]), atol=1e-6
        )


def test_lp_ft_without_a_probe_is_fedavg_with_fine_tuning_and_a_probe_leaves_the_base(federation):
    tuned = gf.run(quick(gf.FedAvgFT, model="mlp:8"), federation)
    assert same(gf.run(quick(gf.LPFT, model="mlp:8", probe_epochs=0), federation), tuned)
    probed = gf.run(quick(gf.LPFT, model="mlp:8", finetune_epochs=0), federation)
    for head in probed.heads.values():
        assert np.array_equal(weights(head, BASE), weights(probed.global_head, BASE))
        assert not np.array_equal(weights(head), weights(probed.global_head))


def test_fedrep_sends_its_base_alone_trains_both_parts_in_turns_and_keeps_heads_apart(federation):
    method = quick(gf.FedRep, standardize=False, rounds=1, model="mlp:8", head_epochs=3)
    clients, (before, after) = rounds_of(method, federation)
    assert before.model.keys() == after.model.keys() == {name for name in before.model if name.startswith("base.")}
    untrained = quick(gf.FedRep, standardize=False, rounds=1, model="mlp:8", head_epochs=0)
    assert {key.split("/")[1].split(".")[0] for key in clients[0].memory} == {"head"}
    first, second = (rounds_of(each, federation)[0][0].memory["own/head.weight"] for each in (method, untrained))
    assert not np.array_equal(np.asarray(first), np.asarray(second))
    result = gf.run(quick(gf.FedRep, model="mlp:8"), federation)
    one, other = result.heads["0"], result.heads["1"]
    assert np.array_equal(weights(one, BASE), weights(other, BASE))
    assert not np.array_equal(weights(one), weights(other))


@pytest.mark.parametrize("kind", [gf.FedRep, gf.LPFT])
def test_what_trains_base_and_head_apart_needs_a_base(kind, federation):
    with pytest.raises(gf.GramfoldError, match="'linear' has no base; use mlp:WIDTH"):
        gf.run(quick(kind, model="linear"), federation)
