"""From raw samples to features: a backbone over a source, with a cache on disk, and heads on raw samples."""

from gramfold.extraction.cache import Cache, default_cache
from gramfold.extraction.pipeline import FAIL, SKIP, Extracted, Progress, extract
from gramfold.extraction.prepared import features_for, load_data, read_data, save_features

__all__ = [
    "FAIL",
    "SKIP",
    "Cache",
    "Extracted",
    "Progress",
    "default_cache",
    "extract",
    "features_for",
    "load_data",
    "read_data",
    "save_features",
]  # fmt: skip
