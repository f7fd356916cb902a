"""FedHiP's blend of the shared head with a client's own data: exact leave-one-out for every alpha, in closed form."""

from collections.abc import Iterator

import numpy as np

from gramfold.methods.parts.selection import Candidate
from gramfold.numerics.arrays import Array
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.ridge import Factor

ALPHAS = np.logspace(-1, 5, 19)


class Blend:
    """Leave-one-out for every alpha at once.

    Without the client the system is B = A - F'F with solution W0. In the kernel K = F B^-1 F' the blend is ridge on the
    residuals r = Y - F W0 with penalty t = 1/(1 + alpha). From A's side: F A^-1 F' = E diag(w) E' gives K = E diag(w/(1-w)) E'
    and r = (I - F A^-1 F')^-1 (Y - F W). A client that is not folded into A has B = A, and t = 1/alpha.
    Rows and targets of samples with weights come times the roots of these, which are then given too.
    """

    def __init__(
        self, factor: Factor, weights: Array, rows: Array, targets: Array, folded: bool = True, roots: Array | None = None
    ) -> None:
        self.folded = folded
        self.target_squares = float((targets**2).sum())
        own = Kernel.of(factor.solve_lower(rows.T).T, roots)
        # without a penalty, a client that is the whole federation has 1 - w = 0
        free = 1.0 / (1.0 - own.values * (folded * (1 - 1e-12)))
        self.residuals = own.apply(free, 1.0, targets - rows @ weights)
        if roots is not None:
            self.residuals = self.residuals / roots
        self.kernel = Kernel(own.values * free, own.vectors, roots)

    def left_out_scores(self, targets: Array, given: float | None = None) -> Iterator[Candidate]:
        """For every alpha to be tried, or the one given."""
        for alpha in map(float, ALPHAS if given is None else [given]):
            penalty = 1.0 / max(self.folded + alpha, 1e-12)
            yield {"alpha": alpha}, targets - self.kernel.left_out_residuals(self.residuals, penalty)

    def mean_leverage(self, n: int, alpha: float) -> float:
        """The mean over n samples, of which the rows are a rotation, of what a sample's target adds to its own score."""
        penalty = 1.0 / (1.0 + alpha)
        return float((self.kernel.values / (self.kernel.values + penalty)).sum()) / n

    def choose_rotated(self, n: float, target_squares: float) -> float:
        """The same by GCV, for rows that are a rotation of n samples (or of samples whose weights sum to n): for a server that
        has only moments."""
        errors = []
        for penalty in 1.0 / (1.0 + ALPHAS):
            weights = 1.0 / (self.kernel.values + penalty)
            rest = (n - len(weights)) / penalty
            solved = self.kernel.apply(weights, 1.0 / penalty, self.residuals)
            lost = max(target_squares - self.target_squares, 0.0) / penalty**2  # of targets outside the rows' span
            errors.append((float((solved**2).sum()) + lost) / max(float(weights.sum()) + rest, 1e-9) ** 2)
        return float(ALPHAS[np.flatnonzero(np.array(errors) <= min(errors) * (1 + 1e-9))[0]])  # the first of those that tie
