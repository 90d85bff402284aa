"""Certificates are verified as Go verifies them, on every version of Python."""

import ssl
from pathlib import Path

import pytest

from k8s_scheduler.kube.auth.tls import TlsMaterial, verify_as_go_does
from tests.fakes.certificates import Authority, shake_hands


def greeted(folder: Path, client: ssl.SSLContext, authority: Authority) -> bool:
    """Return whether a client, in memory, trusts a server of an authority."""
    try:
        shake_hands(authority.server_context(folder, hosts=("127.0.0.1",)), client)
    except ssl.SSLCertVerificationError:
        return False
    return True


def strict_context(authority: Authority) -> ssl.SSLContext:
    """Return a context as newer versions of Python make it."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def test_certificates_of_older_profiles_are_trusted(tmp_path: Path) -> None:
    authority = Authority()
    context = strict_context(authority)
    assert not greeted(tmp_path, context, authority)
    verify_as_go_does(context)
    assert greeted(tmp_path, context, authority)
    assert not greeted(tmp_path, context, Authority())


@pytest.mark.parametrize("remark", [b"", "# Főtanúsítvány\n".encode(), b"# \xff\xfe\n"])
def test_remarks_in_a_bundle_do_not_matter(tmp_path: Path, remark: bytes) -> None:
    authority = Authority()
    context = TlsMaterial(ca=remark + authority.pem + remark).context()
    assert greeted(tmp_path, context, authority)
