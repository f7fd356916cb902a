"""Backbones by the names they have on the command line."""

import re
from pathlib import Path
from typing import Any

from gramfold.backbones.base import Backbone
from gramfold.backbones.packaged import PACKAGES, open_packaged
from gramfold.errors import BackboneError
from gramfold.imports import names_code
from gramfold.origin import BACKBONE, Origin

KNOWN = (
    f"{', '.join(PACKAGES)}, hf:NAME_OR_FOLDER, onnx:FILE[#TENSOR], rocket:FEATURES:STEPSxCHANNELS, FILE.py:NAME, "
    "python:MODULE:NAME"
)


def open_backbone(name: Any, pooling: str | None = None, device: str | None = None) -> Backbone:
    """The backbone of this name; or that a network of torch is, or a function of a list of samples. Called with samples, it gives
    their features. `pooling` is cls, mean or both, and by default what suits it; `device` is "cpu", or for a network of torch
    where its weights are.
    """
    if not isinstance(name, str):
        from gramfold.backbones.function import of_object

        return of_object(name, None, device)
    kind, _, rest = name.partition(":")
    if names_code(name) or (kind == "python" and rest):
        from gramfold.backbones.function import load_code

        return load_code(name.removeprefix("python:"), device)
    device = device or "cpu"
    if name in PACKAGES:
        return open_packaged(name, pooling, device)
    if kind == "hf" and rest:
        from gramfold.backbones.transformer import TransformerBackbone

        return TransformerBackbone(rest, pooling, device)
    if kind == "onnx" and rest:
        from gramfold.backbones.onnx_model import OnnxBackbone

        path, _, tensor = rest.partition("#")
        return OnnxBackbone(Path(path), tensor, pooling, device)
    if kind == "rocket":
        from gramfold.backbones.series import SeriesBackbone

        found = re.fullmatch(r"(\d+):(\d+)x(\d+)", rest)
        if found is None:
            raise BackboneError(f"cannot read backbone {name!r}; write rocket:FEATURES:STEPSxCHANNELS, such as rocket:512:500x3")
        return SeriesBackbone(int(found[1]), int(found[2]), int(found[3]))
    raise BackboneError(f"unknown backbone {name!r}; known: {KNOWN}")


def reopen(origin: Origin, device: str | None = None, name: str | None = None) -> Backbone:
    """The backbone that features came from; raises if what goes by its name today is another.

    `name` is what it is called here, where that is another name. One's own code must be named: a head's file is no reason to run
    any.
    """
    if origin.kind != BACKBONE:
        raise BackboneError(f"these features come from a {origin.kind}, not from a backbone")
    if name is None and origin.name.startswith("module:"):
        raise BackboneError(
            f"this head's features come from a network of one's own, {origin.name.removeprefix('module:')}; name it: "
            "--backbone FILE.py:NAME"
        )
    if name is None and origin.name.startswith("python:"):
        raise BackboneError(f"this head's features come from code, {origin.name}; if you trust it: --backbone {origin.name}")
    pooling = origin.options.get("pooling")
    backbone = open_backbone(name or origin.name, None if pooling == "own" else pooling, device)
    origin.require(backbone.origin, f"backbone {backbone.name} as it is here")
    return backbone
