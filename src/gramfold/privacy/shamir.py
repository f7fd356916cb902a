"""Shamir's secret sharing: any `threshold` shares give a secret of 32 bytes, fewer say nothing about it."""

import secrets
from collections.abc import Callable, Mapping, Sequence

from gramfold.errors import SecureSumError

PRIME = 2**256 + 297
"""The first prime above all secrets of 32 bytes."""
SIZE = 33
"""Bytes of a share."""
Random = Callable[[int], bytes]
"""So many random bytes."""


def split(secret: bytes, places: Sequence[int], threshold: int, random: Random = secrets.token_bytes) -> list[int]:
    """A share for every place: the values there of a random polynomial of degree threshold - 1 that is the secret at zero."""
    if not 1 <= threshold <= len(places) or len(set(places)) != len(places) or min(places) < 1:
        raise SecureSumError(f"cannot share a secret among {len(places)} with a threshold of {threshold}")
    polynomial = [int.from_bytes(secret, "big"), *(_element(random) for _ in range(threshold - 1))]
    return [_value(polynomial, place) for place in places]


def join(shares: Mapping[int, int]) -> bytes:
    """The secret of these shares, by place. With too few of them, or a wrong one, it is another secret, or none at all."""
    secret = 0
    for place, share in shares.items():
        above = below = 1
        for other in shares:
            if other != place:
                above, below = above * other % PRIME, below * (other - place) % PRIME
        secret += share * above * pow(below, -1, PRIME)
    secret %= PRIME
    if secret >= 2**256:
        raise SecureSumError("the shares of a secret do not fit together")
    return secret.to_bytes(32, "big")


def _element(random: Random) -> int:
    """Uniform in the field: 48 bytes reduced are so to within 2^-127."""
    return int.from_bytes(random(48), "big") % PRIME


def _value(polynomial: Sequence[int], place: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * place + coefficient) % PRIME
    return value
