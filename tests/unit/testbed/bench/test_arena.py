"""How contestants end."""

from contextlib import suppress

import pytest

from testbed.bench.arena import running
from testbed.bench.runs import ContestantError, StoodStillError
from testbed.errors import ComponentError


class Contestant:
    def __init__(self, *, pid=None):
        self.pid = pid
        self.calls = []

    def start(self):
        self.calls.append("start")

    def stop(self):
        self.calls.append("stop")
        raise ComponentError("it ended with 4")


def test_a_bad_end_is_a_result():
    contestant = Contestant()
    with pytest.raises(ContestantError, match="it ended with 4"), running(contestant):
        pass
    assert contestant.calls == ["start", "stop"]


def test_of_who_gave_up_that_is_said_and_not_how_it_ended():
    with pytest.raises(StoodStillError, match="nothing happened"), running(Contestant()):
        raise StoodStillError("nothing happened")


def test_who_can_t_be_stopped_ends_it_all():
    with pytest.raises(ComponentError), running(Contestant(pid=1)):
        raise StoodStillError("nothing happened")


def test_whatever_else_fails_it_is_stopped():
    contestant = Contestant()
    with suppress(KeyError, ContestantError), running(contestant):
        raise KeyError
    assert contestant.calls == ["start", "stop"]
