"""What a run keeps from whom: a secure sum, noise, both or neither."""

import warnings
from dataclasses import dataclass
from typing import Any

from gramfold.errors import PrivacyError
from gramfold.moments import Implied, Moments
from gramfold.privacy import graph
from gramfold.privacy.dp import DP, Noise
from gramfold.privacy.protocol import SecureSum


@dataclass(frozen=True)
class Privacy:
    """`secure`: the server sees sums only. `dp`: with noise."""

    secure: SecureSum | None = None
    dp: DP | None = None

    def __post_init__(self) -> None:
        for name, kind, such in (("secure", SecureSum, "gf.SecureSum()"), ("dp", DP, "gf.DP(eps=8)")):
            if (given := getattr(self, name)) is not None and not isinstance(given, kind):
                raise PrivacyError(f"{name}= takes {such}, or None for a run without; got {given!r}")

    def __bool__(self) -> bool:
        return self.secure is not None or self.dp is not None

    def share(self, clients: int | None) -> float:
        """How much of the noise's variance one client of so many adds: all of it; under a secure sum so much that even the fewest
        who may be left have all of it. None: nobody knows who the others are, and whoever invents some could share it out."""
        return 1.0 if self.secure is None or clients is None else 1.0 / self._fewest(clients)

    def noisy(self, upload: Any, implied: Implied, clients: int | None, weights: Any = None) -> Any:
        """An upload as it leaves its client, one of so many (see `share`). `weights`: those of its samples; one that counts
        twice would hide behind noise that is made for samples that count once."""
        if self.dp is None:
            return upload
        if weights is not None:
            raise PrivacyError(
                "differential privacy is for samples without weights: the noise is that of samples that count once"
            )
        return _noise(self.dp, upload, implied).add(upload, self.share(clients))

    def release(self, total: Any, implied: Implied, clients: int, summed: int, variance: float | None = None) -> Any:
        """The sum of so many of the clients' uploads, as a method can use it. `variance`: that of the noise in it, in units of
        the whole; None: each has its share."""
        if self.dp is None:
            if self.secure is not None and isinstance(total, Moments) and total.n < total.dim:
                warnings.warn(
                    f"a sum of {total.n} samples with {total.dim} features can be taken apart into them, though not told whose "
                    "they are; use fewer features, more clients, or noise (docs/privacy.md)",
                    stacklevel=2,
                )
            return total
        variance = summed * self.share(clients) if variance is None else variance
        return _noise(self.dp, total, implied).repair(total, variance)

    def statement(self) -> dict[str, Any]:
        """What a result says about it."""
        secure, noise = self.secure, self.dp
        told = {} if secure is None else {"secure_sum": {"threshold": secure.threshold, "minimum": secure.minimum}}
        where = "each client's upload" if secure is None else "the sum of the uploads"
        return told | ({} if noise is None else {"dp": {**noise.statement(), "noise": where}})

    def _fewest(self, clients: int) -> int:
        assert self.secure is not None
        return max(graph.needed(clients, self.secure.threshold), self.secure.minimum)


def _noise(dp: DP, upload: Any, implied: Implied) -> Noise:
    length = implied.length(upload.dim) if isinstance(upload, Moments) else None
    if length is None:
        raise PrivacyError(
            "differential privacy needs moments of features whose length is bounded; use a map of normalised inputs such as "
            "'bias+linear' or 'bias+linear+fourier:512'"
        )
    return dp.noise(length)
