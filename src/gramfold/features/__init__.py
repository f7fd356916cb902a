"""Maps after the backbone, drawn from a seed and identical everywhere."""

from gramfold.features.base import DrawnMap, FeatureMap, Map, draw, draw_described
from gramfold.features.deep import DeepMap, layer_names, restore
from gramfold.features.maps import ACTIVATIONS, Bias, Fourier, Linear, Normalize, Nystroem, Projection
from gramfold.features.stack import Chain, Concat, parse
from gramfold.wire.record import RESTORE

RESTORE["map"] = lambda description, arrays, fingerprint: restore(description, arrays)

__all__ = [
    "ACTIVATIONS", "Bias", "Chain", "Concat", "DeepMap", "DrawnMap", "FeatureMap", "Fourier", "Linear", "Map", "Normalize",
    "Nystroem", "Projection", "draw", "draw_described", "layer_names", "parse", "restore",
]  # fmt: skip
