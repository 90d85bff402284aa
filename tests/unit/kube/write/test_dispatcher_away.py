"""Writes that may not start any more, and a server that is away."""

import asyncio

from k8s_scheduler.kube.write.binding import BindFailure
from tests.fakes.clock import virtual_time
from tests.fakes.transport import status
from tests.unit.kube.write_fakes import Desk, bind, condition, running


class TestDeadline:
    """No write starts when it may not, however long ago it was asked for."""

    @virtual_time
    async def test_a_bind_that_waited_for_a_connection_is_not_sent_after_the_deadline(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.connecting_seconds = 3.0
        desk.dispatcher.submit_bind(bind())
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(2.0)
            desk.leading = False
            await desk.dispatcher.drain(60.0)
        assert [outcome.reason for outcome in desk.outcomes] == [BindFailure.NOT_LEADING]
        assert desk.api.requests == []

    @virtual_time
    async def test_a_condition_neither(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.connecting_seconds = 3.0
        desk.dispatcher.submit_condition(condition())
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(2.0)
            desk.leading = False
            await desk.dispatcher.drain(60.0)
        assert desk.api.requests == []


class TestAway:
    """A server that is away, and comes back."""

    @virtual_time
    async def test_one_answer_tells_everybody_that_it_is_back(self) -> None:
        desk = Desk()
        for i in range(50):
            desk.add_pod(f"p{i}")
        desk.api.refusing = True
        async with running(desk.dispatcher.run()):
            for i in range(50):
                desk.dispatcher.submit_bind(bind(f"p{i}"))
                await asyncio.sleep(0.1)
            await asyncio.sleep(20.0)
            desk.api.refusing = False
            # Each by itself would wait for ten seconds; the first to ask does so after five.
            await asyncio.sleep(6.0)
            assert [outcome.bound for outcome in desk.outcomes] == [True] * 50

    @virtual_time
    async def test_a_few_that_wait_learn_within_seconds_that_it_is_back(self) -> None:
        desk = Desk()
        for i in range(3):
            desk.add_pod(f"p{i}")
            desk.dispatcher.submit_bind(bind(f"p{i}"))
        desk.api.refusing = True
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(25.0)
            desk.api.refusing = False
            # Each by itself waits for up to ten seconds by now.
            await asyncio.sleep(1.5)
            assert [outcome.bound for outcome in desk.outcomes] == [True] * 3

    @virtual_time
    async def test_a_bind_in_doubt_is_sent_again_at_once_when_it_is_back(self) -> None:
        desk = Desk()
        async with desk.left_in_doubt():
            await asyncio.sleep(25.0)
            desk.api.refusing = False
            # It is read, found unbound, and sent; not after as long as was waited for the server.
            await asyncio.sleep(2.0)
            assert [outcome.bound for outcome in desk.outcomes] == [True]

    @virtual_time
    async def test_a_server_that_starts_and_knows_no_roles_yet_is_asked_every_second(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.api.refusing = True
        async with running(desk.dispatcher.run()):
            desk.dispatcher.submit_bind(bind())
            await asyncio.sleep(15.0)
            desk.api.script("POST", "*", *[status(403, "Forbidden")] * 4)
            desk.api.refusing = False
            await asyncio.sleep(6.5)
            assert [outcome.bound for outcome in desk.outcomes] == [True]

    @virtual_time
    async def test_while_it_is_away_it_is_asked_about_once_a_second(self) -> None:
        desk = Desk()
        desk.add_pod()
        desk.dispatcher.submit_bind(bind())
        desk.api.refusing = True
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(28.0)
        assert 20 <= len(desk.api.requests) <= 60

    @virtual_time
    async def test_a_server_that_answers_and_refuses_is_not_asked_more_often(self) -> None:
        desk = Desk()
        for i in range(20):
            desk.add_pod(f"p{i}")
            desk.dispatcher.submit_bind(bind(f"p{i}"))
        desk.api.script("POST", "*", *[status(429, "TooManyRequests", Retry_After="5")] * 200)
        async with running(desk.dispatcher.run()):
            await asyncio.sleep(12.0)
        assert len(desk.api.asked("POST")) <= 60
