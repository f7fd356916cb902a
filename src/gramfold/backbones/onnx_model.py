"""Backbones in an ONNX file, run by onnxruntime: `onnx:FILE`, or cut at an inner tensor, `onnx:FILE#TENSOR`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.backbones.base import IMAGES, TEXTS, Backbone, file_pieces, fingerprint, finished
from gramfold.backbones.graph import cut, read_model, weight_files
from gramfold.backbones.pixels import Pixels
from gramfold.backbones.pooling import BOTH, MEAN, check_pooling, pool_patches, pool_words
from gramfold.errors import BackboneError, InstallError
from gramfold.imports import require


class OnnxBackbone(Backbone):
    """A network of images, or of texts where a `tokenizer.json` lies beside the file.

    Preprocessing is that of the `preprocessor_config.json` beside the file, where there is one; otherwise images are normalised
    as for ImageNet, at the size that the model's input has.
    """

    def __init__(self, path: Path, tensor: str = "", pooling: str | None = None, device: str = "cpu", name: str = "") -> None:
        runtime = require("onnxruntime", "onnx", "an ONNX backbone")
        self.path, self.tensor = path, tensor
        self.name = name or f"onnx:{path}" + (f"#{tensor}" if tensor else "")
        model = self.model()
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(model.SerializeToString(), options, providers=_providers(runtime, device))
        except Exception as error:  # onnxruntime's errors share no base
            raise BackboneError(f"onnxruntime cannot run {path}: {error}") from None
        self._inputs = [given.name for given in self._session.get_inputs()]
        tokenizer = _beside(path, "tokenizer.json")
        self.kind = TEXTS if "input_ids" in self._inputs else IMAGES
        self.pooling = check_pooling(pooling or (MEAN if self.kind == TEXTS else BOTH))
        described: dict[str, Any] = {"tensor": tensor, "pooling": self.pooling}
        pieces = [file_pieces(file) for file in weight_files(path)]
        if self.kind == TEXTS:
            if tokenizer is None:
                raise BackboneError(f"{path} takes words, but no tokenizer.json lies beside it")
            self._tokenizer = _tokenizer(tokenizer)
            pieces.append(file_pieces(tokenizer))
        else:
            self.pixels = _pixels(path, self._session.get_inputs()[0].shape)
            described |= self.pixels.describe()
        self.fingerprint = fingerprint(described, (piece for part in pieces for piece in part))

    def model(self) -> Any:
        """The onnx.ModelProto, cut where it is to be."""
        model = read_model(self.path)
        if self.tensor:
            cut(model, self.tensor)
        return model

    def rank(self) -> int:
        """How many axes its output has, before pooling."""
        blank = self.prepare(np.zeros((4, 4, 3), dtype=np.uint8))
        return int(self._session.run(None, {self._inputs[0]: blank[None]})[0].ndim)

    def prepare(self, sample: Any) -> Any:
        return str(sample) if self.kind == TEXTS else self.pixels(sample)

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        if self.kind == TEXTS:
            rows = self._words(batch)
        else:
            rows = pool_patches(self._session.run(None, {self._inputs[0]: np.stack(batch)})[0], self.pooling)
        return finished(rows, len(batch), self.name)

    def _words(self, batch: Sequence[str]) -> np.ndarray:
        encoded = self._tokenizer.encode_batch(list(batch))
        ids = np.array([entry.ids for entry in encoded], dtype=np.int64)
        mask = np.array([entry.attention_mask for entry in encoded], dtype=np.int64)
        parts = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        tokens = self._session.run(None, {name: parts[name] for name in self._inputs})[0]
        return pool_words(tokens, mask, self.pooling)


def _providers(runtime: Any, device: str) -> list[str]:
    if not device.startswith("cuda"):
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        raise InstallError("this onnxruntime knows no CUDA; pip install onnxruntime-gpu, or use the CPU")
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def _beside(path: Path, name: str) -> Path | None:
    """A file of this name in the model's folder, or the one above, as exports of Hugging Face models have it."""
    return next((folder / name for folder in (path.parent, path.parent.parent) if (folder / name).is_file()), None)


def _tokenizer(path: Path) -> Any:
    tokenizer = require("tokenizers", "hf", "an ONNX backbone of texts").Tokenizer.from_file(str(path))
    tokenizer.enable_padding()
    if tokenizer.truncation is None:
        tokenizer.enable_truncation(256)
    return tokenizer


def _pixels(path: Path, shape: Sequence[Any]) -> Pixels:
    if len(shape) != 4 or shape[1] not in (3, "channels", None):
        raise BackboneError(f"{path}: expected a model of n x 3 x H x W images, its input is {list(shape)}")
    config = _beside(path, "preprocessor_config.json")
    written = {} if config is None else json.loads(config.read_text())
    size = written.get("size", {})
    given = size if isinstance(size, int) else size.get("height", size.get("shortest_edge", 224))
    side = shape[2] if isinstance(shape[2], int) else given
    standard = Pixels()
    return Pixels(side, tuple(written.get("image_mean", standard.mean)), tuple(written.get("image_std", standard.std)))
