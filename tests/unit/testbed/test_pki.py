import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed.pki import write_pki

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pki")
    write_pki(path, now=NOW)
    return path


def _certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def _names(certificate: x509.Certificate) -> set[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


@pytest.mark.parametrize(
    ("leaf", "authority"),
    [
        ("apiserver", "ca"),
        ("serving", "ca"),
        ("admin", "ca"),
        ("front-proxy", "front-proxy-ca"),
    ],
)
def test_leaf_is_signed_by_its_authority_and_no_authority_itself(folder, leaf, authority):
    certificate = _certificate(folder, leaf)
    certificate.verify_directly_issued_by(_certificate(folder, authority))
    limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert limits.ca is False


def test_api_server_is_valid_under_loopback_and_in_cluster_names(folder):
    names = _names(_certificate(folder, "apiserver"))
    assert {"localhost", "127.0.0.1", "10.96.0.1", "kubernetes.default.svc"} <= names


@pytest.mark.parametrize(
    ("leaf", "usage"),
    [
        ("apiserver", ExtendedKeyUsageOID.SERVER_AUTH),
        ("serving", ExtendedKeyUsageOID.SERVER_AUTH),
        ("admin", ExtendedKeyUsageOID.CLIENT_AUTH),
        ("front-proxy", ExtendedKeyUsageOID.CLIENT_AUTH),
    ],
)
def test_certificate_is_good_for_one_side_only(folder, leaf, usage):
    extension = _certificate(folder, leaf).extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert list(extension.value) == [usage]


def test_admin_is_in_the_group_that_may_do_everything(folder):
    subject = _certificate(folder, "admin").subject
    (group,) = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert group.value == "system:masters"


def test_certificates_are_valid_now_and_for_a_year(folder):
    certificate = _certificate(folder, "apiserver")
    assert certificate.not_valid_before_utc < NOW
    assert (certificate.not_valid_after_utc - NOW).days == 365


def test_certificates_have_elliptic_keys_and_tokens_an_rsa_key(folder):
    assert isinstance(_certificate(folder, "apiserver").public_key(), ec.EllipticCurvePublicKey)
    key = load_pem_private_key((folder / "sa.key").read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)


def test_private_keys_are_for_the_owner_only(folder):
    for key in folder.glob("*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600, key


def test_strict_verifier_loads_the_authority_and_the_pair(folder):
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    assert len(context.get_ca_certs()) == 1
