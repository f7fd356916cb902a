"""What clients send: uploads of every kind add up, pack and unpack."""

from gramfold.uploads.grouped_moments import GroupedMoments
from gramfold.uploads.named_sums import NamedSums, PerClient
from gramfold.uploads.registry import unpack

__all__ = ["GroupedMoments", "NamedSums", "PerClient", "unpack"]
