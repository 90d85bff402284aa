"""The transport against a real HTTPS server on loopback."""

import asyncio
import socket
import ssl

import pytest
from aiohttp import web

from k8s_scheduler.kube.auth.credentials import RotatingCredentials
from k8s_scheduler.kube.auth.login import Login
from k8s_scheduler.kube.auth.tls import TlsMaterial
from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.request_headers import user_agent
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.certificates import Authority, Issued
from tests.fakes.clock import FakeClock
from tests.fakes.https import Server, Source, common_name, hang, in_turn, reset, says

BINDING = "/api/v1/namespaces/a/pods/p/binding"


def count(metrics: Metrics, code: str, method: str, server: Server) -> float:
    labels = {"code": code, "method": method, "host": server.address}
    return metrics.registry.get_sample_value("rest_client_requests_total", labels) or 0.0


class TestAnswers:
    """An answer is returned whatever its status."""

    async def test_a_binding_that_is_created(
        self, transport: ApiTransport, server: Server, metrics: Metrics
    ) -> None:
        server.handler = says(201, '{"status":"Success"}')
        answer = await transport.request("POST", BINDING, body=b'{"target":{}}')
        assert answer.status == 201
        assert answer.body == b'{"status":"Success"}'
        (request,) = server.requests
        assert (request.method, request.path) == ("POST", BINDING)
        assert server.bodies == [b'{"target":{}}']
        assert dict(request.headers) == {
            "Host": server.address,
            "Authorization": "Bearer one",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": user_agent(),
            "Content-Type": "application/json",
            "Content-Length": "13",
        }
        assert count(metrics, "201", "POST", server) == 1

    async def test_queries_arrive_as_they_were_meant(
        self, transport: ApiTransport, server: Server
    ) -> None:
        server.handler = says(200)
        query = {"fieldSelector": "status.phase!=Failed,a=b", "continue": "a+/=&é"}
        await transport.request("GET", "/api/v1/pods", query=query)
        assert dict(server.requests[0].query) == query
        assert "Content-Type" not in server.requests[0].headers

    async def test_the_content_type_is_the_callers(
        self, transport: ApiTransport, server: Server
    ) -> None:
        server.handler = says(200)
        for kind in ("application/merge-patch+json", "application/json"):
            await transport.request("PATCH", "/api/v1/nodes/n", body=b"{}", content_type=kind)
            assert server.requests[-1].headers["Content-Type"] == kind

    async def test_connections_are_kept(self, transport: ApiTransport, server: Server) -> None:
        server.handler = says(200)
        for _ in range(3):
            await transport.request("GET", "/api/v1/pods")
        assert len({id(request.transport) for request in server.requests}) == 1

    async def test_retry_after_is_found_in_any_case(
        self, transport: ApiTransport, server: Server
    ) -> None:
        server.handler = says(429, '{"reason":"TooManyRequests"}', **{"retry-after": "7"})
        answer = await transport.request("POST", BINDING, body=b"{}")
        assert answer.error().retry_after_seconds == 7

    async def test_redirects_are_not_followed(
        self, transport: ApiTransport, server: Server
    ) -> None:
        server.handler = says(302, Location="https://127.0.0.1:1/")
        assert (await transport.request("GET", "/api/v1/pods")).status == 302

    async def test_a_server_may_live_under_a_path(
        self, server: Server, source: Source, metrics: Metrics
    ) -> None:
        source.login = Login(f"{source.login.server}/k8s/clusters/c", source.login.tls)
        credentials = await RotatingCredentials.open(source)
        server.handler = says(200)
        async with ApiTransport(credentials, metrics=metrics.kube) as transport:
            await transport.request("GET", "/api/v1/pods", query={"limit": "1"})
        assert server.requests[0].path_qs == "/k8s/clusters/c/api/v1/pods?limit=1"


class TestNoAnswer:
    """NotSent and OutcomeUnknown are told apart."""

    async def test_a_refused_connection_is_not_sent(
        self, authority: Authority, metrics: Metrics
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        source = Source(Login(f"https://127.0.0.1:{port}", TlsMaterial(ca=authority.pem)))
        credentials = await RotatingCredentials.open(source)
        async with ApiTransport(credentials, metrics=metrics.kube) as transport:
            with pytest.raises(NotSent, match="Cannot connect to host"):
                await transport.request("POST", BINDING, body=b"{}")
            with pytest.raises(NotSent):
                async with transport.stream("/api/v1/pods"):
                    raise AssertionError

    async def test_a_server_of_another_authority_is_not_sent_anything(
        self, server: Server, metrics: Metrics
    ) -> None:
        source = Source(Login(f"https://{server.address}", TlsMaterial(ca=Authority("x").pem)))
        credentials = await RotatingCredentials.open(source)
        async with ApiTransport(credentials, metrics=metrics.kube) as transport:
            with pytest.raises(NotSent, match="certificate is not trusted"):
                await transport.request("POST", BINDING, body=b"{}")
        assert server.requests == []
        assert count(metrics, "<error>", "POST", server) == 1

    async def test_the_name_in_the_certificate_can_be_another(
        self, server: Server, authority: Authority, metrics: Metrics
    ) -> None:
        server.handler = says(200)
        address = server.address.replace("127.0.0.1", "localhost")
        tls = TlsMaterial(ca=authority.pem)
        plain = await RotatingCredentials.open(Source(Login(f"https://{address}", tls)))
        async with ApiTransport(plain, metrics=metrics.kube) as transport:
            with pytest.raises(NotSent, match="certificate is not trusted"):
                await transport.request("GET", "/")
        login = Login(f"https://{address}", tls, tls_server_name="kubernetes")
        named = await RotatingCredentials.open(Source(login))
        async with ApiTransport(named, metrics=metrics.kube) as transport:
            assert (await transport.request("GET", "/")).status == 200

    async def test_no_connection_in_time_is_not_sent(
        self, transport: ApiTransport, server: Server
    ) -> None:
        with pytest.raises(NotSent, match="in time"):
            await transport.request("POST", BINDING, body=b"{}", timeout_seconds=0)
        assert server.requests == []

    async def test_no_answer_in_time_is_unknown(
        self, transport: ApiTransport, server: Server
    ) -> None:
        server.handler = says(200)
        await transport.request("GET", "/")
        server.handler = hang
        for method in ("POST", "GET"):
            before = len(server.requests)
            with pytest.raises(OutcomeUnknown, match="in time"):
                await transport.request(method, BINDING, body=b"{}", timeout_seconds=0.2)
            assert len(server.requests) == before + 1

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    async def test_a_reset_after_sending_is_unknown_and_nothing_is_sent_twice(
        self, transport: ApiTransport, server: Server, method: str
    ) -> None:
        server.handler = in_turn(says(200), reset)
        await transport.request(method, BINDING, body=b"{}")
        with pytest.raises(OutcomeUnknown):
            await transport.request(method, BINDING, body=b"{}")
        assert len(server.requests) == 2

    async def test_a_reset_in_the_middle_of_the_answer_is_unknown(
        self, transport: ApiTransport, server: Server
    ) -> None:
        async def half(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse(headers={"Content-Length": "100"})
            await answer.prepare(request)
            await answer.write(b"half")
            return await reset(request)

        server.handler = half
        with pytest.raises(OutcomeUnknown):
            await transport.request("POST", BINDING, body=b"{}")

    async def test_a_get_is_sent_once_more(self, transport: ApiTransport, server: Server) -> None:
        server.handler = in_turn(reset, says(200, "second"))
        assert (await transport.request("GET", "/api/v1/pods")).body == b"second"
        server.handler = reset
        with pytest.raises(OutcomeUnknown):
            await transport.request("GET", "/api/v1/pods")
        assert len(server.requests) == 4

    async def test_nothing_is_sent_once_it_is_closed(
        self, transport: ApiTransport, server: Server
    ) -> None:
        await transport.close()
        with pytest.raises(NotSent, match="closed"):
            await transport.request("GET", "/")


class TestLogin:
    """A 401 is met with fresh credentials, once; a 403 is an answer."""

    async def test_a_new_token_is_read_and_the_request_sent_again(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        async def only_two(request: web.Request) -> web.Response:
            good = request.headers["Authorization"] == "Bearer two"
            return web.Response(status=201 if good else 401)

        def rotate() -> None:
            source.login = Login(source.login.server, source.login.tls, "Bearer two")

        server.handler = only_two
        source.on_renew = rotate
        assert (await transport.request("POST", BINDING, body=b"{}")).status == 201
        assert source.renewals == 1
        assert server.bodies == [b"{}", b"{}"]

    async def test_many_requests_at_once_cause_one_reading(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        async def only_two(request: web.Request) -> web.Response:
            good = request.headers["Authorization"] == "Bearer two"
            return web.Response(status=201 if good else 401)

        def rotate() -> None:
            source.login = Login(source.login.server, source.login.tls, "Bearer two")

        server.handler = only_two
        source.on_renew = rotate
        calls = (transport.request("POST", BINDING, body=b"{}") for _ in range(10))
        answers = await asyncio.gather(*calls)
        assert {answer.status for answer in answers} == {201}
        assert source.renewals == 1

    async def test_the_same_token_is_not_tried_again(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        server.handler = says(401)
        assert (await transport.request("POST", BINDING, body=b"{}")).status == 401
        assert source.renewals == 1
        assert len(server.requests) == 1

    async def test_a_second_401_is_the_answer(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        def rotate() -> None:
            source.login = Login(source.login.server, source.login.tls, "Bearer two")

        source.on_renew = rotate
        server.handler = says(401)
        assert (await transport.request("GET", "/")).status == 401
        assert len(server.requests) == 2

    async def test_a_403_is_no_reason_to_log_in(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        server.handler = says(403)
        assert (await transport.request("GET", "/")).status == 403
        assert source.renewals == 0
        assert len(server.requests) == 1

    async def test_a_watch_logs_in_again_too(
        self, transport: ApiTransport, server: Server, source: Source
    ) -> None:
        def rotate() -> None:
            source.login = Login(source.login.server, source.login.tls, "Bearer two")

        source.on_renew = rotate
        server.handler = in_turn(says(401), says(200, "events"))
        async with transport.stream("/api/v1/pods", query={"watch": "1"}) as stream:
            assert stream.status == 200
            assert await stream.read() == b"events"


class TestRotation:
    """Another certificate means other connections; what is under way comes to its end."""

    async def test_a_client_certificate_is_rotated_under_an_open_watch(
        self,
        server: Server,
        authority: Authority,
        source: Source,
        metrics: Metrics,
    ) -> None:
        def present(issued: Issued) -> None:
            tls = TlsMaterial(ca=authority.pem, certificate=issued.certificate, key=issued.key)
            source.login = Login(source.login.server, tls)

        go_on = asyncio.Event()

        async def watch(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"first\n")
            await go_on.wait()
            await answer.write(b"last\n")
            return answer

        present(authority.issue("old"))
        clock = FakeClock()
        credentials = await RotatingCredentials.open(source, clock=clock)
        async with ApiTransport(credentials, metrics=metrics.kube) as transport:
            server.handler = watch
            async with transport.stream("/api/v1/pods") as stream:
                chunks = stream.chunks()
                assert await anext(chunks) == b"first\n"
                server.handler = common_name
                assert (await transport.request("GET", "/")).body == b"old"
                present(authority.issue("new"))
                clock.advance(60)
                await credentials.refresh()
                assert (await transport.request("GET", "/")).body == b"new"
                (old, new) = sorted(transport._sessions._pairs, key=lambda p: p.generation)
                assert old.retired
                go_on.set()
                assert await anext(chunks) == b"last\n"
                assert await anext(chunks, None) is None
            assert transport._sessions._pairs == {new}
            await asyncio.gather(*transport._sessions._closing)
            assert old.requests.is_closed
            assert old.watches.closed

    async def test_the_transport_keeps_its_credentials_fresh(
        self, server: Server, source: Source, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = asyncio.Event()
        credentials = await RotatingCredentials.open(source)

        async def refresh(*, rejected: bool = False) -> None:
            assert not rejected
            asked.set()

        monkeypatch.setattr(credentials, "refresh", refresh)
        monkeypatch.setattr("k8s_scheduler.kube.http.transport.CHECK_SECONDS", 0)
        async with ApiTransport(credentials, metrics=metrics.kube):
            await asked.wait()


class TestStreams:
    """Watches are read as they arrive."""

    async def test_chunks_come_as_they_are_sent_and_end_with_the_answer(
        self, transport: ApiTransport, server: Server, metrics: Metrics
    ) -> None:
        sent = [b"one\n", b"two\n"]

        async def watch(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            for chunk in sent:
                await answer.write(chunk)
            return answer

        server.handler = watch
        async with transport.stream("/api/v1/pods", query={"watch": "1"}) as stream:
            assert stream.status == 200
            assert b"".join([chunk async for chunk in stream.chunks()]) == b"one\ntwo\n"
        assert server.requests[0].query_string == "watch=1"
        assert count(metrics, "200", "GET", server) == 1

    async def test_an_error_is_read_whole(self, transport: ApiTransport, server: Server) -> None:
        server.handler = says(410, '{"reason":"Expired"}')
        async with transport.stream("/api/v1/pods") as stream:
            answer = Response(stream.status, await stream.read(), stream.headers)
        assert answer.error().reason == "Expired"

    async def test_a_watch_that_breaks_is_an_unknown_outcome(
        self, transport: ApiTransport, server: Server
    ) -> None:
        async def broken(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"one\n")
            return await reset(request)

        server.handler = broken
        async with transport.stream("/api/v1/pods") as stream:
            with pytest.raises(OutcomeUnknown):
                async for _ in stream.chunks():
                    pass

    async def test_watches_do_not_take_the_connections_of_requests(
        self, transport: ApiTransport, server: Server
    ) -> None:
        async def watch(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"one\n")
            return await hang(request)

        server.handler = watch
        async with transport.stream("/a") as one, transport.stream("/b") as two:
            assert await anext(one.chunks()) == b"one\n"
            assert await anext(two.chunks()) == b"one\n"
            server.handler = says(200)
            assert (await transport.request("GET", "/c")).status == 200
        connections = {id(request.transport) for request in server.requests}
        assert len(connections) == 3


class TestProxy:
    """`proxy-url` is honoured."""

    async def test_requests_go_through_the_proxy(
        self, server: Server, source: Source, metrics: Metrics
    ) -> None:
        seen: list[bytes] = []

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            seen.append(head.split(b"\r\n")[0])
            host, port = server.address.split(":")
            inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        source.login = Login(
            source.login.server, source.login.tls, proxy_url=f"http://127.0.0.1:{port}"
        )
        credentials = await RotatingCredentials.open(source)
        server.handler = says(200)
        async with proxy, ApiTransport(credentials, metrics=metrics.kube) as transport:
            with pytest.raises(NotSent, match="may not be sent any more"):
                await transport.request("POST", BINDING, body=b"{}", may_send=lambda: False)
            assert server.requests == []
            assert (await transport.request("GET", "/")).status == 200
        assert set(seen) == {f"CONNECT {server.address} HTTP/1.1".encode()}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def test_the_user_agent_is_worded_like_client_gos() -> None:
    assert user_agent("linux", "x86_64").endswith(" (linux/amd64) scheduler")
    assert user_agent("linux", "aarch64").startswith("k8s-scheduler/")


def test_contexts_are_those_of_a_careful_client(authority: Authority) -> None:
    context = TlsMaterial(ca=authority.pem).context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
