"""How contestants take turns, and how they end."""

import threading
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import pytest

from testbed.bench import arena
from testbed.bench.arena import Arena, running
from testbed.bench.report import NULL, Outcome
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


class World:
    """A cluster of which only is told when it is brought back."""

    audit_log = None

    def __init__(self, told):
        self.told = told
        self.brought_back_twice = threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.told.append("closed")

    def restore(self):
        self.told.append("restored")
        if self.told.count("restored") == 2:
            self.brought_back_twice.set()


def test_a_placement_is_looked_at_while_the_next_cluster_comes_and_nobody_is_timed(monkeypatch):
    told = []
    world = World(told)

    def look(*_):
        # Would wait in vain if the next cluster waited for it.
        assert world.brought_back_twice.wait(timeout=10)
        told.append("looked")

    contestant = SimpleNamespace(pid=None, start=lambda: told.append("started"), stop=lambda: None)
    monkeypatch.setattr(arena, "World", lambda **_: world)
    monkeypatch.setattr(arena, "LogReader", lambda _log: None)
    monkeypatch.setattr(arena, "follow", lambda *_, **__: "a run")
    monkeypatch.setitem(arena._MAKERS, NULL, lambda _world: contestant)
    for name in ("fill", "churning", "_list"):
        monkeypatch.setattr(Arena, name, lambda _arena: nullcontext())
    monkeypatch.setattr(Arena, "pod_names", ())
    monkeypatch.setattr(Arena, "_look", look)
    scenario = SimpleNamespace(name="basic", needs_controllers=False)
    subject = Arena(scenario, SimpleNamespace(arriving=0), lambda *_: None)
    subject.compete([Outcome("basic", NULL, None)], repeats=2, rate=1.0)
    assert told == ["restored", "started", "restored", "looked", "started", "looked", "closed"]
