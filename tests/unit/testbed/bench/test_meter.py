"""From when to when the processes are charged."""

import pytest

from testbed.bench.account import Account
from testbed.bench.meter import Meter
from testbed.bench.runs import ContestantError
from testbed.daemon import Usage


class Reader:
    """An account that is as it was made."""

    def __init__(self):
        self.account = Account()

    def catch_up(self):
        return self.account


class Process:
    """Uses a second between two looks."""

    def __init__(self):
        self.seconds = 0

    def usage(self, _pid):
        self.seconds += 1
        return Usage(cpu_seconds=float(self.seconds), peak_rss_bytes=self.seconds)


@pytest.fixture
def reader():
    return Reader()


@pytest.fixture
def meter(reader):
    return Meter(reader, ["p", "q"], lambda: {"scheduler": 1}, usage=Process().usage)


def test_the_window_opens_with_the_last_look_at_which_nobody_was_bound(meter, reader):
    reader.account.bound["somebody-else"] = 1.0
    assert [meter.has_begun() for _ in range(3)] == [False] * 3
    reader.account.bound["p"] = 1.0
    assert meter.has_begun()
    assert meter.has_begun()
    meter.move()
    # The third look, and the fifth: at the fourth one was bound.
    assert meter.start_cpu_seconds == 3
    assert meter.cpu_seconds() == {"scheduler": 2}
    assert meter.missed == 0


def test_the_window_ends_when_something_last_moved(meter, reader):
    meter.has_begun()
    reader.account.bound["p"] = 1.0
    meter.has_begun()
    meter.move()
    assert meter.cpu_seconds() == meter.cpu_seconds() == {"scheduler": 2}
    assert meter.peak_rss_bytes == 3


def test_pods_bound_before_the_first_look_are_not_paid_for(meter, reader):
    reader.account.bound["p"] = 1.0
    assert meter.has_begun()
    assert (meter.missed, meter.start_cpu_seconds) == (1, 1)


def test_a_process_that_is_gone_is_named_by_who_knows_it(reader):
    alive = [True]

    def pids():
        if not alive[0]:
            raise ContestantError("somebody has ended")
        return {"scheduler": 1}

    def usage(_pid):
        alive[0] = False
        raise FileNotFoundError

    with pytest.raises(ContestantError, match="somebody has ended"):
        Meter(reader, ["p"], pids, usage=usage).has_begun()
