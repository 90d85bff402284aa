import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from testbed.client import Client
from testbed.errors import ApiError


class Server(ThreadingHTTPServer):
    """An HTTP server that answers from a list and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, object]] = []
        self.asked: list[tuple[str, str, dict[str, list[str]], object]] = []
        self.connections = 0
        self.hang_up = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        address = urlsplit(self.path)
        self.server.asked.append(
            (
                self.command,
                address.path,
                parse_qs(address.query),
                json.loads(body) if body else None,
            )
        )
        status, answer = self.server.answers.pop(0)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = self.server.hang_up

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


for _method in ("GET", "POST", "PATCH", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler._answer)


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def client(server):
    with Client(server.url, token="secret") as connected:
        yield connected


def test_requests_share_one_kept_alive_connection(server, client):
    server.answers = [(200, {"n": 1}), (201, {"n": 2})]
    assert client.get("/a") == {"n": 1}
    assert client.create("/b", {"x": 1}) == {"n": 2}
    assert server.connections == 1
    assert server.asked[1] == ("POST", "/b", {}, {"x": 1})


def test_list_reads_all_pages_with_its_selector(server, client):
    server.answers = [
        (200, {"items": [{"a": 1}], "metadata": {"continue": "next"}}),
        (200, {"items": [{"a": 2}], "metadata": {}}),
    ]
    assert client.list("/pods", labelSelector="app=web") == [{"a": 1}, {"a": 2}]
    assert [query.get("continue") for _, _, query, _ in server.asked] == [None, ["next"]]
    assert all(query["labelSelector"] == ["app=web"] for _, _, query, _ in server.asked)


def test_error_carries_the_servers_message(server, client):
    server.answers = [(404, {"message": 'pods "a" not found', "reason": "NotFound"})]
    with pytest.raises(ApiError, match='404 NotFound: pods "a" not found') as caught:
        client.get("/pods/a")
    assert (caught.value.status, caught.value.reason) == (404, "NotFound")


def test_error_that_is_no_status_object_is_shown_as_it_is(server, client):
    server.answers = [(503, b"etcd is away")]
    with pytest.raises(ApiError, match="503: etcd is away"):
        client.get("/readyz")


def test_nothing_is_retried(server, client):
    server.answers = [(500, {"message": "no"}), (200, {})]
    with pytest.raises(ApiError):
        client.get("/a")
    assert len(server.asked) == 1


def test_connection_that_the_server_closed_is_not_used_again(server, client):
    server.answers = [(200, {}), (200, {})]
    server.hang_up = True
    client.get("/a")
    (idle,) = client._idle
    idle.sock.recv(1)  # returns once the end of the connection has arrived
    client.get("/b")
    assert server.connections == 2


def test_delete_can_be_immediate(server, client):
    server.answers = [(200, {})]
    client.delete("/pods/a", grace_period_seconds=0)
    assert server.asked == [("DELETE", "/pods/a", {"gracePeriodSeconds": ["0"]}, None)]


def test_patch_is_a_merge_patch_unless_said_otherwise(server, client):
    server.answers = [(200, {})]
    client.patch("/nodes/a", {"spec": {"unschedulable": True}})
    assert server.asked[0][0] == "PATCH"


def test_no_answer_is_an_os_error(server):
    url = server.url
    with Client(url) as lonely:
        server.answers = []
        server.server_close()
        with pytest.raises(OSError, match=r"."):
            lonely.get("/a")


def test_address_without_a_port_is_refused():
    with pytest.raises(ValueError, match="names no host and port"):
        Client("localhost")
