"""No secret in anything the process writes, at the highest verbosity and whatever goes wrong."""

import contextlib
import signal
import socket
import ssl

from testbed.daemon import Daemon
from testbed.kubeconfig import read_token_kubeconfig
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, running, wait_bound

PLANTED = "planted-0123456789abcdef"
PLANTED_JWT = "eyJhbGciOiJSUzI1NiJ9.eyJwbGFudGVkIjoieWVzIn0.cGxhbnRlZC1zaWduYXR1cmU"


def send_raw(port: int, *lines: bytes) -> bytes:
    """Send what no client library would, and return the answer."""
    context = ssl._create_unverified_context()
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain) as wire,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        wire.sendall(b"\r\n".join([*lines, b"", b""]))
        return wire.recv(65536)
    return b""


def pester(daemon: Daemon) -> None:
    """Come with tokens of all kinds, well formed and not."""
    for token in (PLANTED, PLANTED_JWT, f"{PLANTED}\u00fc"):
        header = f"Authorization: Bearer {token}".encode("latin-1")
        send_raw(daemon.port, b"GET /metrics HTTP/1.1", b"Host: x", b"Connection: close", header)
    secret = PLANTED.encode()
    for broken in (
        b"Authorization: Bearer " + secret + b"\x00",
        b"Authorization : Bearer " + secret,
        b"Author\x01ization: Bearer " + secret,
        b"Authorization: Bearer " + secret * 1000,
    ):
        send_raw(daemon.port, b"GET /metrics HTTP/1.1", b"Host: x", broken)
    send_raw(daemon.port, b"GET /metrics?token=" + secret + b" HTTP/9.9", b"Host: x")


def written_by(daemon: Daemon, tape) -> str:
    files = [daemon.log, *tape.parent.glob(f"{tape.name}*")]
    return "\n".join(file.read_bytes().decode(errors="replace") for file in files)


def test_nothing_is_shown_of_good_credentials(sandbox, tmp_path):
    sandbox.create_nodes([make_node("n1")])
    tape = tmp_path / "tape"
    flags = ("--leader-elect=false", "-v=10", "--logging-format=json", f"--record={tape}")
    with running(sandbox.bed, flags=flags, guarded=True) as daemon:
        sandbox.create_pods([make_pod("p", scheduler_name=SCHEDULER)])
        wait_bound(sandbox, 1)
        admin = read_token_kubeconfig(sandbox.bed.kubeconfig).token
        assert daemon.get("/metrics", token=admin)[0] == 200
        pester(daemon)
        own = read_token_kubeconfig(daemon.folder / "kubeconfig").token
        page = daemon.get("/metrics", token=admin)[1]
    written = written_by(daemon, tape)
    assert "Attempting to bind pod to node" in written
    for secret in (own, admin, PLANTED, PLANTED_JWT):
        assert secret not in written
        assert secret not in page
        assert secret.rpartition(".")[2] not in written
    assert "PRIVATE KEY" not in written


def test_nothing_is_shown_of_credentials_that_are_refused(sandbox, tmp_path):
    tape = tmp_path / "tape"
    kubeconfig = sandbox.bed.kubeconfig_for_token(tmp_path / "kubeconfig", PLANTED)
    daemon = Daemon(
        sandbox.bed,
        name="refused",
        flags=("--leader-elect=true", "-v=10", f"--record={tape}"),
        kubeconfig=kubeconfig,
        guarded=True,
    ).start(wait=False)
    eventually(
        lambda: "does not accept the credentials" in daemon.log.read_text(), 30, "it is refused"
    )
    pester(daemon)
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    written = written_by(daemon, tape)
    assert "401" in written
    assert PLANTED not in written
    assert PLANTED_JWT not in written
