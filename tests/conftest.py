"""Shared fixtures. Random problems and helpers live in strategies.py."""

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

import gramfold as gf
from gramfold.cli.main import main

# The same examples on every machine and in every run: a red build can be reproduced by anyone.
settings.register_profile("gramfold", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("gramfold")

# Tests that start real nodes, clusters or a browser; what a file starts once is used by all tests of the file.
PROCESSES = ("test_network.py", "test_network_", "test_processes.py", "test_flower_command.py", "test_dask_cluster.py")


@pytest.hookimpl(tryfirst=True)  # before -m chooses, and before tests are dealt out to workers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name.startswith(PROCESSES) or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.processes)
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Files are written as ever, but nobody pulls the plug here: hundreds of runs would wait for the disk most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """300 samples of 8 numbers in 4 overlapping classes."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 4, 300)
    return rng.standard_normal((4, 8))[codes] * 1.5 + rng.standard_normal((300, 8)), codes


@pytest.fixture(scope="session")
def federation(blobs: tuple[np.ndarray, np.ndarray]) -> gf.Federation:
    """Seven skewed clients."""
    return gf.Federation.split(*blobs, clients=7, partition="dirichlet:0.5", random_state=3)


@pytest.fixture
def gramfold(monkeypatch, capsys, tmp_path):
    """Run the command in an empty folder; gives back exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gramfold", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main()
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def pictures() -> gf.Federation:
    """Five clients with 8 x 8 images of 3 classes: a bright patch in one of three corners."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, 90)
    images = rng.integers(0, 120, (90, 8, 8, 3))
    for image, code in zip(images, codes, strict=True):
        row, column = ((0, 0), (0, 4), (4, 0))[code]
        image[row : row + 4, column : column + 4] += 100
    return gf.Federation.split(images.astype(np.uint8), codes, clients=5, partition="dirichlet:1.0", random_state=1, min_size=6)
