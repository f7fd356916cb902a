"""What docs/extend.md shows keeps the laws that gramfold's own parts keep. The page's code is the code that is tested."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold import extend, uploads
from gramfold.features import Bias, Concat
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


def test_the_page_is_on_the_site():
    assert "extend.md" in Path(ROOT / "mkdocs.yml").read_text()
