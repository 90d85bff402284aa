"""The floor and the ciphers that clients really meet."""

import contextlib
import ssl

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main
from k8s_scheduler.console.certificates import CertificateFiles, SelfSigned
from k8s_scheduler.console.tls_settings import SUITES_1_2, TlsSettings
from tests.fakes.certificates import Issued
from tests.unit.console.test_certificates import make_pair


def meet(server, *, highest=ssl.TLSVersion.TLSv1_3, ciphers=None):
    """Shake hands in memory; return the version and the cipher that both sides agreed on."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = highest
    if ciphers:
        client.set_ciphers(ciphers)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ends[0].version(), ends[0].cipher()[0]


def settings(version="VersionTLS12", *suites):
    return TlsSettings.of(version, suites)


class TestOffered:
    """What is asked for is what is offered, by either kind of certificate."""

    def test_by_default_both_versions_are_offered(self):
        context = SelfSigned(settings=settings()).context
        assert meet(context)[0] == "TLSv1.3"
        assert meet(context, highest=ssl.TLSVersion.TLSv1_2)[0] == "TLSv1.2"

    def test_a_floor_of_1_3_turns_older_clients_away(self, tmp_path):
        wanted = settings("VersionTLS13")
        files = CertificateFiles(*Issued(*make_pair()).write(tmp_path, "tls"), settings=wanted)
        for context in (SelfSigned(settings=wanted).context, files.context):
            assert meet(context)[0] == "TLSv1.3"
            with pytest.raises(ssl.SSLError):
                meet(context, highest=ssl.TLSVersion.TLSv1_2)

    def test_only_the_suites_that_were_named_are_offered(self):
        name = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
        context = SelfSigned(settings=settings("VersionTLS12", name)).context
        old = ssl.TLSVersion.TLSv1_2
        assert meet(context, highest=old) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
        with pytest.raises(ssl.SSLError):
            meet(context, highest=old, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")

    def test_a_renewed_certificate_is_offered_with_the_same(self, tmp_path):
        pair = Issued(*make_pair())
        files = CertificateFiles(*pair.write(tmp_path, "tls"), settings=settings("VersionTLS13"))
        Issued(*make_pair()).write(tmp_path, "tls")
        assert files.refresh()
        with pytest.raises(ssl.SSLError):
            meet(files.context, highest=ssl.TLSVersion.TLSv1_2)

    @pytest.mark.parametrize("name", SUITES_1_2)
    def test_every_suite_is_known_to_the_library(self, name):
        context = settings("VersionTLS12", name).server_context()
        assert SUITES_1_2[name] in {each["name"] for each in context.get_ciphers()}


class TestRefused:
    """The message names what is wrong and what would be right."""

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (["--tls-min-version=VersionTLS11"], "the lowest is VersionTLS12"),
            (["--tls-min-version=1.3"], "known are VersionTLS12, VersionTLS13"),
            (["--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"], "not offered: TLS_RSA_WITH_RC4_"),
            (["--tls-cipher-suites=TLS_AES_128_GCM_SHA256"], "name one of TLS 1.2 too"),
        ],
    )
    @pytest.mark.parametrize("command", ["run", "shadow"])
    def test_on_the_command_line(self, command, args, said):
        needed = ["--scheduler-name=a"] if command == "shadow" else []
        result = CliRunner().invoke(main, [command, *needed, *args])
        assert result.exit_code == ExitCode.USAGE
        assert said in " ".join(result.output.split())

    def test_suites_of_1_3_alone_are_enough_for_a_floor_of_1_3(self):
        assert settings("VersionTLS13", "TLS_AES_128_GCM_SHA256").ciphers == ()
