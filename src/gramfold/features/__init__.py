"""Maps after the backbone: drawn from a seed and identical everywhere, or learned and the same for all clients."""

from gramfold.features.base import DrawnMap, FeatureMap, Map, draw, draw_described, fingerprint_of
from gramfold.features.buckets import Buckets
from gramfold.features.deep import DeepMap, layer_names
from gramfold.features.directions import DirectionsMap, of_length_one
from gramfold.features.maps import ACTIVATIONS, Bias, Fourier, Linear, Normalize, Nystroem, Projection, Standardize
from gramfold.features.metric import Block, Metric, MetricMap
from gramfold.features.pairs import Pairs
from gramfold.features.registry import restore
from gramfold.features.stack import Chain, Concat, parse
from gramfold.wire.record import RESTORE

RESTORE["map"] = restore

__all__ = [
    "ACTIVATIONS", "Bias", "Block", "Buckets", "Chain", "Concat", "DeepMap", "DirectionsMap", "DrawnMap", "FeatureMap", "Fourier",
    "Linear", "Map", "Metric", "MetricMap", "Normalize", "Nystroem", "Pairs", "Projection", "Standardize", "draw",
    "draw_described", "fingerprint_of", "layer_names", "of_length_one", "parse", "restore",
]  # fmt: skip
