"""The keys of a network: an authority and a server certificate that it signed, and a key pair per site. As files.

A private key is readable by its owner only, and nothing is ever overwritten: certificates that are already deployed stay valid.
"""

import ipaddress
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gramfold.errors import FileError, NetworkError

YEARS = 5
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
LOOPBACK = ("localhost", "127.0.0.1")


def write_certificates(folder: Path, host: str) -> None:
    """`ca.crt`, which every site gets; `server.crt` and `server.key`, for a server reached as `host` (a name or an address).

    The authority signs this one certificate and its own key is discarded, so it cannot be stolen. A new host needs new files.
    The certificate is also valid for the loopback, which the server's own commands use.
    """
    for name in ("ca.crt", "server.crt", "server.key"):
        _refuse_existing(folder / name)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("gramfold authority")
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([_host_name(name) for name in dict.fromkeys((host, *LOOPBACK))])
    server = (
        _certificate(_name(host), authority_name, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .add_extension(names, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    _write(folder / "server.crt", server.public_bytes(serialization.Encoding.PEM))
    private = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(folder / "server.key", private, secret=True)


def write_site_key(path: Path) -> Path:
    """A site's private key, in the form that `ssh-keygen -t ecdsa -b 384` gives, and beside it the public one, whose path is
    returned: that is what the server registers."""
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        _refuse_existing(file)
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    _write(path, private, secret=True)
    _write(public, key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n")
    return public


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.IPv4Address(host))
    except ValueError:
        if not _HOST_NAME.fullmatch(host):
            raise NetworkError(
                f"{host!r} is not a host name or IPv4 address; give the name by which sites reach the server"
            ) from None
        return x509.DNSName(host)


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # allows for clock differences between sites
        .not_valid_after(now + timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise FileError(f"{path} exists and is not overwritten; remove it or choose another folder")


def _write(path: Path, data: bytes, secret: bool = False) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644), "wb") as file:
            file.write(data)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None
