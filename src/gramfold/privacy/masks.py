"""Keys, and the masks that they give: X25519 agreements, HKDF, a ChaCha20 stream as ring elements, Ed25519 signatures."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gramfold.errors import InstallError, SecureSumError
from gramfold.privacy.ring import Words

BLOCK = 2**15
"""Ring elements in a block of a stream."""
NONCE = 12
"""Bytes of a random nonce, in front of what it encrypts."""


def require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise InstallError("this needs the package cryptography; pip install 'gramfold[secure]'") from None


def apply(change: Callable[[Words, Words], None], total: Words, key: bytes) -> None:
    """Add a key's mask to ring elements, or subtract it, block by block: `change` is `ring.add` or `ring.subtract`."""
    for block, mask in _blocks(key, *total.shape):
        change(total[:, block], mask)


def stream(key: bytes, words: int, size: int) -> Words:
    """Ring elements (words x size) that nobody without the key can tell from uniform ones. A key gives one stream."""
    drawn = np.zeros((words, size), np.uint64)
    for block, mask in _blocks(key, words, size):
        drawn[:, block] = mask
    return drawn


def _blocks(key: bytes, words: int, size: int) -> Iterator[tuple[slice, Words]]:
    """The stream in blocks that stay in a processor's cache."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    encryptor = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()
    nothing, drawn = bytes(8 * words * BLOCK), bytearray(8 * words * BLOCK)
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        length = 8 * words * count
        encryptor.update_into(memoryview(nothing)[:length], memoryview(drawn)[:length])
        mask = np.frombuffer(drawn, "<u8", words * count).astype(np.uint64, copy=False)
        yield slice(start, start + count), mask.reshape(words, count)


def public_key(private: bytes) -> bytes:
    public: bytes = _x25519(private).public_key().public_bytes_raw()
    return public


def agree(private: bytes, public: bytes, purpose: str) -> bytes:
    """The key of 32 bytes that the owners of two key pairs have in common, for one purpose."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    shared = _checked(lambda: _x25519(private).exchange(X25519PublicKey.from_public_bytes(public)))
    key: bytes = HKDF(SHA256(), 32, None, b"gramfold secure sum 2/" + purpose.encode()).derive(shared)
    return key


def encrypt(key: bytes, text: bytes, about: bytes, random: Callable[[int], bytes] = secrets.token_bytes) -> bytes:
    """Encrypted and authenticated, together with what it is about, which is not part of it."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = random(NONCE)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, text, about)


def decrypt(key: bytes, sealed: bytes, about: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        opened: bytes = ChaCha20Poly1305(key).decrypt(sealed[:NONCE], sealed[NONCE:], about)
    except (InvalidTag, ValueError):
        raise SecureSumError("a share was changed on its way, or was meant for somebody else") from None
    return opened


def identity_of(private: bytes) -> bytes:
    """The public half of a key that signs."""
    public: bytes = _ed25519(private).public_key().public_bytes_raw()
    return public


def sign(private: bytes, text: bytes) -> bytes:
    signature: bytes = _ed25519(private).sign(text)
    return signature


def is_signed(identity: bytes, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _x25519(private: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return _checked(lambda: X25519PrivateKey.from_private_bytes(private))


def _ed25519(private: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _checked(lambda: Ed25519PrivateKey.from_private_bytes(private))


def _checked(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except ValueError:
        raise SecureSumError("a key of the secure sum is no key") from None
