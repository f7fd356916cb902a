"""Frozen extractors behind one small interface: raw samples in, rows of numbers out."""

from gramfold.backbones.base import IMAGES, TEXTS, Backbone, UnreadableSampleError
from gramfold.backbones.registry import open_backbone, reopen

__all__ = ["IMAGES", "TEXTS", "Backbone", "UnreadableSampleError", "open_backbone", "reopen"]
