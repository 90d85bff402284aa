"""What was seen of a lease, by looks and by the watch, in whatever order it arrives."""

import pytest

from k8s_scheduler.kube.lease.lease import LeaseSpec, Record
from k8s_scheduler.kube.lease.sight import Sight
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=100.0)


@pytest.fixture
def sight(clock: FakeClock) -> Sight:
    made = Sight(clock)
    assert made.look(record("10"), asked_at=99.0)
    return made


def record(version: str, holder: str = "a") -> Record:
    return Record(version, LeaseSpec(holder_identity=holder))


def test_counts_from_when_a_version_was_first_seen(sight: Sight, clock: FakeClock) -> None:
    clock.now = 102.0
    assert sight.show(record("11"))
    clock.now = 103.0
    assert sight.look(record("11"), asked_at=102.9)
    assert not sight.show(record("11"))
    assert (sight.version, sight.since) == ("11", 102.0)


@pytest.mark.parametrize("version", ["10", "9", "2", "", "0", "x", "10x", "-11", "011"])
def test_an_event_that_is_not_certainly_newer_is_none(
    sight: Sight, clock: FakeClock, version: str
) -> None:
    clock.now = 105.0
    assert not sight.show(record(version, holder=""))
    assert (sight.version, sight.holder, sight.since) == ("10", "a", 100.0)


def test_versions_are_numbers(sight: Sight) -> None:
    assert sight.show(record("100"))
    assert not sight.show(record("99"))


def test_an_event_before_any_look_says_nothing(clock: FakeClock) -> None:
    sight = Sight(clock)
    assert not sight.show(record("10"))
    assert sight.record is None


def test_a_look_that_began_before_a_newer_event_is_of_the_past(
    sight: Sight, clock: FakeClock
) -> None:
    clock.now = 102.0
    sight.show(record("11", holder="b"))
    clock.now = 104.0
    assert not sight.look(record("10"), asked_at=101.0)
    assert not sight.look(record("10"), asked_at=102.0)
    assert (sight.version, sight.holder, sight.since) == ("11", "b", 102.0)


def test_a_newer_answer_counts_whenever_it_was_asked_for(sight: Sight, clock: FakeClock) -> None:
    clock.now = 102.0
    sight.show(record("11"))
    clock.now = 104.0
    assert sight.look(record("12"), asked_at=101.0)
    assert (sight.version, sight.since) == ("12", 104.0)


@pytest.mark.parametrize("version", ["3", "other"])
def test_a_server_whose_history_went_back_is_believed(
    sight: Sight, clock: FakeClock, version: str
) -> None:
    clock.now = 104.0
    assert sight.look(record(version, holder="b"), asked_at=103.0)
    assert (sight.version, sight.holder, sight.since) == (version, "b", 104.0)
