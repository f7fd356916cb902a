"""From raw samples to features: a backbone over a source, with a cache on disk, and heads on raw samples."""

from gramfold.extraction.cache import Cache, default_cache
from gramfold.extraction.pipeline import FAIL, SKIP, Extracted, Progress, extract
from gramfold.extraction.prepared import dataset_of, features_for, read_data, save_features

__all__ = [
    "FAIL", "SKIP", "Cache", "Extracted", "Progress", "dataset_of", "default_cache", "extract", "features_for", "read_data",
    "save_features",
]  # fmt: skip
