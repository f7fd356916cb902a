"""What a client ends up with: a head, and its file."""

from gramfold.heads.errors import Errors
from gramfold.heads.explanation import Explanation
from gramfold.heads.head import Head, load_head
from gramfold.heads.novelty import Novelty
from gramfold.heads.probabilities import softmax, unforeseen_after
from gramfold.heads.streams import Mapped, Stream, Unsolved
from gramfold.heads.together import Together

__all__ = [
    "Errors", "Explanation", "Head", "Mapped", "Novelty", "Stream", "Together", "Unsolved", "load_head", "softmax",
    "unforeseen_after",
]  # fmt: skip
