"""GH-OFL (Turazza et al., ICLR 2026, arXiv 2602.01186): the Gaussian head that classes share a covariance in.

client   G_k, B_k and class counts                      as in AFL
server   class means, and the covariance W within classes, shrunk; the linear discriminant of both      see solve/gaussian
client   uses it

This is the family's LDA head. Its naive Bayes head knows less, its QDA head needs the Gram matrix of every class apart (as many
times the bytes), and the heads that it trains on drawn samples are no closed forms: they are not here.
"""

from dataclasses import dataclass
from typing import ClassVar

from gramfold.errors import MethodError
from gramfold.methods.fedcgs import FedCGS
from gramfold.renamed import renamed


@renamed(shrink="shrinkage")
@dataclass(frozen=True)
class GHOFL(FedCGS):
    """One shared linear discriminant, exactly that of pooled data. `shrinkage`: the part of the covariance that is replaced by
    the mean variance (0.05 in the released code), or, where features share no unit, by its own diagonal."""

    name: ClassVar[str] = "gh-ofl"
    summary: ClassVar[str] = "one shared linear discriminant, with that within classes"
    paper: ClassVar[str] = "Turazza et al., ICLR 2026, arXiv 2602.01186"
    penalties: ClassVar[tuple[str, ...]] = ("shrinkage",)
    within: ClassVar[bool] = True

    shrinkage: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shrinkage > 1:
            raise MethodError(f"gh-ofl's shrinkage is a part of the covariance, from 0 to 1; got {self.shrinkage}")
