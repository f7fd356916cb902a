"""What clients send: uploads of every kind add up, pack and unpack, and most are vectors."""

from gramfold.uploads.base import Upload
from gramfold.uploads.grouped_moments import GroupedMoments
from gramfold.uploads.named_sums import NamedSums, require_shapes
from gramfold.uploads.per_client import PerClient
from gramfold.uploads.registry import from_vector, register, unpack

__all__ = ["GroupedMoments", "NamedSums", "PerClient", "Upload", "from_vector", "register", "require_shapes", "unpack"]
