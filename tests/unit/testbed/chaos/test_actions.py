import random
from types import SimpleNamespace

import pytest

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import ConfigurationFlags
from testbed.chaos.actions import Actions, Agenda
from testbed.chaos.configuration import ConfigurationMount
from testbed.chaos.plan import BACKGROUND, Action, Step
from testbed.errors import ApiError, TestbedError
from testbed.proxy.faults import Fault, Rule


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class TestAgenda:
    def test_does_what_is_due_in_order_and_nothing_else(self):
        clock, done = Clock(), []
        agenda = Agenda(clock)
        for seconds in (3.0, 1.0, 2.0):
            agenda.later(seconds, lambda seconds=seconds: done.append(seconds))
        agenda.do_due()
        assert done == []
        clock.now = 2.0
        agenda.do_due()
        assert done == [1.0, 2.0]

    def test_tries_again_what_failed_for_want_of_a_server(self):
        clock, tries = Clock(), []

        def deed():
            tries.append(clock.now)
            if len(tries) == 1:
                raise ApiError("away", status=503)
            if len(tries) == 2:
                raise ConnectionRefusedError

        agenda = Agenda(clock)
        agenda.later(0.0, deed)
        for now in (0.0, 0.5, 1.0, 2.0, 3.0):
            clock.now = now
            agenda.do_due()
        assert tries == [0.0, 1.0, 2.0]

    def test_at_the_end_everything_is_done_at_once(self):
        done = []
        agenda = Agenda(Clock(), sleep=lambda _: None)
        for seconds in (30.0, 10.0):
            agenda.later(seconds, lambda seconds=seconds: done.append(seconds))
        agenda.do_all(timeout_seconds=5)
        assert done == [10.0, 30.0]

    def test_what_can_not_be_put_right_is_an_error(self):
        clock = Clock()

        def deed():
            clock.now += 10
            raise ConnectionRefusedError

        agenda = Agenda(clock)
        agenda.later(0.0, deed)
        with pytest.raises(TestbedError, match="1 things could not be put right"):
            agenda.do_all(timeout_seconds=5)


class NoStage:
    """A stage on which nobody leads and nothing answers."""

    replicas = ()

    @staticmethod
    def leader():
        return None

    @staticmethod
    def compact():
        raise ConnectionRefusedError("etcd is away")


def test_every_action_has_its_deed():
    actions = Actions(NoStage(), Agenda())
    assert set(actions._deeds) == set(Action)


def test_an_action_that_meets_a_server_that_is_away_is_noted_as_not_done():
    actions = Actions(NoStage(), Agenda(), clock=lambda: 7.0)
    actions.carry_out(Step(1.0, Action.COMPACT, 1))
    [done] = actions.done
    assert done.detail == "not done: etcd is away"
    assert done.at == 7.0


@pytest.mark.parametrize("luck", range(12))
def test_good_configurations_are_good_and_bad_ones_bad(tmp_path, luck):
    mount = ConfigurationMount(tmp_path / "config", scheduler="s")
    mount.write_good(random.Random(luck))
    load(ConfigurationFlags(config_file=mount.file))
    mount.write_bad(random.Random(luck))
    with pytest.raises(ConfigurationError):
        load(ConfigurationFlags(config_file=mount.file))


class Proxy:
    """Remembers the rules in force."""

    rules = BACKGROUND

    def set_rules(self, rules):
        self.rules = rules

    def drop_connections(self):
        pass


def seconds_in_force(*starts):
    """Return how long the last of some steps of faults is in force; all have the same luck."""
    clock, proxy = Clock(), Proxy()
    agenda = Agenda(clock)
    stage = SimpleNamespace(replicas=[SimpleNamespace(name="replica-a", proxy=proxy)])
    actions = Actions(stage, agenda, clock=clock)
    steps = [Step(at, Action.FAULTS, 1, (Rule(fault=Fault.CONFLICT, seconds=at),)) for at in starts]
    seconds = 0
    for clock.now in range(30):
        agenda.do_due()
        for step in steps:
            if step.at_seconds == clock.now:
                actions.carry_out(step)
        seconds += proxy.rules == steps[-1].rules
    assert proxy.rules == BACKGROUND
    return seconds


def test_faults_last_their_time_though_earlier_ones_end_meanwhile():
    assert seconds_in_force(0.0, 3.0) == seconds_in_force(0.0) >= 4


def test_where_nobody_leads_nothing_is_done_to_the_leader():
    clock = iter(range(100))
    actions = Actions(NoStage(), Agenda(), clock=lambda: 10.0 * next(clock))
    for action in (Action.KILL_LEADER, Action.FREEZE_LEADER, Action.STOP_LEADER):
        actions.carry_out(Step(1.0, action, 1))
    assert [done.detail for done in actions.done] == ["not done: nobody leads"] * 3
    assert not any(done.was_done for done in actions.done)
