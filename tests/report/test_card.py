"""Model cards: beside every saved head, complete, for people and machines."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gramfold as gf
from gramfold.report import card_files, card_markdown


def test_a_saved_result_has_a_card_for_every_head(federation, tmp_path):
    result = gf.run(gf.PACE(learn=False), federation)
    result.save(tmp_path)
    cards = {path.name.removesuffix(".card.json"): json.loads(path.read_text()) for path in tmp_path.rglob("*.card.json")}
    assert set(cards) == {"shared", *result.heads}
    one, shared = cards["3"], cards["shared"]
    assert one["data"] == {
        "training_samples": result.clients["3"].train, "test_samples": result.clients["3"].test,
        "training_samples_of_all": federation.task.samples,
    }  # fmt: skip
    assert one["figures"]["test_accuracy"] == result.clients["3"].accuracy
    assert one["figures"]["leave_one_out_accuracy"] == result.clients["3"].chosen["leave_one_out_accuracy"]
    assert shared["figures"]["test_accuracy"] == pytest.approx(result.global_accuracy)
    assert one["federation"]["version"] == shared["federation"]["version"]
    assert gf.load_result(tmp_path).heads["3"].method == "pace", "cards are in nobody's way"


def test_another_state_of_the_shared_model_is_another_version(federation):
    result = gf.run(gf.PACE(learn=False), federation)
    gone = federation.clients[0].train()
    less = result.forget(gone.inputs, gone.targets, "0")
    assert less.cards()[None]["federation"]["version"] != result.cards()[None]["federation"]["version"]
    assert less.cards()[None]["federation"]["clients"] == len(federation) - 1


def test_a_page_says_what_is_known(federation):
    result = gf.run(gf.PACE(learn=False), federation)
    card = result.cards()["1"]
    page = card_markdown(card)
    for words in (
        "# A head for client 1",
        "| method | pace",
        "4 classes: 0, 1, 2, 3, with probabilities",
        "unknown: whoever gives",
    ):
        assert words in page
    known = card_markdown({**card, "origin": {"name": "dinov2s", "fingerprint": "12ab"}})
    assert "8 numbers from dinov2s (fingerprint `12ab`)" in known


def test_a_regressors_card(rng):
    X = rng.standard_normal((90, 4))
    result = gf.run(gf.AFL(), gf.Federation.split(X, X @ np.ones(4), clients=3, regression=True))
    card = result.cards()["1"]
    assert (card["classes"], card["figures"]["test_accuracy"]) == (None, None)
    assert card["figures"]["test_rmse"] == result.clients["1"].rmse
    assert "| gives | numbers |" in card_markdown(card)


def test_cards_go_with_their_heads(federation, tmp_path):
    result = gf.run(gf.PACE(learn=False), federation)
    result.save(tmp_path)
    path = tmp_path / "heads" / "2.safetensors"
    assert all(file.exists() for file in card_files(path))
    gone = federation.clients[2].train()
    result.forget(gone.inputs, gone.targets, "2").save(tmp_path)
    assert not any(file.exists() for file in (path, *card_files(path)))


def test_the_privacy_that_a_run_had(federation):
    result = gf.run(gf.AFL(), federation)
    assert result.cards()["1"]["privacy"].startswith("exact moments, added up in the clear")
    noisy = replace(result, privacy={"secure_sum": {}, "dp": {"eps": 2.0, "delta": 1e-6}})
    assert noisy.cards()["1"]["privacy"] == "the run had a secure sum and differential privacy (eps 2, delta 1e-06)"
