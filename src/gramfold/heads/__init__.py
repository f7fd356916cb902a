"""What a client ends up with: a head, and its file."""

from gramfold.heads.errors import Errors
from gramfold.heads.head import Head, Mapped, Stream, load_head, softmax

__all__ = ["Errors", "Head", "Mapped", "Stream", "load_head", "softmax"]
