"""How far a regressor is off: from left-out samples, so that intervals cover what they promise."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from gramfold.errors import HeadError

MOST = 1999
"""Of more errors so many are kept, evenly by rank: no quantile moves by more than 1 / MOST."""


@dataclass(frozen=True)
class Errors:
    """`left_out` (n x outputs): the sizes of left-out errors, ascending. `spread` (outputs): their root mean square, of all
    clients' samples."""

    left_out: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, residuals: np.ndarray, spread: np.ndarray) -> "Errors":
        sizes = np.sort(np.abs(residuals), axis=0)
        if len(sizes) > MOST:
            sizes = sizes[np.rint(np.linspace(0, len(sizes) - 1, MOST)).astype(int)]
        return cls(sizes, spread)

    def half_width(self, coverage: float) -> np.ndarray:
        """How far an interval reaches to either side, for each output.

        Conformal: of n left-out errors and that of a new sample each is as likely as another to be the k-th in size, so the k-th
        of the n, k = coverage (n + 1), is not exceeded by so large a part. Between two of them it is interpolated: the larger,
        which would never cover too little, covers up to 1 / (n + 1) too much, and at small clients that is several points. With
        fewer samples than it takes, it is a Gaussian's quantile.
        """
        if not 0 < coverage < 1:
            raise HeadError(f"the coverage of an interval lies between 0 and 1, got {coverage}")
        n = len(self.left_out)
        rank = coverage * (n + 1)
        if rank > n + 1e-9:
            return np.asarray(self.spread * ndtri((1 + coverage) / 2))
        return np.array([np.interp(rank, np.arange(n + 1), [0.0, *sizes]) for sizes in self.left_out.T])

    def check(self, outputs: int) -> None:
        """Raise unless these, which came from elsewhere, are errors of so many outputs."""
        if self.left_out.shape[1:] != (outputs,) or self.left_out.ndim != 2 or self.spread.shape != (outputs,):
            raise HeadError(f"a head for {outputs} values cannot have these errors")
        if not (all(np.isfinite(part).all() and (part >= 0).all() for part in vars(self).values())):
            raise HeadError("a head's errors must be finite and not negative")
        if (np.diff(self.left_out, axis=0) < 0).any():
            raise HeadError("a head's errors must be in ascending order")
