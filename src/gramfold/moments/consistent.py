"""Whether any samples at all have these moments: asked of exact moments that come from a site which may lie.

Gram and cross-moment of real samples are one positive semi-definite matrix [F'F F'Y; Y'F Y'Y]. So the gram is, and what the
features explain of a column of targets, y'F (F'F)^-1 F'y, is at most y'y: Cauchy-Schwarz for every combination of features, not
for one at a time. Moments that travel as rows have such a gram by construction, and the second is a sum over their targets.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from gramfold.errors import MessageError
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

RIDGE = 1e-9
"""Added to the diagonal for every feature, each scaled to length one; the rounding of a gram of 10^6 samples is a thousandth."""
ROUNDING = 1e-6
"""Relative, for what is explained."""
MOST_SAMPLES = 10**10
"""More rows than any one site has, patches of images included."""


def check_consistent(moments: "Moments") -> None:
    """Raise unless some n samples have these moments, which hold no noise."""
    if moments.exact_n > MOST_SAMPLES:
        raise MessageError(f"{moments.exact_n:g} samples at one site are not believed; the most is {MOST_SAMPLES:g}")
    require_samples(moments)


def require_samples(moments: "Moments", slack: float = 0.0) -> None:
    """Raise unless there can be samples with this gram and this cross-moment. `slack` is for the squares of targets."""
    if not moments.dim:
        return
    explained = _explained_by_rows(moments) if moments.products.rows_only else _explained(moments)
    squares = arrays.to_numpy(moments.squares)
    if not (explained <= squares * (1 + ROUNDING) + slack).all():
        raise MessageError("the cross-moment is larger than features and targets of any samples can give")


def _explained_by_rows(moments: "Moments") -> np.ndarray:
    explained: np.ndarray = (arrays.to_numpy(moments.products.rows()[1]) ** 2).sum(0)
    return explained


def _explained(moments: "Moments") -> np.ndarray:
    """y'F (F'F + a hair)^-1 F'y for every column y of the targets: one Cholesky factorisation, a third of what the gram of as
    many samples as features takes."""
    twin = moments.copy()  # its arrays are its own: the factorisation overwrites them
    gram, cross = arrays.to_numpy(twin.lower_gram), arrays.to_numpy(twin.cross)
    size = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    size[size == 0] = 1.0
    gram /= size[:, None]
    gram /= size
    gram[np.diag_indices(len(gram))] += RIDGE * len(gram)
    upper, failed = lapack.dpotrf(gram.T, lower=0, clean=0, overwrite_a=1)  # the transpose, since LAPACK goes by columns
    if failed:
        raise MessageError("the gram matrix is not positive semi-definite: no samples have it")
    solved, _ = lapack.dtrtrs(upper, cross / size[:, None], lower=0, trans=1)
    explained: np.ndarray = (solved**2).sum(0)
    return explained
