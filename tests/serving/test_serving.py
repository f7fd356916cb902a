"""Heads over HTTP: asked by a client of the application, over a real socket, and in a real browser."""

import io
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold import GramfoldError
from gramfold.backbones import open_backbone
from gramfold.backbones.pixels import read_image
from gramfold.errors import ServingError
from gramfold.extraction import load_data
from gramfold.federation import Federation
from gramfold.serving.app import load_heads, make_app
from gramfold.serving.page import render
from gramfold.serving.server import server_of
from raw_cases import pictures, write_function, write_photos, write_tokens_model

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def a_png(code: int) -> bytes:
    file = io.BytesIO()
    read_image(pictures(3)[0][code]).save(file, "png")
    return file.getvalue()


@contextmanager
def served(*paths: Path, backbone: str | None = None, **more):
    """A real server on a port of its own, as `gramfold serve` starts it; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = server_of(make_app(load_heads(paths, backbone=backbone), **more), "127.0.0.1", port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def photo_heads(tmp_path_factory) -> tuple[Path, Path]:
    """The heads of two shops, over a small ONNX backbone."""
    folder = tmp_path_factory.mktemp("shops")
    write_tokens_model(folder / "tokens.onnx")
    write_photos(folder / "photos", 60, clients=("north", "south"))
    dataset = load_data(folder / "photos", open_backbone(f"onnx:{folder / 'tokens.onnx'}#tokens"))
    result = gf.run(gf.PACE(), Federation.from_dataset(dataset))
    for name, head in result.heads.items():
        head.save(folder / f"{name}.safetensors")
    return folder / "north.safetensors", folder / "south.safetensors"


def test_features_get_the_heads_own_probabilities(federation, blobs, tmp_path):
    head = gf.run(gf.PACE(), federation).heads["1"]
    head.save(tmp_path / "one.safetensors")
    with served(tmp_path / "one.safetensors") as address:
        found = httpx.post(f"{address}/predict", json={"features": blobs[0][:5].tolist()}).json()
        assert found["head"] == "one"
        assert [answer["class"] for answer in found["predictions"]] == head.predict(blobs[0][:5]).tolist()
        shares = [list(answer["probabilities"].values()) for answer in found["predictions"]]
        assert np.allclose(shares, head.predict_proba(blobs[0][:5]))
        assert "novelty" not in found["predictions"][0]
        asked = httpx.post(f"{address}/predict?novelty=1", json={"features": blobs[0][:5].tolist()}).json()
        assert [answer["novelty"] for answer in asked["predictions"]] == head.novelty(blobs[0][:5]).tolist()
        for question, words in [
            ({"features": [[1, 2]]}, "expected rows of 8 numbers"),
            ({"features": [[1], [1, 2]]}, "samples differ in length"),
            ({"features": []}, "must be a list of 1 to"),
            ({"texts": ["a"]}, "one takes one of: features"),
        ]:
            answer = httpx.post(f"{address}/predict", json=question)
            assert answer.status_code == 400
            assert words in answer.json()["error"]
        for nonsense in (b"nonsense", b"[" * 100_000):
            assert httpx.post(f"{address}/predict", content=nonsense).status_code == 400
        assert "no image" in httpx.post(f"{address}/predict", files={"image": a_png(0)}).json()["error"]


def test_an_uploaded_image_and_a_head_per_path(photo_heads):
    with served(*photo_heads) as address:
        health = httpx.get(f"{address}/health").json()
        assert [head["name"] for head in health["heads"]] == ["north", "south"]
        for name in ("north", "south"):
            uploaded = httpx.post(f"{address}/{name}/predict", files={"image": a_png(2)}).json()
            plain = httpx.post(f"{address}/{name}/predict", content=a_png(2), headers={"Content-Type": "image/png"}).json()
            assert uploaded == plain
            assert (uploaded["head"], uploaded["predictions"][0]["class"]) == (name, "blue")
        assert httpx.post(f"{address}/predict", files={"image": a_png(0)}).status_code == 404, "which of both is not said"
        assert httpx.post(f"{address}/west/predict", files={"image": a_png(0)}).status_code == 404
        broken = httpx.post(f"{address}/north/predict", files={"image": b"no image"})
        assert broken.status_code == 400
        assert broken.json()["error"].startswith("the image cannot be read as an image")
        other = {"features": [[0.0] * 12], "origin": "0123"}
        assert "but this head was made for" in httpx.post(f"{address}/north/predict", json=other).json()["error"]


def test_rows_of_a_table_and_texts(tmp_path):
    rng = np.random.default_rng(0)
    age, sex = rng.normal(50, 10, 80).tolist(), rng.choice(["f", "m"], 80).tolist()
    table = {"age": age, "sex": sex, "label": ["old" if value > 50 else "young" for value in age]}
    patients = gf.run(gf.PACE(), Federation.from_dataset(load_data(table), 2, "iid")).heads["0"]
    patients.save(tmp_path / "patients.safetensors")
    name = f"python:{write_function(tmp_path)}:letters"
    texts = {"text": ["aaa bbb", "bab", "xyz", "zzz yx"] * 10, "intent": ["ab", "ab", "xz", "xz"] * 10}
    desk = load_data(texts, open_backbone(name), label_column="intent")
    gf.run(gf.PACE(), Federation.from_dataset(desk, 2, "iid")).heads["0"].save(tmp_path / "desk.safetensors")
    with served(tmp_path / "patients.safetensors", tmp_path / "desk.safetensors", backbone=name) as address:
        rows = [{"age": 75, "sex": "f"}, {"age": 20, "sex": "?"}, {"sex": "m"}, {"age": 10**400}]
        found = httpx.post(f"{address}/patients/predict", json={"rows": rows}).json()["predictions"]
        assert [answer["class"] for answer in found[:2]] == ["old", "young"]
        found = httpx.post(f"{address}/desk/predict", json={"texts": ["abba", "zx"]}).json()["predictions"]
        assert [answer["class"] for answer in found] == ["ab", "xz"]
    with served(tmp_path / "desk.safetensors") as address:
        answer = httpx.post(f"{address}/predict", json={"texts": ["a"]}).json()["error"]
        assert "come from code" in answer, "a head's file is no reason to run code"


def test_heads_that_cannot_be_told_apart(photo_heads, tmp_path):
    with pytest.raises(ServingError):
        load_heads([photo_heads[0], photo_heads[0]])
    shutil.copy(photo_heads[0], tmp_path / "health.safetensors")
    with pytest.raises(GramfoldError, match="cannot be called 'health'"):
        load_heads([tmp_path / "health.safetensors"])
    shutil.copy(photo_heads[0], tmp_path / "north.safetensors")
    assert len(load_heads([photo_heads[0], tmp_path / "north.safetensors"])) == 2, "by their folders"


def test_the_page_keeps_names_inside_its_script():
    page = render([{"name": "</script><b>", "takes": ["features"], "inputs": [1], "labels": None, "method": "x"}])
    assert "</script><b>" not in page


def test_a_missing_extra_is_said(gramfold, federation, tmp_path, monkeypatch):
    gf.run(gf.AFL(), federation).heads["0"].save(tmp_path / "h.safetensors")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = gramfold("serve", "h.safetensors")
    assert (code, err) == (2, 'error: serving heads needs the package uvicorn; install it with: pip install "gramfold[serve]"\n')


@pytest.mark.browser
def test_a_browser_tries_it(photo_heads, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    with served(*photo_heads) as address:
        done = subprocess.run(
            [browser, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=8000", "--dump-dom",
             f"{address}/#ask"],
            check=True, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    answer = done.stdout.partition('id="answer"')[2]
    assert any(f">{name}<" in answer for name in ("red", "green", "blue")), done.stdout[-2000:]
    assert done.stdout.count('class="bar"') == 3
