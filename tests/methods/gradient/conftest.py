"""Small federations of images, and no test without PyTorch."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the gradient methods need PyTorch: install gramfold[torch]")


@pytest.fixture(scope="session")
def image_file(pictures, tmp_path_factory) -> str:
    """The first client's images, as a server's proxy file."""
    path = tmp_path_factory.mktemp("proxy") / "proxy.npz"
    samples = pictures.clients[0].train()
    np.savez(path, images=samples.inputs, labels=samples.targets)
    return str(path)
