"""`config current` asks a running scheduler, over TLS, and says what went wrong if it can't."""

import asyncio
import json
import ssl

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.configuration import current
from k8s_scheduler.app.configuration.interpretation import interpret
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer
from k8s_scheduler.app.configuration.status import ConfigStatus
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.cli.main import main
from k8s_scheduler.console import gate
from k8s_scheduler.console.certificates import SelfSigned
from k8s_scheduler.console.gate import HealthOnly
from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.server import Endpoints, serve
from k8s_scheduler.obs.metrics import Metrics

TEXT = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: ours}]
"""


def status():
    refused = RefusedOffer("bad", "f", 0.0, ("line one", "line two"))
    found = interpret(ConfigurationFlags(), Offer("f.yaml", TEXT))
    return ConfigStatus(found, "abc", metrics=Metrics().config, refused=refused)


class Doorman:
    """Lets in whoever shows the token; others get the status that a real gate has for them."""

    def __init__(self, token):
        self.token = token
        self.shown = []

    async def admit(self, knock):
        self.shown.append(knock.token)
        if knock.token == self.token:
            return None
        return gate.UNAUTHORIZED if knock.token == "unknown" else gate.Denial(403, "Forbidden", "")


@pytest.fixture(autouse=True)
def pod_token(tmp_path, monkeypatch):
    """Where a pod has its token; there is none until a test writes one."""
    path = tmp_path / "serviceaccount" / "token"
    path.parent.mkdir()
    monkeypatch.setattr(current, "POD_TOKEN", path)
    return path


async def ask(*arguments, page=None, doorman=None):
    """Run the command beside a server on a port of its own."""
    endpoints = Endpoints(registry=Metrics().registry, configuration=page or status().page)
    certificate = SelfSigned(bind_address="127.0.0.1")
    door = doorman or HealthOnly(OpenPaths(("/*",)))
    server = await serve(endpoints, certificate, bind_address="127.0.0.1", port=None, gate=door)
    try:
        command = ["config", "current", f"--server=https://127.0.0.1:{server.port}", *arguments]
        return await asyncio.to_thread(CliRunner().invoke, main, command)
    finally:
        await server.close()


async def test_it_is_a_file_with_remarks():
    result = await ask()
    assert result.exit_code == 0, result.output
    assert result.output.startswith("# hash: abc\n# in force since: ")
    assert "# source: f.yaml\n" in result.output
    assert "and nothing better was offered since: bad\n#   line one\n#   line two" in result.output
    assert "schedulerName: ours" in result.output
    assert "kind: SchedulerExtras" in result.output


async def test_json_is_what_the_server_says():
    shown = status()
    result = await ask("-o", "json", page=shown.page)
    assert json.loads(result.output) == shown.page()


async def test_a_page_of_something_else_is_told_apart():
    result = await ask(page=lambda: {"componentconfig": {}})
    assert result.exit_code == 1
    assert "its answer is no configuration" in result.output


def test_certificates_of_older_profiles_are_trusted(monkeypatch):
    """As newer versions of Python would not by themselves; kube/test_tls.py has the meaning."""
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: strict)
    found = current.Address(server="https://h").tls("h")
    assert not found.verify_flags & ssl.VERIFY_X509_STRICT
    assert found.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert found.verify_mode is ssl.CERT_REQUIRED


async def test_a_certificate_of_another_authority_is_not_trusted(tmp_path):
    other = tmp_path / "ca.pem"
    context = SelfSigned(bind_address="127.0.0.1").context
    assert context is not None
    other.write_text("nothing")
    result = await ask(f"--certificate-authority={other}")
    assert result.exit_code == 1
    assert "no certificates in there" in result.output


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("https://127.0.0.1:1", "no answer"),
        ("http://127.0.0.1:1", "https://HOST[:PORT] is expected"),
        ("https://127.0.0.1:x", "https://127.0.0.1:x"),
        ("127.0.0.1", "https://HOST[:PORT] is expected"),
        ("https://[", "Invalid IPv6 URL; https://HOST[:PORT] is expected"),
        ("https://a b", "https://HOST[:PORT] is expected"),
        ("https://a..b", "https://HOST[:PORT] is expected"),
        ("https://" + "a" * 64, "https://HOST[:PORT] is expected"),
        ("https://[fe80::1%a b]", "https://HOST[:PORT] is expected"),
        ("https://127.0.0.1:0", "https://HOST[:PORT] is expected"),
        ("https://127.0.0.1:65536", "Port out of range 0-65535; https://HOST[:PORT] is expected"),
        ("https://127.0.0.1/x", "https://HOST[:PORT] is expected"),
        ("https://127.0.0.1?x", "https://HOST[:PORT] is expected"),
    ],
)
def test_a_wrong_address_is_named(server, message):
    result = CliRunner().invoke(main, ["config", "current", f"--server={server}"])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert message in result.output
    assert server in result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ("https://a\nb", "https://a\\nb: https://HOST[:PORT] is expected\n"),
        ("https://\u00e9", "https://\\xe9: https://HOST[:PORT] is expected\n"),
        ("https://me:pass@h", "https://<redacted>@h: https://HOST[:PORT] is expected\n"),
    ],
)
def test_an_odd_address_is_shown_in_one_line_and_without_a_password(server, shown):
    result = CliRunner().invoke(main, ["config", "current", f"--server={server}"])
    assert (result.exit_code, result.output) == (1, shown)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read as a token: cannot read the token"),
        (b"", "is empty; a token is expected"),
        (b" \n", "is empty; a token is expected"),
        (b"sesame\nsecond", "the token holds characters that no header may hold (a line break"),
        (b"sesame\r\nX-Evil: 1", "the token holds characters that no header may hold"),
        (b"sesame second", "the token holds characters that no header may hold"),
        (b"sesame\xff", "the token holds characters that no header may hold"),
        ("sesam\u00e9".encode(), "the token holds characters that no header may hold"),
    ],
    ids=["missing", "empty", "blank", "two lines", "a header", "two words", "bytes", "an accent"],
)
async def test_a_token_that_is_none_is_named_and_not_shown(tmp_path, content, message):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    doorman = Doorman("sesame")
    result = await ask(f"--token-file={path}", doorman=doorman)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert message in result.output
    assert str(path) in result.output
    assert "sesam" not in result.output
    assert result.output.count("\n") == 1
    assert doorman.shown == []


class TestToken:
    """Which token is shown, and what is said when that is not enough."""

    async def test_the_one_that_is_named(self, tmp_path, pod_token):
        pod_token.write_text("the-pods")
        own = tmp_path / "own"
        own.write_text("sesame\n")
        result = await ask(f"--token-file={own}", doorman=Doorman("sesame"))
        assert result.exit_code == 0, result.output

    async def test_in_a_pod_without_a_word_its_own(self, pod_token):
        pod_token.write_text("sesame")
        result = await ask(doorman=Doorman("sesame"))
        assert result.exit_code == 0, result.output

    @pytest.mark.parametrize("server", ["https://192.0.2.1:1", "https://scheduler.example:1"])
    def test_the_pods_own_is_for_nobody_but_this_machine(self, pod_token, server):
        pod_token.write_text("sesame")
        address = current.Address(server=server)
        assert address.token_source(address.place()[0]) is None
        for here in ("localhost", "127.0.0.1", "::1"):
            assert address.token_source(here) == pod_token

    @pytest.mark.parametrize(
        ("own", "in_pod", "message"),
        [
            ("", "", "403: no token was shown: --token-file"),
            ("", "weak", "403: the pod's service account may not `get` the nonResourceURL"),
            ("weak", "", "403: the token's owner may not read it: let it `get` the nonResource"),
            ("unknown", "", "401: the token is not accepted"),
        ],
    )
    async def test_what_is_missing_is_said(self, tmp_path, pod_token, own, in_pod, message):
        file = tmp_path / "own"
        file.write_text(own)
        if in_pod:
            pod_token.write_text(in_pod)
        arguments = [f"--token-file={file}"] if own else []
        result = await ask(*arguments, doorman=Doorman("sesame"))
        assert result.exit_code == 1
        assert message in result.output
        assert "weak" not in result.output
        assert "unknown" not in result.output


async def test_an_answer_that_is_no_http_cannot_bring_the_token_out(tmp_path):
    """A server that throws back what it was sent is told of in our words, not in its own."""
    own = tmp_path / "own"
    own.write_text("sesame")
    key = SelfSigned(bind_address="127.0.0.1")

    async def echo(reader, writer):
        sent = await reader.readuntil(b"\r\n\r\n")
        assert b"sesame" in sent
        writer.write(b"sesame " + sent.replace(b"\r\n", b" ") + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=key.context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        command = ["config", "current", f"--server=https://127.0.0.1:{port}", f"--token-file={own}"]
        result = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert result.exit_code == 1
    assert "it does not speak HTTP (BadStatusLine)" in result.output
    assert "sesame" not in result.output
