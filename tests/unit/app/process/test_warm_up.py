"""The decisions that warm up really are decisions, of every kind."""

from k8s_scheduler.app.process import warm_up as warming
from k8s_scheduler.core.messages.outgoing import Bind, PatchCondition, RecordEvent
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.unit.core.harness import profile


def test_pods_are_placed_and_rejected(monkeypatch):
    out = []

    class Watched(Scheduler):
        def handle(self, message):
            instructions = super().handle(message)
            out.extend(instructions)
            return instructions

    monkeypatch.setattr(warming, "Scheduler", Watched)
    warming.warm_up(Setup(profiles=(profile("any"),)))
    kinds = [type(instruction) for instruction in out]
    assert kinds.count(Bind) == 6
    # Each is told when it is rejected, and again when a node has gone.
    assert kinds.count(RecordEvent) == kinds.count(PatchCondition) == 12
