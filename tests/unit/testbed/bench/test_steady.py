"""Pods that arrive one by one."""

import pytest

from testbed.bench.account import Account
from testbed.bench.runs import StoodStillError
from testbed.bench.steady import achieved_rate, arrive


class Cluster:
    """A log, a clock, and a scheduler that binds the first few pods a while after they came."""

    def __init__(self, *, binds=10_000, create_seconds=0.0):
        self.account = Account()
        self.now = 0.0
        self._binds, self._create_seconds = binds, create_seconds

    def catch_up(self):
        return self.account

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def create(self, pod):
        name = pod["metadata"]["name"]
        self.now += self._create_seconds
        self.account.created[name] = self.now
        if len(self.account.created) <= self._binds:
            self.account.bound[name] = self.now + 0.25

    def arrive(self, count, rate):
        pods = [{"metadata": {"name": f"p{number}"}} for number in range(count)]
        return arrive(pods, rate, self.create, self, clock=self.clock, sleep=self.sleep)


def test_the_rate_is_kept_however_long_a_request_takes():
    found = Cluster(create_seconds=0.015625).arrive(101, 50)
    assert (found.pods, found.p50_ms, found.p99_ms) == (101, 250.0, 250.0)
    assert found.achieved_rate == pytest.approx(50)
    assert not found.is_off


def test_pods_that_come_too_slowly_are_not_said_to_have_come_in_time():
    found = Cluster(create_seconds=0.03125).arrive(101, 50)
    assert found.achieved_rate == pytest.approx(32)
    assert found.is_off


def test_who_does_not_bind_all_that_arrives_is_waited_for_and_then_named():
    cluster = Cluster(binds=3)
    with pytest.raises(StoodStillError, match=r"of 5 pods that arrived at 50 per second 3 were"):
        cluster.arrive(5, 50)
    assert cluster.now > 60


def test_one_pod_has_no_rate():
    account = Account()
    account.created["p"] = 1.0
    assert achieved_rate(account, ["p", "q"]) == 0.0
