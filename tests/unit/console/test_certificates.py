"""Serving certificates: made in memory, or read from files and read again when they change."""

import asyncio
import os
import socket
import ssl
import tempfile

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from k8s_scheduler.console import certificates
from k8s_scheduler.console.certificates import CertificateError, CertificateFiles, SelfSigned
from tests.fakes.certificates import Authority, shake_hands


def make_pair(key=None):
    """Return certificate and key of a new pair, as PEM."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificates._self_sign(key, "127.0.0.1"), key_pem


def handshake(context, trusted_pem):
    """Shake hands in memory with a strict client; SSLError if it does not trust the server."""
    client_context = ssl.create_default_context(cadata=trusted_pem.decode())
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    shake_hands(context, client_context)


@pytest.fixture
def pair(tmp_path):
    """Return a function that writes a pair to the files, and the files."""
    cert_file, key_file = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write(cert_pem, key_pem):
        for path, content in ((cert_file, cert_pem), (key_file, key_pem)):
            path.with_suffix(".new").write_bytes(content)
            path.with_suffix(".new").rename(path)

    return write, cert_file, key_file


class TestSelfSigned:
    """A certificate that a strict client could trust, and no file."""

    def test_a_client_that_trusts_it_can_connect(self):
        made = SelfSigned()
        handshake(made.context, made.certificate_pem)

    def test_it_names_the_addresses_it_is_served_on(self):
        made = SelfSigned(bind_address="192.0.2.7")
        certificate = x509.load_pem_x509_certificate(made.certificate_pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
        assert addresses == {"127.0.0.1", "::1", "192.0.2.7"}
        assert "localhost" in names.get_values_for_type(x509.DNSName)

    def test_any_address_is_not_named(self):
        made = SelfSigned(bind_address="0.0.0.0")
        certificate = x509.load_pem_x509_certificate(made.certificate_pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert len(names.get_values_for_type(x509.IPAddress)) == 2

    @pytest.mark.parametrize("hostname", ["", "höst", "\udcff"])
    def test_a_machine_whose_name_no_certificate_can_hold_has_one_without_it(
        self, monkeypatch, hostname
    ):
        monkeypatch.setattr(socket, "gethostname", lambda: hostname)
        made = SelfSigned()
        handshake(made.context, made.certificate_pem)

    def test_it_needs_no_folder(self, monkeypatch, tmp_path):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        SelfSigned()

    def test_without_files_in_memory_a_temporary_one_is_used_and_removed(
        self, monkeypatch, tmp_path
    ):
        monkeypatch.delattr(os, "memfd_create")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        made = SelfSigned()
        handshake(made.context, made.certificate_pem)
        assert list(tmp_path.iterdir()) == []

    def test_without_any_place_the_error_says_what_to_do(self, monkeypatch, tmp_path):
        monkeypatch.delattr(os, "memfd_create")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        with pytest.raises(CertificateError) as caught:
            SelfSigned()
        assert "mount a writable directory at /tmp, or give --tls-cert-file" in str(caught.value)


class TestFiles:
    """Given files are served, and followed."""

    def test_a_changed_pair_is_taken_into_use(self, pair):
        write, *files = pair
        first, second = make_pair(), make_pair()
        write(*first)
        served = CertificateFiles(*files)
        handshake(served.context, first[0])
        assert served.refresh() is False
        write(*second)
        assert served.refresh() is True
        handshake(served.context, second[0])
        with pytest.raises(ssl.SSLError):
            handshake(served.context, first[0])

    @pytest.mark.parametrize("first_is_rsa", [True, False], ids=["RSA to EC", "EC to RSA"])
    def test_a_pair_of_another_kind_leaves_nothing_of_the_old_one(self, pair, first_is_rsa):
        write, *files = pair
        of_rsa = make_pair(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        first, second = (of_rsa, make_pair()) if first_is_rsa else (make_pair(), of_rsa)
        write(*first)
        served = CertificateFiles(*files)
        handshake(served.context, first[0])
        write(*second)
        assert served.refresh() is True
        handshake(served.context, second[0])
        with pytest.raises(ssl.SSLError):
            handshake(served.context, first[0])

    def test_a_pair_that_changes_while_it_is_read_leaves_the_old_one(self, pair, monkeypatch):
        write, *files = pair
        first, second = make_pair(), make_pair()
        write(*first)
        served = CertificateFiles(*files)
        write(*second)
        load = ssl.SSLContext.load_cert_chain

        def torn(context, *args, **kwargs):
            load(context, *args, **kwargs)
            write(second[0], first[1])

        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", torn)
        renewed = served.refresh()
        handshake(served.context, second[0] if renewed else first[0])

    def test_names_that_clients_ask_for_are_nobodys_business(self, pair):
        """A callback for them has Python write a traceback for each that is not ASCII."""
        write, *files = pair
        write(*make_pair())
        assert CertificateFiles(*files).context.sni_callback is None

    def test_authorities_of_clients_are_followed_too(self, pair, tmp_path):
        write, *files = pair
        server, client_ca = make_pair(), tmp_path / "client-ca.crt"
        old, new = Authority("old"), Authority("new")
        write(*server)
        client_ca.write_bytes(old.pem)
        served = CertificateFiles(*files, client_ca_file=client_ca)

        def come_with(authority):
            client = ssl.create_default_context(cadata=server[0].decode())
            client.load_cert_chain(*authority.issue("scraper").write(tmp_path, "client"))
            # What the server thinks of a client is known within the handshake.
            client.maximum_version = ssl.TLSVersion.TLSv1_2
            shake_hands(served.context, client)

        come_with(old)
        with pytest.raises(ssl.SSLError):
            come_with(new)
        handshake(served.context, server[0])
        client_ca.with_suffix(".new").write_bytes(new.pem)
        client_ca.with_suffix(".new").rename(client_ca)
        assert served.refresh() is True
        come_with(new)
        with pytest.raises(ssl.SSLError):
            come_with(old)
        handshake(served.context, server[0])

    def test_a_pair_that_does_not_fit_never_replaces_one_that_does(self, pair, caplog):
        write, *files = pair
        first, second = make_pair(), make_pair()
        write(*first)
        served = CertificateFiles(*files)
        write(second[0], first[1])
        assert served.refresh() is False
        handshake(served.context, first[0])
        assert caplog.records[-1].message == "Serving certificate not renewed"
        write(*second)
        assert served.refresh() is True
        handshake(served.context, second[0])

    def test_files_that_vanish_leave_the_old_pair(self, pair):
        write, *files = pair
        first = make_pair()
        write(*first)
        served = CertificateFiles(*files)
        files[1].unlink()
        assert served.refresh() is False
        handshake(served.context, first[0])

    async def test_it_looks_again_and_again(self, pair):
        write, *files = pair
        write(*make_pair())
        served = CertificateFiles(*files)
        second = make_pair()
        pauses = []

        async def sleep(seconds):
            pauses.append(seconds)
            if len(pauses) == 1:
                write(*second)
            if len(pauses) == 3:
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await served.keep_current(sleep)
        assert pauses == [10.0] * 3
        handshake(served.context, second[0])

    def test_missing_file_is_named(self, tmp_path):
        with pytest.raises(CertificateError) as caught:
            CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
        assert str(caught.value) == f"{tmp_path}/tls.crt: No such file or directory"

    def test_files_that_are_no_pair_are_named(self, pair):
        write, *files = pair
        write(b"no", b"pair")
        with pytest.raises(CertificateError, match="are no certificate with its key"):
            CertificateFiles(*files)

    def test_a_key_that_is_encrypted_is_named_and_nobody_is_asked_for_its_password(self, pair):
        write, *files = pair
        certificate, key = make_pair()
        write(certificate, encrypted(key))
        with pytest.raises(CertificateError) as caught:
            CertificateFiles(*files)
        assert str(caught.value) == f"{files[1]}: is encrypted; give a key without a password"

    def test_a_renewed_one_that_is_encrypted_leaves_the_old_pair(self, pair, caplog):
        write, *files = pair
        first = make_pair()
        write(*first)
        served = CertificateFiles(*files)
        write(first[0], encrypted(first[1]))
        assert served.refresh() is False
        handshake(served.context, first[0])
        assert "is encrypted" in caplog.records[-1].fields["error"]


def encrypted(key):
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
