"""What was seen of a lease, by looks and by the watch, in whatever order it arrives."""

import pytest

from k8s_scheduler.kube.lease.lease import LeaseSpec, Record
from k8s_scheduler.kube.lease.observed_lease import ObservedLease
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=100.0)


@pytest.fixture
def observed(clock: FakeClock) -> ObservedLease:
    made = ObservedLease(clock)
    assert made.look(record("10"), asked_at=99.0)
    return made


def record(version: str, holder: str = "a") -> Record:
    return Record(version, LeaseSpec(holder_identity=holder))


def test_counts_from_when_a_version_was_first_seen(
    observed: ObservedLease, clock: FakeClock
) -> None:
    clock.now = 102.0
    assert observed.show(record("11"))
    clock.now = 103.0
    assert observed.look(record("11"), asked_at=102.9)
    assert not observed.show(record("11"))
    assert (observed.version, observed.since) == ("11", 102.0)


@pytest.mark.parametrize("version", ["10", "9", "2", "", "0", "x", "10x", "-11", "011"])
def test_an_event_that_is_not_certainly_newer_is_none(
    observed: ObservedLease, clock: FakeClock, version: str
) -> None:
    clock.now = 105.0
    assert not observed.show(record(version, holder=""))
    assert (observed.version, observed.holder, observed.since) == ("10", "a", 100.0)


def test_versions_are_numbers(observed: ObservedLease) -> None:
    assert observed.show(record("100"))
    assert not observed.show(record("99"))


def test_an_event_before_any_look_says_nothing(clock: FakeClock) -> None:
    observed = ObservedLease(clock)
    assert not observed.show(record("10"))
    assert observed.record is None


def test_a_look_that_began_before_a_newer_event_is_of_the_past(
    observed: ObservedLease, clock: FakeClock
) -> None:
    clock.now = 102.0
    observed.show(record("11", holder="b"))
    clock.now = 104.0
    assert not observed.look(record("10"), asked_at=101.0)
    assert not observed.look(record("10"), asked_at=102.0)
    assert (observed.version, observed.holder, observed.since) == ("11", "b", 102.0)


def test_a_newer_answer_counts_whenever_it_was_asked_for(
    observed: ObservedLease, clock: FakeClock
) -> None:
    clock.now = 102.0
    observed.show(record("11"))
    clock.now = 104.0
    assert observed.look(record("12"), asked_at=101.0)
    assert (observed.version, observed.since) == ("12", 104.0)


@pytest.mark.parametrize("version", ["3", "other"])
def test_a_server_whose_history_went_back_is_believed(
    observed: ObservedLease, clock: FakeClock, version: str
) -> None:
    clock.now = 104.0
    assert observed.look(record(version, holder="b"), asked_at=103.0)
    assert (observed.version, observed.holder, observed.since) == (version, "b", 104.0)
