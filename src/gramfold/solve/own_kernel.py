"""A client's own kernel ridge with a free intercept: every width and penalty left out exactly, and the gradients of what it is.

    K_ij = exp(-|x_i - x_j|^2 / (2 w s)),  s the mean of |x_i - x_j|^2
    Kc   = (I - 1 q') K (I - q 1') = U diag(e) U',  q the samples' shares of the weight     one eigendecomposition for a width,
    a    = U (U' (y - q'y)) / (e + p)                                                        products for each penalty
    left-out residual_i = p a_i / (p [(Kc + p I)^-1]_ii - q_i)
    f(x) = sum_i a_i k(x, x_i) + b,   sum_i a_i = 0

With weights rows and columns of Kc, targets and a are multiplied by their roots: a sample is left out with all its weight. For a
few hundred samples; of more a client takes some as landmarks, and its rows are k(x, landmarks) k(landmarks, landmarks)^-1/2.
"""

from dataclasses import dataclass

import numpy as np

from gramfold.numerics import arrays

WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Squared widths of the kernel that are tried, in units of the mean squared distance of two samples."""
PENALTIES = np.logspace(-8, 1, 19)
"""Penalties that are tried, in units of the kernel's diagonal, which is one."""
LANDMARKS = 400
"""Samples up to which the kernel is that of all pairs."""


@dataclass(frozen=True)
class KernelFit:
    """What a client found. `left_out` are predictions (n x outputs), `error` their mean square, summed over outputs; `nothing` is
    that of the mean of the others alone. `coefficients` are of the landmarks (all samples, where there are few)."""

    width: float
    penalty: float
    error: float
    nothing: float
    left_out: np.ndarray
    landmarks: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray
    scale: float
    """2 w s, by which squared distances are divided."""

    @property
    def gain(self) -> float:
        """The share of the variance that it explains, left out: from 0, nothing, to 1."""
        return max(1.0 - self.error / self.nothing, 0.0) if self.nothing > 0 else 0.0

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(self._kernel(points) @ self.coefficients + self.offset)

    def _kernel(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-squared_distances(points, self.landmarks) / self.scale))

    def gradients(self, points: np.ndarray) -> np.ndarray:
        """Those of f at each point, output by output (outputs x n x d): -2 / scale sum_j a_j k(x, x_j) (x - x_j)."""
        kernel = self._kernel(points)
        parts = [(kernel @ each)[:, None] * points - kernel @ (each[:, None] * self.landmarks) for each in self.coefficients.T]
        return -2.0 / self.scale * np.stack(parts)


def squared_distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    products = points @ others.T
    squares = (points**2).sum(1)[:, None] + (others**2).sum(1)[None, :]
    return np.asarray((squares - 2.0 * products).clip(0.0))


def fit_kernel(points: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> KernelFit:
    """The kernel ridge of a client's samples whose left-out error is least, of all widths and penalties. `points` are n x d, the
    targets n x outputs, and both are as they are: only their differences count."""
    n = len(points)
    once = np.ones(n) if weights is None else weights
    share, roots = once / once.sum(), np.sqrt(once)[:, None]
    mean = share @ targets
    centred = roots * (targets - mean)
    nothing = float(share @ ((targets - mean) ** 2 / (1.0 - share.clip(max=0.5))[:, None] ** 2).sum(1))
    landmarks = points if n <= LANDMARKS else points[np.linspace(0, n - 1, LANDMARKS).astype(int)]
    distances = squared_distances(points, landmarks)
    unit = float(distances.mean()) or 1.0
    best: KernelFit | None = None
    for width in WIDTHS:
        scale = 2.0 * width * unit
        spectrum = _Spectrum.of(distances, landmarks, scale, share, roots)
        error, penalty, residuals = spectrum.least(centred, share)
        if best is None or error < best.error:
            coefficients = spectrum.coefficients(centred, penalty)
            offset = mean - share @ (spectrum.kernel @ coefficients)
            left_out = targets - residuals / roots
            best = KernelFit(width, penalty, error, nothing, left_out, landmarks, coefficients, offset, scale)
    assert best is not None
    return best


@dataclass(frozen=True)
class _Spectrum:
    """A centred kernel's: values above zero, with their vectors, and the way back to the landmarks."""

    kernel: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    back: np.ndarray | None
    """From a fit's weights along the vectors to coefficients of the landmarks; None: the landmarks are the samples."""
    roots: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, distances: np.ndarray, landmarks: np.ndarray, scale: float, share: np.ndarray, roots: np.ndarray) -> "_Spectrum":
        kernel = np.exp(-distances / scale)
        if len(kernel) == len(landmarks):
            mean = kernel @ share
            centred = (kernel - mean[:, None] - mean[None, :] + share @ mean) * roots * roots.T
            values, vectors = arrays.eigh(centred)
            return cls(kernel, values.clip(0.0), vectors, None, roots, share)
        between, axes = arrays.eigh(np.exp(-squared_distances(landmarks, landmarks) / scale))
        whiten = axes * between.clip(1e-10 * between[-1]) ** -0.5
        rows = kernel @ whiten
        rows = roots * (rows - share @ rows)
        values, right = arrays.eigh(rows.T @ rows)
        real = values > 1e-13 * values[-1]
        values, right = values[real], right[:, real]
        return cls(kernel, values, rows @ right / values**0.5, whiten @ right / values**0.5, roots, share)

    def least(self, targets: np.ndarray, share: np.ndarray) -> tuple[float, float, np.ndarray]:
        """The least error, its penalty, and the left-out residuals (times the roots) of that."""
        rotated, squares = self.vectors.T @ targets, self.vectors**2
        shrunk = PENALTIES / (self.values[:, None] + PENALTIES)  # p / (e + p), values x penalties
        free = 1.0 + squares @ (shrunk - 1.0) - share[:, None]  # 1 - leverage - what the intercept takes
        outputs = [targets[:, [j]] + self.vectors @ ((shrunk - 1.0) * rotated[:, [j]]) for j in range(targets.shape[1])]
        residuals = np.stack(outputs) / free.clip(1e-12)
        errors = (residuals**2).sum((0, 1)) / float((self.roots**2).sum())
        least = int(errors.argmin())
        return float(errors[least]), float(PENALTIES[least]), np.asarray(residuals[:, :, least].T)

    def coefficients(self, targets: np.ndarray, penalty: float) -> np.ndarray:
        """a, of the landmarks."""
        rotated = self.vectors.T @ targets
        if self.back is None:
            return np.asarray(self.roots * (self.vectors @ (rotated / (self.values + penalty)[:, None])))
        return np.asarray(self.back @ (rotated * (self.values / (self.values + penalty))[:, None]))
