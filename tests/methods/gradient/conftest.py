"""Small federations of images, and no test without PyTorch."""

import numpy as np
import pytest

import gramfold as gf

pytest.importorskip("torch", reason="the gradient methods need PyTorch: install gramfold[torch]")


@pytest.fixture(scope="session")
def pictures() -> gf.Federation:
    """Five clients with 8 x 8 images of 3 classes: a bright patch in one of three corners."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, 90)
    images = rng.integers(0, 120, (90, 8, 8, 3))
    for image, code in zip(images, codes, strict=True):
        row, column = ((0, 0), (0, 4), (4, 0))[code]
        image[row : row + 4, column : column + 4] += 100
    return gf.Federation.split(images.astype(np.uint8), codes, clients=5, partition="dirichlet:1.0", seed=1, min_size=6)


@pytest.fixture(scope="session")
def image_file(pictures, tmp_path_factory) -> str:
    """The first client's images, as a server's proxy file."""
    path = tmp_path_factory.mktemp("proxy") / "proxy.npz"
    samples = pictures.clients[0].train()
    np.savez(path, images=samples.inputs, labels=samples.targets)
    return str(path)
