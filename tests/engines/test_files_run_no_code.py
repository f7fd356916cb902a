"""A file from elsewhere is no reason to run code: neither a class that it names nor a model that brings its own."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import gramfold as gf
from gramfold import wire
from gramfold.backbones import open_backbone, packaged
from gramfold.results.folded import Run
from gramfold.wire import Packet

METHOD = """
from pathlib import Path
from dataclasses import dataclass
from typing import ClassVar
from gramfold.methods import AFL

Path("ran").write_text("yes")

@dataclass(frozen=True)
class Theirs(AFL):
    name: ClassVar[str] = "theirs"
"""


@pytest.fixture
def folder(tmp_path, federation, monkeypatch) -> Path:
    """A result folder whose method is a class in the folder that one is in."""
    gf.run(gf.AFL(), federation).save(tmp_path / "result")
    path = tmp_path / "result" / "run.safetensors"
    packet = Packet.from_bytes(wire.read(path))
    meta = json.loads(json.dumps(dict(packet.meta)).replace('"value": "afl"', '"value": "their_method:Theirs"'))
    assert meta != packet.meta
    wire.write_atomically(path, replace(packet, meta=meta).to_bytes())
    (tmp_path / "their_method.py").write_text(METHOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("their_method", None)


def test_a_result_does_not_import_the_class_that_it_names(folder):
    with pytest.raises(gf.GramfoldError, match=r"its method is code, their_method:Theirs: .* allow_code=True"):
        gf.load_result(folder / "result")
    assert not (folder / "ran").exists()


def test_who_trusts_it_says_so(folder):
    assert gf.load_result(folder / "result", allow_code=True).method == "theirs"
    assert (folder / "ran").exists()


def test_what_is_imported_already_runs_nothing(folder):
    import their_method  # type: ignore[import-not-found]

    assert isinstance(gf.load_result(folder / "result").run, Run)
    assert their_method.Theirs.name == "theirs"


def test_a_model_with_code_of_its_own_is_refused_without_a_question(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    config = {"model_type": "theirs", "auto_map": {"AutoConfig": "code.Theirs", "AutoModel": "code.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    script = f"import gramfold.backbones as b\ntry: b.open_backbone('hf:{tmp_path}')\nexcept Exception as e: print('refused:', e)"
    done = subprocess.run([sys.executable, "-c", script], input="y\ny\n", capture_output=True, text=True, timeout=300)
    assert "refused: cannot load backbone" in done.stdout, done.stderr[-500:]
    assert "[y/N]" not in done.stdout + done.stderr
    assert not (tmp_path / "ran").exists()


def test_weights_of_a_package_are_those_that_are_known(tmp_path, monkeypatch):
    place = tmp_path / "weights.onnx"
    place.write_bytes(b"others")
    monkeypatch.setattr(packaged, "weights_of", lambda name: place)
    with pytest.raises(gf.GramfoldError, match="is not what backbone dinov2s was made with: its SHA-256 is"):
        open_backbone("dinov2s")


@pytest.mark.parametrize("name", packaged.PACKAGES)
def test_the_weights_that_are_installed_are_known(name):
    try:
        place = packaged.weights_of(name)
    except gf.GramfoldError:
        pytest.skip("its package is not installed")
    packaged.check_weights(name, place)
