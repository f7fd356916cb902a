"""The notebook runs from top to bottom, shows its plots, and is stored as a run leaves it."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "front_door.ipynb"
pytestmark = pytest.mark.slow


def plots(notebook) -> int:
    return sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))


def test_the_notebook_runs_and_shows_its_plots(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    for module in ("ipykernel", "matplotlib", "onnxruntime", "pandas"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert plots(notebook) == 2, "stored with its plots"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert plots(notebook) == 2
    text = str(notebook)
    assert float(re.search(r"gramfold and onnxruntime: (\d\.\de-\d+)", text)[1]) < 1e-5
    assert float(re.search(r"calibration error: (0\.\d+)", text)[1]) < 0.15
    assert "| method | pace" in text
