"""Backbones of Hugging Face transformers, by name or from a folder: `hf:facebook/vit-mae-base`, `hf:./my-model`."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramfold.backbones.base import IMAGES, TEXTS, Backbone, fingerprint, finished
from gramfold.backbones.pixels import read_image
from gramfold.backbones.pooling import BOTH, MEAN, check_pooling, pool_patches, pool_words
from gramfold.errors import BackboneError
from gramfold.imports import require

LONGEST = 256
"""Tokens of a text, where its tokenizer sets no limit."""


class TransformerBackbone(Backbone):
    """A vision model (ViT, ViT-MAE, DINOv2, the image half of CLIP) or a text encoder, with its own preprocessing.

    Runs in half precision on CUDA. A masked autoencoder sees the whole image here.
    """

    def __init__(self, place: str, pooling: str | None = None, device: str = "cpu", name: str = "") -> None:
        self._torch = require("torch", "hf", "a Hugging Face backbone")
        library = require("transformers", "hf", "a Hugging Face backbone")
        library.logging.disable_progress_bar()
        self.name, self._device = name or f"hf:{place}", device
        try:
            config = library.AutoConfig.from_pretrained(place, trust_remote_code=False)
            if hasattr(config, "mask_ratio"):
                config.mask_ratio = 0.0
            model = library.AutoModel.from_pretrained(place, config=config, trust_remote_code=False)
            self.kind = (
                IMAGES if hasattr(config, "image_size") or hasattr(config, "vision_config") or _is_visual(model) else TEXTS
            )
            if self.kind == IMAGES:
                self._processor = library.AutoImageProcessor.from_pretrained(place, trust_remote_code=False)
            else:
                self._processor = library.AutoTokenizer.from_pretrained(place, trust_remote_code=False)
        except Exception as error:  # its loaders raise OSError, ValueError, ImportError and their own
            reason = " ".join(str(error).split())[:200]
            known = "give the name of a model on the Hub, or a folder with config.json, the weights and the preprocessing"
            raise BackboneError(f"cannot load backbone {self.name}: {reason}; {known}") from None
        model = getattr(model, "vision_model", model) if self.kind == IMAGES else model
        self._half = device.startswith("cuda")
        self._takes_noise = getattr(config, "model_type", "") == "vit_mae"
        self._limit = min(getattr(self._processor, "model_max_length", LONGEST), LONGEST)
        self.pooling = check_pooling(pooling or (BOTH if self.kind == IMAGES else MEAN))
        self.fingerprint = fingerprint([self.pooling, _settings(self._processor)], _weights(model))
        self._model = (model.half() if self._half else model).to(device).eval()

    def prepare(self, sample: Any) -> Any:
        if self.kind == TEXTS:
            return str(sample)
        return self._processor(images=read_image(sample), return_tensors="np")["pixel_values"][0]

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        torch = self._torch
        with torch.inference_mode():
            if self.kind == TEXTS:
                words = self._processor(list(batch), padding=True, truncation=True, max_length=self._limit, return_tensors="pt")
                tokens = self._model(**words.to(self._device)).last_hidden_state
                rows = pool_words(tokens.float().cpu().numpy(), words["attention_mask"].cpu().numpy(), self.pooling)
            else:
                images = torch.as_tensor(np.stack(batch), device=self._device)
                tokens = self._model(images.half() if self._half else images, **self._order(images)).last_hidden_state
                rows = pool_patches(tokens.float().cpu().numpy(), self.pooling)
        return finished(rows, len(batch), self.name)

    def _order(self, images: Any) -> dict[str, Any]:
        """A masked autoencoder draws the order of its patches: here it is always theirs."""
        if not self._takes_noise:
            return {}
        config = self._model.config
        patches = (config.image_size // config.patch_size) ** 2
        return {"noise": self._torch.arange(patches, device=images.device).expand(len(images), -1)}


def _is_visual(model: Any) -> bool:
    return getattr(model, "main_input_name", "") == "pixel_values"


def _settings(processor: Any) -> Any:
    """What decides how samples are prepared; not where it was read from."""
    if hasattr(processor, "backend_tokenizer"):
        return hashlib.sha256(processor.backend_tokenizer.to_str().encode()).hexdigest()
    written = processor.to_dict()
    return {key: str(value) for key, value in written.items() if not key.startswith("_") and key != "name_or_path"}


def _weights(model: Any) -> Any:
    for name, tensor in sorted(model.state_dict().items()):
        yield name.encode()
        yield np.ascontiguousarray(tensor.detach().float().cpu().numpy()).reshape(-1).view(np.uint8).data
