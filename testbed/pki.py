"""Keys and certificates of a bed, made in-process: no openssl on the machine is needed.

    ca ─┬─ apiserver     what the API server shows; also valid inside-the-cluster names
        ├─ serving       shown by kube-controller-manager, kube-scheduler and kwok on loopback
        └─ admin         client certificate of group system:masters
    front-proxy-ca ── front-proxy      the API server's own identity towards aggregated APIs
    sa.key / sa.pub      signs and checks service account tokens (RSA: tokens are RS256)

They live and die with the bed's etcd data: a token signed by another bed's key must not work.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from testbed.layout import write_private

SERVICE_IP = "10.96.0.1"
LOOPBACK_NAMES = ("localhost", "127.0.0.1")
API_SERVER_NAMES = (
    *LOOPBACK_NAMES,
    SERVICE_IP,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)

_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that can sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def write_pki(folder: Path, *, now: datetime | None = None) -> None:
    """Make everything in the diagram above and write it as PEM files."""
    now = now or datetime.now(tz=UTC)
    ca = make_authority("k8s-scheduler-testbed-ca", now=now)
    front = make_authority("k8s-scheduler-testbed-front-proxy-ca", now=now)
    _write_pair(folder, "ca", ca.certificate, ca.key)
    _write_pair(folder, "front-proxy-ca", front.certificate, front.key)
    for name, names in (("apiserver", API_SERVER_NAMES), ("serving", LOOPBACK_NAMES)):
        _write_pair(folder, name, *issue_server(ca, name, names=names, now=now))
    admin = issue_client(ca, "admin", organization="system:masters", now=now)
    _write_pair(folder, "admin", *admin)
    _write_pair(folder, "front-proxy", *issue_client(front, "front-proxy", now=now))
    _write_service_account_key(folder)


def make_authority(common_name: str, *, now: datetime) -> Authority:
    """Make a self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    certificate = (
        _builder(name, key, now=now)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate=certificate, key=key)


def issue_server(
    authority: Authority, common_name: str, *, names: Sequence[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Issue a certificate for a server that is reached under these names and addresses."""
    return _issue(
        authority,
        _name(common_name),
        usage=ExtendedKeyUsageOID.SERVER_AUTH,
        names=[_alternative_name(name) for name in names],
        now=now,
    )


def issue_client(
    authority: Authority, common_name: str, *, organization: str | None = None, now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Issue a client certificate: user `common_name`, member of group `organization`."""
    subject = _name(common_name, organization=organization)
    return _issue(authority, subject, usage=ExtendedKeyUsageOID.CLIENT_AUTH, names=(), now=now)


def client_pems(folder: Path, common_name: str, *, now: datetime) -> tuple[str, str]:
    """Issue a client certificate of the authority in a folder; return it and its key as PEM."""
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{folder}/ca.key is of another kind than write_pki makes")
    authority = Authority(x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()), key)
    certificate, own_key = issue_client(authority, common_name, now=now)
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return pem.decode("ascii"), _private_pem(own_key).decode("ascii")


def _issue(
    authority: Authority,
    subject: x509.Name,
    *,
    usage: ObjectIdentifier,
    names: Sequence[x509.GeneralName],
    now: datetime,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = authority.key.public_key()
    builder = (
        _builder(subject, key, now=now)
        .issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        # Strict verifiers (Python 3.13 on) refuse a leaf that does not name its signer's key.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(authority.key, hashes.SHA256()), key


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _name(common_name: str, *, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_pair(
    folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    write_private(folder / f"{name}.key", _private_pem(key))
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / f"{name}.crt").write_bytes(pem)


def _write_service_account_key(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_private(folder / "sa.key", _private_pem(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "sa.pub").write_bytes(public)


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
