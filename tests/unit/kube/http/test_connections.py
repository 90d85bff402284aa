"""Connections of our own, against a server that says exactly what it is told to."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from k8s_scheduler.kube.http.connections import HttpConnection, LostError, Peer, WirePool
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.request_headers import RequestHeaders

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


class Script:
    """A server that lets a function talk, and counts connections."""

    def __init__(self) -> None:
        self.talk: Talk = answering(OK)
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self.open -= 1
            writer.close()


def answering(*parts: bytes, pause: float = 0.0) -> Talk:
    """Answer every request with these bytes, one part after the other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)

    return talk


def once(*parts: bytes) -> Talk:
    """Answer one request and hang up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"".join(parts))
        await writer.drain()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    made = Script()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


@pytest.fixture
async def pool(script: Script) -> AsyncIterator[WirePool]:
    made = pool_to(script)
    yield made
    await made.close()


def pool_to(script: Script, *, limit: int = 4, idle_seconds: float = 60.0) -> WirePool:
    return WirePool(Peer("127.0.0.1", script.port, None), limit=limit, idle_seconds=idle_seconds)


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def ask(pool: WirePool) -> Response:
    return await pool.exchange(REQUEST, lambda: None, deadline=soon())


class TestAnswers:
    """An answer is read to its end, however it comes."""

    @pytest.mark.parametrize(
        "parts",
        [
            (OK,),
            tuple(bytes([one]) for one in OK),
            (
                b"HTTP/1.1 201 C\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
                b"1\r\n}\r\n0\r\n\r\n",
            ),
            (b"HTTP/1.1 100 Continue\r\n\r\n", OK),
        ],
        ids=["whole", "byte by byte", "chunked", "after a hundred"],
    )
    async def test_it_is_whole(self, script: Script, pool: WirePool, parts: tuple[bytes]) -> None:
        script.talk = answering(*parts)
        for _ in range(2):
            found = await ask(pool)
            assert (found.status, found.body) == (201, b"{}")
        assert script.connections == 1

    async def test_retry_after_is_kept(self, script: Script, pool: WirePool) -> None:
        script.talk = answering(b"HTTP/1.1 429 No\r\nretry-AFTER: 7\r\nContent-Length: 0\r\n\r\n")
        found = await ask(pool)
        assert (found.status, found.headers) == (429, {"Retry-After": "7"})
        script.talk = answering(OK)
        assert (await ask(pool_to(script))).headers == {}

    @pytest.mark.parametrize("status", [202, 302, 404, 409, 429, 500, 503])
    @pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "byte by byte"])
    @pytest.mark.parametrize(
        ("head", "expected"),
        [
            (b"A: b\r\nRETRY-after:   12\r\nC: d\r\n", {"Retry-After": "12"}),
            (b"Retry-After:\r\n", {"Retry-After": ""}),
            (b"Retry-After: s\xf3on\r\n", {"Retry-After": "s\xf3on"}),
            (b"Retry-After: 1\r\nretry-after: 2\r\n", {"Retry-After": "2"}),
            (b"X-Retry-After: 1\r\nA: Retry-After: 3\r\n", {}),
        ],
        ids=["blanks", "empty", "no number", "twice", "others"],
    )
    async def test_retry_after_is_found_however_it_comes(
        self,
        script: Script,
        pool: WirePool,
        *,
        status: int,
        in_pieces: bool,
        head: bytes,
        expected: dict[str, str],
    ) -> None:
        body = b"Retry-After: 9\r\n\r\n"
        whole = b"HTTP/1.1 %d x\r\n%sContent-Length: %d\r\n\r\n%s" % (
            status,
            head,
            len(body),
            body,
        )
        script.talk = answering(*([bytes([one]) for one in whole] if in_pieces else [whole]))
        for _ in range(2):
            found = await ask(pool)
            assert (found.status, found.body, found.headers) == (status, body, expected)
        assert script.connections == 1

    async def test_what_a_hundred_says_is_not_the_answers(
        self, script: Script, pool: WirePool
    ) -> None:
        script.talk = answering(
            b"HTTP/1.1 103 Early\r\nRetry-After: 1\r\n\r\n"
            b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n"
        )
        assert (await ask(pool)).headers == {}

    async def test_what_comes_after_the_head_is_not_of_it(
        self, script: Script, pool: WirePool
    ) -> None:
        script.talk = once(
            b"HTTP/1.1 429 No\r\nRetry-After: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\n{}\r\n0\r\nRetry-After: 5\r\n\r\nnoise"
        )
        found = await ask(pool)
        assert (found.body, found.headers) == (b"{}", {"Retry-After": "3"})


class TestLost:
    """What does not end as HTTP wants it is lost, and nothing else is made of it."""

    @pytest.mark.parametrize(
        "talk",
        [
            once(),
            once(OK[:-1]),
            once(b"HTTP/1.1 201 Created\r\n"),
            answering(b"what?\r\n\r\n"),
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            answering(b"HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"),
            once(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        ],
        ids=["nothing", "short", "no end of headers", "noise", "no number", "upgrade", "no length"],
    )
    async def test_it_is_lost(self, script: Script, pool: WirePool, talk: Talk) -> None:
        script.talk = talk
        with pytest.raises(LostError):
            await ask(pool)
        script.talk = answering(OK)
        assert (await ask(pool)).status == 201
        assert script.connections == 2

    async def test_whoever_sends_learns_first_that_sending_begins(self, script: Script) -> None:
        script.talk = once()
        pool, begun = pool_to(script), []
        with pytest.raises(LostError):
            await pool.exchange(REQUEST, lambda: begun.append(1), deadline=soon())
        assert begun == [1]
        nobody = WirePool(Peer("127.0.0.1", 1, None), limit=1, idle_seconds=60)
        with pytest.raises(ConnectionError, match=r"Cannot connect to host 127\.0\.0\.1:1"):
            await nobody.exchange(REQUEST, lambda: begun.append(2), deadline=soon())
        assert begun == [1]


class TestReuse:
    """A connection is used again only if nothing can have gone wrong on it."""

    @pytest.mark.parametrize(
        "talk",
        [
            answering(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")),
            answering(OK + OK),
        ],
        ids=["the server closes", "an answer too many"],
    )
    async def test_another_one_is_taken(self, script: Script, pool: WirePool, talk: Talk) -> None:
        script.talk = talk
        assert [(await ask(pool)).status for _ in range(3)] == [201] * 3
        assert script.connections == 3

    async def test_bytes_that_nobody_asked_for_end_it(self, script: Script, pool: WirePool) -> None:
        script.talk = answering(OK, b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n", pause=0.05)
        assert (await ask(pool)).status == 201
        await asyncio.sleep(0.2)
        assert (await ask(pool)).status == 201
        assert script.connections == 2

    async def test_one_that_was_idle_for_too_long_is_not_trusted(self, script: Script) -> None:
        pool = pool_to(script, idle_seconds=0.0)
        assert [(await ask(pool)).status for _ in range(2)] == [201] * 2
        assert script.connections == 2

    async def test_one_that_the_server_closed_meanwhile_is_not_used(self, script: Script) -> None:
        pool = pool_to(script)
        script.talk = once(OK)
        assert (await ask(pool)).status == 201
        await asyncio.sleep(0.05)
        assert (await ask(pool)).status == 201
        assert script.connections == 2


class TestEnded:
    """Nothing is left of a connection that has ended, though no collector looks for it."""

    @pytest.mark.parametrize("talk", [once(OK), once(OK[:-1]), answering(b"what?\r\n\r\n")])
    async def test_it_goes_by_itself(self, script: Script, talk: Talk) -> None:
        pool = pool_to(script, idle_seconds=0.0)
        script.talk = talk
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with suppress(LostError):
                    await ask(pool)
            await pool.close()
            await asyncio.sleep(0.05)
            assert [each for each in gc.get_objects() if isinstance(each, HttpConnection)] == []
        finally:
            gc.enable()


class TestDeadline:
    """Nobody waits for longer than he said, and a late answer is nobody's."""

    async def test_an_answer_that_does_not_come(self, script: Script, pool: WirePool) -> None:
        script.talk = silent
        begun: list[int] = []
        with pytest.raises(TimeoutError):
            await pool.exchange(REQUEST, lambda: begun.append(1), deadline=soon(0.05))
        assert begun == [1]
        script.talk = answering(OK)
        assert (await ask(pool)).status == 201
        assert script.connections == 2

    async def test_an_answer_that_does_not_come_on_a_connection_that_worked(
        self, script: Script, pool: WirePool
    ) -> None:
        async def first_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            await reader.read()

        script.talk = first_only
        assert (await ask(pool)).status == 201
        with pytest.raises(TimeoutError):
            await pool.exchange(REQUEST, lambda: None, deadline=soon(0.05))
        assert (await ask(pool)).status == 201
        assert script.connections == 2

    async def test_each_has_its_own(self, script: Script, pool: WirePool) -> None:
        script.talk = silent
        ended: list[float] = []

        async def give_up(seconds: float) -> None:
            with pytest.raises(TimeoutError):
                await pool.exchange(REQUEST, lambda: None, deadline=soon(seconds))
            ended.append(seconds)

        started = soon(0.0)
        await asyncio.gather(*(give_up(seconds) for seconds in (0.3, 0.1, 0.2, 0.1)))
        assert ended == [0.1, 0.1, 0.2, 0.3]
        assert 0.29 < soon(0.0) - started < 1.0

    async def test_one_that_passes_after_the_answer_ends_nothing(
        self, script: Script, pool: WirePool
    ) -> None:
        async def slower_each_time(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            for pause in (0.0, 0.2):
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(pause)
                writer.write(OK)
            await reader.read()

        script.talk = slower_each_time
        assert (await pool.exchange(REQUEST, lambda: None, deadline=soon(0.1))).status == 201
        assert (await ask(pool)).status == 201
        with pytest.raises(TimeoutError):
            await pool.exchange(REQUEST, lambda: None, deadline=soon(0.05))
        assert script.connections == 1

    async def test_a_connection_that_does_not_come_free(self, script: Script) -> None:
        script.talk = silent
        pool = pool_to(script, limit=1)
        under_way = asyncio.create_task(ask(pool))
        await asyncio.sleep(0.05)
        begun: list[int] = []
        with pytest.raises(TimeoutError):
            await pool.exchange(REQUEST, lambda: begun.append(1), deadline=soon(0.05))
        assert begun == []
        under_way.cancel()
        await pool.close()


class TestLimit:
    """There are never more connections than allowed, and nobody waits in vain."""

    async def test_requests_wait_for_their_turn(self, script: Script) -> None:
        script.talk = answering(OK, pause=0.01)
        pool = pool_to(script, limit=2)
        answers = await asyncio.gather(*(ask(pool) for _ in range(20)))
        assert [answer.status for answer in answers] == [201] * 20
        assert (script.connections, script.most_open) == (2, 2)

    async def test_one_that_is_cancelled_makes_room(self, script: Script) -> None:
        script.talk = silent
        pool = pool_to(script, limit=1)
        first = asyncio.create_task(ask(pool))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(ask(pool))
        later = asyncio.create_task(ask(pool))
        await asyncio.sleep(0.01)
        script.talk = answering(OK)
        waiting.cancel()
        first.cancel()
        assert (await later).status == 201
        assert script.connections == 2

    async def test_one_that_can_not_connect_makes_room(self, script: Script) -> None:
        pool = pool_to(script, limit=1)
        port, pool._peer = script.port, Peer("127.0.0.1", 1, None)
        failing = asyncio.create_task(ask(pool))
        waiting = asyncio.create_task(ask(pool))
        with pytest.raises(ConnectionError):
            await failing
        pool._peer = Peer("127.0.0.1", port, None)
        with pytest.raises(ConnectionError):
            await waiting
        assert (await ask(pool)).status == 201


async def test_what_is_under_way_when_it_is_closed_is_lost(script: Script) -> None:
    script.talk = silent
    pool = pool_to(script, limit=1)
    under_way = asyncio.create_task(ask(pool))
    waiting = asyncio.create_task(ask(pool))
    await asyncio.sleep(0.05)
    await pool.close()
    with pytest.raises(LostError):
        await under_way
    with pytest.raises(ConnectionError, match="closed"):
        await waiting
    with pytest.raises(ConnectionError, match="closed"):
        await ask(pool)


@pytest.mark.parametrize("token", ["a\r\nX: y", "a\nb", "a\0"])
def test_a_header_is_one_line(token: str) -> None:
    with pytest.raises(ValueError, match="Authorization is more than one line"):
        RequestHeaders().encode({"Authorization": token}, content_type="")
