"""What comes and goes, when, and what becomes of its errors."""

from types import SimpleNamespace

import pytest

from testbed.bench.churning import churning, due
from testbed.bench.scenarios import Churn
from testbed.errors import TestbedError


def test_ticks_are_due_at_fixed_times_however_long_they_take():
    now, waits = [0.0], []

    def wait(seconds):
        waits.append(round(seconds, 6))
        now[0] += seconds
        return len(waits) > 4

    for tick in due(1.0, wait, clock=lambda: now[0]):
        # The second takes longer than there is time for.
        now[0] += 1.25 if tick == 1 else 0.25
    assert waits == [1.0, 0.75, 0.0, 0.5, 0.75]


class World:
    """Takes nothing in."""

    def __init__(self):
        self.bed = SimpleNamespace(client=None)

    def fill(self, items, *, threads):
        raise TestbedError("500: no more")


CHURN = Churn(0.0, lambda number: ({"kind": "Pod", "metadata": {"name": f"churn-{number}"}},))


def test_an_error_of_what_comes_and_goes_is_not_lost():
    with pytest.raises(TestbedError, match="no more"), churning(CHURN, World(), nodes=5):
        pass


def test_it_is_named_before_what_may_have_come_of_it():
    with pytest.raises(TestbedError, match="no more"), churning(CHURN, World(), nodes=5):
        raise ValueError("nothing happened")


def test_where_nothing_comes_and_goes_nothing_is_done():
    with churning(None, World(), nodes=5):
        pass
