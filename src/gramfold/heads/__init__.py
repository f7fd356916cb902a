"""What a client ends up with: a head, and its file."""

from gramfold.heads.errors import Errors
from gramfold.heads.head import Evidence, Head, Mapped, Stream, load_head, softmax

__all__ = ["Errors", "Evidence", "Head", "Mapped", "Stream", "load_head", "softmax"]
