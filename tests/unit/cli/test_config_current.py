"""`config current` asks a running scheduler, over TLS, and says what went wrong if it can't."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.config_status import ConfigStatus
from k8s_scheduler.app.configuration import interpret
from k8s_scheduler.app.offers import Offer, Refusal
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.cli.main import main
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
    refused = Refusal("bad", "f", 0.0, ("line one", "line two"))
    found = interpret(ConfigurationFlags(), Offer("f.yaml", TEXT))
    return ConfigStatus(found, "abc", metrics=Metrics().config, refused=refused)


async def ask(*arguments, page=None):
    """Run the command beside a server on a port of its own."""
    endpoints = Endpoints(registry=Metrics().registry, configuration=page or status().page)
    certificate = SelfSigned(bind_address="127.0.0.1")
    everybody = HealthOnly(OpenPaths(("/*",)))
    server = await serve(
        endpoints, certificate, bind_address="127.0.0.1", port=None, gate=everybody
    )
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
    ],
)
def test_a_wrong_address_is_named(server, message):
    result = CliRunner().invoke(main, ["config", "current", f"--server={server}"])
    assert result.exit_code == 1
    assert message in result.output
    assert server in result.output


def test_a_token_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "token"
    command = ["config", "current", "--server=https://127.0.0.1:1", f"--token-file={path}"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert f"{path}: cannot be read as a token" in result.output
