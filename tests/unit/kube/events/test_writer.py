"""Who was replaced writes no event about pods any more, and its own news all the same."""

import logging
from collections.abc import Callable

import pytest

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.events.event import series_key
from k8s_scheduler.kube.events.series import Series
from k8s_scheduler.kube.events.writer import EventWriter, Written
from k8s_scheduler.kube.http.caller import Caller
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.unit.kube.events.test_recorder import EVENTS, note
from tests.unit.kube.write_fakes import loop_clock, loop_timing


def writer(api: FakeApi, may_tell: Callable[[], bool]) -> EventWriter:
    timing = loop_timing()
    return EventWriter(
        Caller(transport=api, may_write=may_tell, timeout_seconds=10.0, timing=timing),
        hostname="host",
        log=BoundedLog(logging.getLogger(__name__), timing.clock),
    )


class Telling:
    """A writer, and whether it may tell."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.may_tell = True
        self.writer = writer(self.api, lambda: self.may_tell)

    def stop(self, *_: object) -> NotSent:
        self.may_tell = False
        raise NotSent("refused")


def series(*, is_own: bool = False, written: int = 0) -> Series:
    made = note()
    return Series(series_key(made), made, "p.1", 0, 0, 0.0, written=written, is_own=is_own)


@virtual_time
async def test_what_waited_until_the_lease_was_lost_is_not_sent() -> None:
    scene = Telling()
    scene.may_tell = False
    assert await scene.writer.write(series()) is Written.NOT_LEADING
    assert scene.api.requests == []


@pytest.mark.parametrize("written", [0, 1])
@virtual_time
async def test_nor_what_waited_for_a_connection(written: int) -> None:
    scene = Telling()
    asked = iter([True])
    waited = writer(scene.api, lambda: next(asked, False))
    assert await waited.write(series(written=written)) is Written.NOT_LEADING
    assert scene.api.requests == []


@virtual_time
async def test_nor_another_try() -> None:
    scene = Telling()
    scene.api.script("POST", EVENTS, scene.stop)
    assert await scene.writer.write(series()) is Written.NOT_LEADING
    assert len(scene.api.requests) == 1
    assert loop_clock()() == 0.0


@virtual_time
async def test_news_of_the_process_itself_is_written_without_leading() -> None:
    scene = Telling()
    scene.may_tell = False
    assert await scene.writer.write(series(is_own=True)) is Written.DONE
