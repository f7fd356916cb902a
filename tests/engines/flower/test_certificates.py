"""Certificates and keys as the tools of others see them: TLS of Python and OpenSSL, ssh-keygen."""

import shutil
import socket
import ssl
import subprocess
import threading
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="certificates come with the flower extra")

from gramfold.deploy.certificates import write_certificates, write_site_key
from gramfold.deploy.toml import to_toml
from gramfold.errors import GramfoldError


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    write_certificates(folder, "federation.example.org")
    return folder


def handshake(keys, name, trusted=None):
    """A TLS connection to a server with these keys, by a client that calls it `name`."""
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(keys / "server.crt", keys / "server.key")
    here = ssl.create_default_context(cafile=str((trusted or keys) / "ca.crt"))
    here.verify_flags |= ssl.VERIFY_X509_STRICT
    near, far = socket.socketpair()

    def serve():
        try:
            there.wrap_socket(far, server_side=True).close()
        except OSError:
            far.close()

    server = threading.Thread(target=serve)
    server.start()
    try:
        with near, here.wrap_socket(near, server_hostname=name) as connection:
            return connection.version()
    finally:
        server.join(10)


@pytest.mark.parametrize("name", ["federation.example.org", "localhost", "127.0.0.1"])
def test_a_client_trusts_the_server_by_its_names(keys, name):
    assert handshake(keys, name) == "TLSv1.3"


def test_a_client_trusts_no_other_name_and_no_other_authority(keys, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(keys, "elsewhere.example.org")
    write_certificates(tmp_path, "federation.example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(keys, "localhost", trusted=tmp_path)


def test_openssh_reads_a_sites_key(tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    public = write_site_key(tmp_path / "key")
    output = subprocess.run(["ssh-keygen", "-l", "-f", public], capture_output=True, text=True, check=True).stdout
    assert output.startswith("384 ")
    assert "ECDSA" in output
    derived = subprocess.run(["ssh-keygen", "-y", "-f", tmp_path / "key"], capture_output=True, text=True, check=True).stdout
    assert derived.split()[:2] == public.read_text().split()[:2]


def test_secrets_are_for_their_owner_only_and_nothing_is_overwritten(keys, tmp_path):
    assert (keys / "server.key").stat().st_mode & 0o777 == 0o600
    write_site_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(GramfoldError, match=r"key exists and is not overwritten"):
        write_site_key(tmp_path / "key")
    with pytest.raises(GramfoldError, match=r"ca.crt exists and is not overwritten"):
        write_certificates(keys, "localhost")
    assert sorted(path.name for path in keys.iterdir()) == ["ca.crt", "server.crt", "server.key"], "no authority's key is kept"


@pytest.mark.parametrize("host", ["two words", "", "a;b", "-x", "::1", "host:80", "x" * 64])
def test_what_is_no_host_is_refused_in_one_line(host, tmp_path):
    with pytest.raises(GramfoldError, match="no host name or IPv4 address"):
        write_certificates(tmp_path, host)


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.one_of(texts, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
tables = st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True), values, max_size=5)


@given(tables, tables)
def test_toml_that_we_write_reads_back(top, inner):
    assert tomllib.loads(to_toml({**top, "Section": inner})) == {**top, "Section": inner}
