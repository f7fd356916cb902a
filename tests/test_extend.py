"""What docs/extend.md shows keeps the laws that gramfold's own parts keep. The page's code is the code that is tested."""

import contextlib
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramfold as gf
from gramfold import extend, uploads
from gramfold.features import Bias, Concat
from gramfold.methods import phases
from test_snippets import BLOCK, ROOT


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The names that the page defines."""
    names: dict[str, object] = {"__name__": "extend_page"}
    with contextlib.chdir(tmp_path_factory.mktemp("page")), contextlib.redirect_stdout(io.StringIO()):
        kept = dict(uploads.registry.KINDS)
        uploads.registry.KINDS.pop("example/sparse-sums", None)  # of another run of the page
        for block in BLOCK.finditer((ROOT / "docs" / "extend.md").read_text()):
            exec(block[1], names)
        yield names
        uploads.registry.KINDS.clear()
        uploads.registry.KINDS.update(kept)


@pytest.fixture
def posted(shown, tmp_path):
    return lambda federation, method: extend.run_over(shown["Mailbox"](federation, tmp_path / method.name), method)


def test_everything_public_is_there():
    assert all(hasattr(extend, name) for name in extend.__all__)


def test_a_map_is_the_same_after_it_has_travelled(shown, federation, blobs):
    steps = Concat([Bias(), shown["Steps"]((0.1, 0.9))])
    head = next(iter(gf.run(gf.AFL(features=steps), federation).heads.values()))
    again = extend.Head.unpack(extend.Packet.from_bytes(head.pack().to_bytes()))
    np.testing.assert_array_equal(again.scores(blobs[0]), head.scores(blobs[0]))


def test_an_upload_adds_up_as_itself_as_a_message_and_as_a_vector(shown, rng):
    kind = shown["SparseSums"]
    parts = [kind(rng.standard_normal((3, 4)) * (rng.random((3, 4)) < 0.3)) for _ in range(3)]
    before, total = parts[0].dense.copy(), parts[0].copy()
    for part in parts[1:]:
        total += uploads.unpack(extend.Packet.from_bytes(part.pack().to_bytes()))
    np.testing.assert_array_equal(parts[0].dense, before)
    vector = uploads.from_vector(sum(part.vector() for part in parts), total.public())
    np.testing.assert_allclose(vector.dense, total.dense, atol=1e-12)


def test_a_kind_that_is_taken_cannot_be_taken_again(shown):
    other = type("Other", (shown["SparseSums"],), {})
    with pytest.raises(gf.GramfoldError, match="already"):
        extend.register_upload(other)


@pytest.mark.parametrize(
    "method", [gf.AFL(), gf.FedHiP(at="server"), gf.PACE(features="bias+linear"), gf.DeepAFL(depth=1)], ids=repr
)
def test_over_a_transport_of_ones_own_the_result_is_that_in_process(posted, federation, blobs, method):
    over, here = posted(federation, method), gf.run(method, federation)
    assert over.uplink_bytes == here.uplink_bytes
    for name, head in here.heads.items():
        np.testing.assert_allclose(over.heads[name].scores(blobs[0]), head.scores(blobs[0]), rtol=0, atol=1e-8)


def test_all_four_together_and_under_a_secure_sum(shown, posted, federation, blobs):
    method = shown["SparseMeans"](own=2.0)
    plain = gf.run(shown["NearestMean"](own=2.0), federation)
    for result in (posted(federation, method), gf.run(method, federation, secure=gf.SecureSum())):
        for name, head in plain.heads.items():
            np.testing.assert_allclose(result.heads[name].scores(blobs[0]), head.scores(blobs[0]), rtol=0, atol=1e-6)


def test_what_does_not_fit_is_refused_from_elsewhere(posted, federation):
    class Lies(gf.AFL):
        def local(self, client, broadcast):
            return extend.NamedSums({"w": np.ones(3)})

    with pytest.raises(gf.GramfoldError, match="expected moments"):
        posted(federation, Lies())


def test_a_phase_finds_what_pooled_data_say(shown, posted, federation, blobs):
    """Whatever carries it out; sums travel as they are, so that nothing but rounding differs."""
    pooled = np.concatenate([client.train().inputs for client in federation])
    plain = gf.run(gf.AFL(features=shown["Above"](tuple(pooled.mean(0).tolist()))), federation)
    method = shown["ComparedAFL"]()
    for result in (gf.run(method, federation), posted(federation, method), gf.run(method, federation, secure=gf.SecureSum())):
        assert result.rounds == 2
        np.testing.assert_allclose(result.global_head.scores(blobs[0]), plain.global_head.scores(blobs[0]), rtol=0, atol=1e-6)


def test_samples_come_and_go_behind_a_phase(shown, federation, blobs):
    result, gone = gf.run(shown["ComparedAFL"](), federation), next(iter(federation))
    X, y = gone.train().inputs, np.asarray(federation.task.labels)[gone.train().targets]
    with pytest.warns(gf.LearnedFeaturesWarning):
        fewer = result.forget(X, y, gone.name)
    again = fewer.update(add={gone.name: (X, y)})
    np.testing.assert_allclose(again.global_head.scores(blobs[0]), result.global_head.scores(blobs[0]), atol=1e-8)


def test_what_a_phase_did_not_ask_for_is_refused(shown, posted, federation):
    def lie(self, client, broadcast):
        return extend.NamedSums({"n": np.ones(1), "sums": np.ones(1)})

    Lies = type("Lies", (shown["ComparedAFL"],), {"local": lie})
    with pytest.raises(gf.GramfoldError, match="sums has shape"):
        posted(federation, Lies())


@dataclass(frozen=True)
class Start(extend.Record, kind="test/start"):
    """A method's broadcast that holds what was found."""

    space: extend.Space
    told: tuple[str, ...] = ()

    def telling(self, found) -> "Start":
        return replace(self, told=(*self.told, str(found)))


class Known:
    """A question that needs no asking."""

    rounds = 0

    def begin(self, start, seed):
        return "known"


def test_a_chain_asks_in_order_and_only_what_has_to_be_asked(shown):
    space = gf.AFL(features="bias+linear").begin(extend.Task(2, (0, 1), 2, 0)).space
    chain = [extend.Link(question, Start.telling) for question in (Known(), shown["Levels"](), Known())]
    asked: Any = phases.begun(chain, Start(space), 0)
    assert (asked.place, asked.start.told) == (1, ("known",))
    total = extend.NamedSums({"n": np.array([2.0]), "sums": np.array([1.0, 3.0])})
    arrived: Any = extend.Record.unpack(extend.Packet.from_bytes(asked.pack().to_bytes()))
    found: Any = phases.following(chain, arrived, total)
    assert found.told == ("known", "[0.5 1.5]", "known")


def test_a_check_under_a_former_name_is_not_passed_over():
    with pytest.raises(gf.GramfoldError, match=r"Old.check would never be called: write asked"):
        type("Old", (gf.AFL,), {"check": lambda self, upload, broadcast: None})


def test_the_page_is_on_the_site():
    assert "extend.md" in Path(ROOT / "mkdocs.yml").read_text()
