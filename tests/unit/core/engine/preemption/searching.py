"""A cluster in which searches for room take many messages."""

from k8s_scheduler.core.engine.preemption import post_filter
from k8s_scheduler.core.engine.preemption.dry_runs import DryRuns
from k8s_scheduler.core.messages.incoming import Restore, Schedule
from k8s_scheduler.core.messages.outgoing import PatchCondition
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, FullHarness, zoned
from tests.unit.core.harness import only

# What one node costs here, and so how many are tried in one message.
PRICE = 22
PER_STEP = 8


class Search(FullHarness):
    """Nodes that are full of an important pod and a lesser one, and a count of dry runs."""

    def __init__(self, monkeypatch, nodes=60, *, setup: Setup = FULL):
        super().__init__()
        self.core = Scheduler(setup)
        monkeypatch.setattr(post_filter, "SEARCH_WORK", PRICE * PER_STEP)
        monkeypatch.setattr(post_filter, "WAKING_WORK", PRICE * PER_STEP)
        # By message: the nodes that were tried in it.
        self.tried = [[]]
        original = DryRuns.select

        def select(runs, candidates, *rest):
            self.tried[-1] += [c.trial.delta.row for c in candidates]
            return original(runs, candidates, *rest)

        monkeypatch.setattr(DryRuns, "select", select)
        self.names = [f"n{i}" for i in range(nodes)]
        for name in self.names:
            self.node(zoned(name, cpu="4").obj())
            self.pod(boss(name).obj())
            self.pod(lesser(name).obj())

    def tell(self, message):
        self.tried.append([])
        return super().tell(message)

    def step(self, limit=4):
        return self.tell(Schedule(self.now, limit))

    def search(self, most=1000):
        """Decide until nothing is left to do; return what came out of it."""
        out = []
        for _ in range(most):
            if not self.core.has_work:
                return out
            out += self.step()
        raise AssertionError("the core never comes to rest")

    @property
    def tried_nodes(self):
        return sum(map(len, self.tried))

    def conditions(self, name):
        return [c for c in only(PatchCondition, self.out) if c.name == name]

    def in_line(self):
        return [
            q.pod.metadata.name
            for q in inside(self.core).queue
            if q.uid in inside(self.core).queue.line
        ]

    def twin(self):
        """Return another core, made from a checkpoint of this one."""
        twin = Scheduler(self.core.setup)
        twin.handle(Restore(self.now, self.core.checkpoint()))
        return twin


def boss(node):
    return make_pod(f"boss-{node}").request(cpu="3").priority(100).label(app="boss").on(node)


def lesser(node, cpu="1"):
    return make_pod(f"low-{node}").request(cpu=cpu).priority(0).label(app="low").on(node)


def hungry(name="p", cpu="2", priority=10):
    """Return a pod that fits nowhere, whoever of the lesser ones leaves."""
    return make_pod(name).request(cpu=cpu).priority(priority)
