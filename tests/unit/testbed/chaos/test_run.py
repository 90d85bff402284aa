from types import SimpleNamespace

from testbed.chaos.actions import Actions, Agenda
from testbed.chaos.plan import BACKGROUND, Action, Step
from testbed.chaos.run import mend


class Proxy:
    """Remembers the rules in force."""

    def __init__(self):
        self.rules = BACKGROUND

    def set_rules(self, rules):
        self.rules = rules

    def drop_connections(self):
        pass


def test_after_the_last_fault_none_is_in_force_though_a_step_was_to_end_later():
    """The end of a step brings back what is in force all the time: quiet comes after that."""
    replicas = [SimpleNamespace(name="replica-a", proxy=Proxy())]
    stage = SimpleNamespace(replicas=replicas)
    agenda = Agenda(lambda: 100.0, sleep=lambda _: None)
    Actions(stage, agenda).carry_out(Step(1.0, Action.FAULTS, 1))
    mend(stage, agenda, say=lambda _: None)
    assert [replica.proxy.rules for replica in replicas] == [()]
