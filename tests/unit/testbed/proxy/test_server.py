"""The proxy before a server that counts what it is asked, over TLS on both sides."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from testbed.layout import Layout
from testbed.pki import write_pki
from testbed.proxy.certificates import new_identity
from testbed.proxy.faults import Fault, RequestClass, Rule
from testbed.proxy.server import FaultProxy

BINDING = "/api/v1/namespaces/a/pods/p/binding"
WATCH = "/api/v1/pods?watch=true"
LATER = "/api/v1/pods?watch=true&nothing=yet"
LIST = "/api/v1/pods"
POD = "/api/v1/namespaces/a/pods/p"
LOST = (OSError, http.client.HTTPException)
LINES = [json.dumps({"type": "ADDED", "object": {"n": n}}).encode() + b"\n" for n in range(6)]


class Upstream(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, layout):
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(layout.pki / "apiserver.crt", layout.pki / "apiserver.key")
        context.load_verify_locations(layout.pki / "front-proxy-ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.written = 0
        self.headers = []
        self.something_happens = threading.Event()

    def handle_error(self, request, client_address):
        """Clients that go away in the middle are what this is about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.written += 1
        self._whole(201, b'{"kind":"Status","status":"Success"}')

    def do_GET(self):
        self.server.headers.append(dict(self.headers))
        if self.path == WATCH:
            self._in_chunks(*LINES)
        elif self.path == LATER:
            self._in_chunks(*LINES, after=self.server.something_happens)
        elif self.path == LIST:
            self._in_chunks(b'{"kind":"PodList","items":[]}')
        else:
            self._whole(200, b'{"kind":"Pod","metadata":{"name":"p"}}')

    def _in_chunks(self, *chunks, after=None):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if after is not None:
            after.wait(10)
        for chunk in (*chunks, b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def _whole(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Bed:
    """What a proxy asks of a bed."""

    def __init__(self, layout, url):
        self.state_dir = layout.root
        self._url = url
        self._tokens = 0

    def url(self, _component):
        return self._url

    def token_for_service_account(self, _namespace, _name, *, lifetime_seconds):
        self._tokens += 1
        return f"token-{self._tokens}"


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    layout = Layout(tmp_path_factory.mktemp("bed"))
    layout.make_folders()
    write_pki(layout.pki)
    return layout


@pytest.fixture
def upstream(layout):
    server = Upstream(layout)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def proxy(layout, upstream):
    bed = Bed(layout, f"https://127.0.0.1:{upstream.server_port}")
    with FaultProxy(bed, seed=1) as standing:
        yield standing


def trusting(ca):
    return ssl.create_default_context(cafile=ca)


@pytest.fixture
def client(proxy, layout):
    connection = http.client.HTTPSConnection(
        "127.0.0.1", proxy.port, timeout=10, context=trusting(layout.ca)
    )
    yield connection
    connection.close()


def ask(client, method="GET", target=POD, **headers):
    body = b"{}" if method == "POST" else None
    client.request(method, target, body=body, headers=headers)
    answer = client.getresponse()
    return answer.status, answer.read(), answer


def strike(proxy, fault, **fields):
    proxy.set_rules([Rule(fault=fault, limit=1, **({"seconds": 0.01} | fields))])


def test_what_is_not_spoilt_passes_unchanged_on_one_connection(client, proxy, upstream):
    for _ in range(3):
        assert ask(client)[:2] == (200, b'{"kind":"Pod","metadata":{"name":"p"}}')
        assert ask(client, "POST", BINDING)[0] == 201
        assert ask(client, "GET", WATCH)[1] == b"".join(LINES)
    assert upstream.written == 3
    assert [entry.upstream_status for entry in proxy.journal.bindings()] == [201] * 3
    assert proxy.journal.faults() == []


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.CONFLICT, 409),
        (Fault.THROTTLED, 429),
        (Fault.INTERNAL, 500),
        (Fault.UNAVAILABLE, 503),
        (Fault.EXPIRED, 401),
    ],
)
def test_a_refused_write_is_not_carried_out(client, proxy, upstream, fault, status):
    strike(proxy, fault)
    code, body, answer = ask(client, "POST", BINDING)
    assert (code, json.loads(body)["code"]) == (status, status)
    assert answer.headers["Retry-After"] == ("1" if fault is Fault.THROTTLED else None)
    assert upstream.written == 0
    assert ask(client, "POST", BINDING)[0] == 201


def test_504_comes_after_the_write(client, proxy, upstream):
    strike(proxy, Fault.TIMEOUT_AFTER)
    assert ask(client, "POST", BINDING)[0] == 504
    assert upstream.written == 1
    [entry] = proxy.journal.faults()
    assert (entry.fault, entry.kind, entry.upstream_status) == (
        Fault.TIMEOUT_AFTER,
        RequestClass.BINDING,
        201,
    )


@pytest.mark.parametrize(
    ("fault", "written"),
    [
        (Fault.RESET, 0),
        (Fault.SILENCE, 0),
        (Fault.RESET_AFTER, 1),
        (Fault.SILENCE_AFTER, 1),
    ],
)
def test_writes_without_an_answer(client, proxy, upstream, fault, written):
    strike(proxy, fault)
    with pytest.raises(LOST):
        ask(client, "POST", BINDING)
    assert upstream.written == written
    assert proxy.journal.counts() == {str(fault): 1}


@pytest.mark.parametrize("fault", [Fault.TRUNCATED, Fault.GARBAGE])
@pytest.mark.parametrize("target", [POD, WATCH], ids=["an object", "a stream"])
def test_spoilt_json_comes_in_a_proper_answer(client, proxy, fault, target):
    strike(proxy, fault)
    status, body, _ = ask(client, "GET", target)
    assert status == 200
    spoilt = 0
    for line in body.split(b"\n") if target is WATCH else [body]:
        try:
            json.loads(line or b"{}")
        except ValueError:
            spoilt += 1
    assert spoilt == 1
    assert ask(client)[0] == 200


def test_a_stream_is_cut_in_the_middle_of_a_line(client, proxy):
    strike(proxy, Fault.CUT)
    client.request("GET", WATCH)
    answer = client.getresponse()
    with pytest.raises(LOST):
        answer.read()
    [entry] = proxy.journal.faults()
    assert (entry.fault, entry.kind) == (Fault.CUT, RequestClass.WATCH)


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.SLOW, Fault.GARBAGE])
def test_a_stream_on_which_nothing_came_is_spared_when_faults_are_over(
    client, proxy, upstream, fault
):
    """Its first event may come long after, in what is taken for quiet times."""
    strike(proxy, fault)
    client.request("GET", LATER)
    answer = client.getresponse()
    proxy.set_rules([])
    upstream.something_happens.set()
    assert answer.read() == b"".join(LINES)
    assert proxy.journal.counts() == {}


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.SLOW])
@pytest.mark.parametrize("target", [LIST, POD], ids=["in one chunk", "in one piece"])
def test_answers_that_are_no_streams_come_to_harm_too(client, proxy, fault, target):
    """Luck says at which event of a stream; an answer of one piece has no second one."""
    proxy.set_rules([Rule(fault=fault, seconds=0.01)])
    for _ in range(8):
        with contextlib.suppress(*LOST):
            ask(client, "GET", target)
        client.close()
    assert proxy.journal.counts() == {str(fault): 8}


@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.LATENCY])
def test_late_answers_are_whole(client, proxy, fault):
    strike(proxy, fault)
    assert ask(client, "GET", WATCH)[1] == b"".join(LINES)
    assert proxy.journal.counts() == {str(fault): 1}


def test_a_half_open_connection_says_nothing(client, proxy):
    strike(proxy, Fault.HALF_OPEN, classes={RequestClass.CONNECTION})
    with pytest.raises(LOST):
        ask(client)
    assert proxy.journal.counts() == {"half-open": 1}
    client.close()
    assert ask(client)[0] == 200


def test_a_token_that_expired_is_refused_until_it_is_renewed(client, proxy, tmp_path):
    proxy.log_in(tmp_path)
    first = (tmp_path / "token").read_text()
    assert ask(client, Authorization=f"Bearer {first}")[0] == 200
    proxy.expire(tmp_path)
    assert ask(client, Authorization=f"Bearer {first}")[0] == 401
    proxy.log_in(tmp_path)
    second = (tmp_path / "token").read_text()
    assert ask(client, Authorization=f"Bearer {second}")[0] == 200


def test_a_rotated_certificate_ends_connections_and_needs_the_new_authority(
    client, proxy, tmp_path
):
    assert ask(client)[0] == 200
    identity = new_identity(tmp_path / "new")
    proxy.rotate(identity)
    with pytest.raises(LOST):
        ask(client)
    client.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(client)
    proxy.log_in(tmp_path / "login")
    assert (tmp_path / "login" / "ca.crt").read_text() == identity.ca_pem
    fresh = http.client.HTTPSConnection(
        "127.0.0.1", proxy.port, timeout=10, context=trusting(identity.ca)
    )
    assert ask(fresh)[0] == 200
    fresh.close()


def test_a_client_certificate_is_passed_on_as_the_front_proxy_does(proxy, layout, upstream):
    context = trusting(layout.ca)
    context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=10, context=context)
    # What the client says of itself is not passed on.
    ask(connection, **{"X-Remote-User": "somebody-else"})
    connection.close()
    [headers] = upstream.headers
    assert headers["X-Remote-User"] == "admin"
    assert headers["X-Remote-Group"] == "system:masters"


def test_nobody_upstream_resets_the_client(client, proxy, upstream):
    upstream.shutdown()
    upstream.server_close()
    with pytest.raises(LOST):
        ask(client)


def test_a_connection_dropped_before_it_is_met_is_closed(proxy):
    """Its task is cancelled before it begins, so it can't close what it was given."""
    ours, theirs = socket.socketpair()

    def take_and_drop():
        proxy._take(theirs)
        proxy._drop()

    with ours:
        ours.settimeout(10)
        proxy._do(take_and_drop)
        assert ours.recv(1) == b""
