"""Made-up histories: a cluster in which all is well, and ways to spoil it."""

import dataclasses
from collections.abc import Sequence

from testbed.audit import SCHEDULER_USER
from testbed.chaos.evidence import (
    BindingSeen,
    Change,
    Configuration,
    Decision,
    Done,
    EventSeen,
    Evidence,
    NodeSeen,
    Opinion,
    PodSeen,
    Replayed,
    Sample,
    Seen,
)
from testbed.chaos.plan import Action
from testbed.chaos.resources import Room

OURS = "k8s-scheduler"
THEIRS = "default-scheduler"
# Who sends their Bindings.
US = SCHEDULER_USER
THEM = "system:kube-scheduler"
QUIET_FROM = 1000.0
ENDED_AT = 1100.0
SMALL = Room(milli_cpu=1000, memory_bytes=1 << 20, pods=1)
NODE = Room(milli_cpu=2000, memory_bytes=1 << 30, pods=10)
REPLICA = "replica-a-1"
# The pod of the quiet time, and where it goes.
QUIET = "quiet"
ELSEWHERE = "elsewhere"
FIRST = Configuration(0.0, "hash-1", good=True)
# What the log of a process says that led.
LED = "me became leader"
SCHEDULED = ("True", "", "")
# A replica that lived for a while, was looked at every second, and did not grow.
LOOKED_AT = tuple(Sample(float(second), REPLICA, 1, 1) for second in range(500, 600))
# What went wrong, so that there is something to judge.
TROUBLE = (Done(550.0, 550.0, Action.CORDON, "n9"),)
UNSCHEDULABLE = ("False", "Unschedulable", "0/1 nodes are available")


def pod(name: str, node: str = "", **fields: object) -> PodSeen:
    """Return a pod of ours of half a node's CPU."""
    values: dict[str, object] = {
        "uid": f"uid-{name}",
        "namespace": "chaos",
        "name": name,
        "scheduler": OURS,
        "node": node,
        "asks": SMALL,
        "scheduled": SCHEDULED if node else ("", "", ""),
    }
    return PodSeen(**(values | fields))


def node(name: str = "n1", **fields: object) -> NodeSeen:
    return NodeSeen(name=name, **({"has": NODE} | fields))


class Story:
    """Writes history line by line; each line is a revision and a second later."""

    def __init__(self, *nodes: NodeSeen, began: float = 500.0) -> None:
        self.changes: list[Change] = []
        self.bindings: list[BindingSeen] = []
        self.decisions: list[Decision] = []
        self._began = began
        for each in nodes or (node(),):
            self.write(each)

    @property
    def revision(self) -> int:
        return len(self.changes)

    @property
    def now(self) -> float:
        return self._began + len(self.changes)

    def write(self, what: Seen, *, gone: bool = False) -> None:
        self.changes.append(Change(self.revision + 1, self.now, gone, what))

    def at(self, seconds: float) -> None:
        """Let time pass until then."""
        self._began = seconds - len(self.changes)

    def bind(self, name: str, to: str = "n1", *, status: int = 201, **fields: object) -> None:
        """Have a pod bound: asked for, carried out, told."""
        by = US if fields.get("scheduler", OURS) == OURS else THEM
        self.ask(name, to, status=status, by=by)
        self.write(pod(name, to, **fields))
        self.write(
            EventSeen(f"uid-{name}", "Scheduled", f"Successfully assigned chaos/{name} to {to}")
        )

    def ask(self, name: str, to: str = "n1", *, status: int = 201, by: str = US) -> None:
        uid, where = (f"uid-{name}", to) if status else ("", "")
        seen = BindingSeen(self.now, by, "chaos", name, uid, where, status)
        self.bindings.append(seen)

    def decide(self, name: str, to: str = "n1", *, seen: int | None = None, by: str = "a") -> None:
        at = self.revision if seen is None else seen
        decision = Decision(by, f"uid-{name}", "chaos", name, to, 1, self.now, at, at)
        self.decisions.append(decision)

    def evidence(
        self, configurations: Sequence[Configuration] = (FIRST,), **fields: object
    ) -> Evidence:
        """Return everything about the run; nothing is missing that a check needs."""
        [last] = configurations[-1:] or (FIRST,)
        quiet = self._in_quiet_times()
        values: dict[str, object] = {
            "seed": 1,
            "scheduler": OURS,
            "lease_seconds": 8.0,
            "write_seconds": 1.6,
            "quiet_from": QUIET_FROM,
            "ended_at": ENDED_AT,
            "changes": [*self.changes, *quiet.changes] if quiet else self.changes,
            "bindings": [*self.bindings, *quiet.bindings] if quiet else self.bindings,
            "decisions": self.decisions or [self._of_no_consequence()],
            "replayed": [Replayed(REPLICA, 0)],
            "opinions": [Opinion("history", REPLICA, "chaos", "p1", "n1")],
            "logs": {REPLICA: LED},
            "samples": LOOKED_AT,
            "done": TROUBLE,
            "faults": {"409": 1},
            "configurations": configurations,
            "metrics": {REPLICA: in_force(last.hash)},
        }
        return Evidence(**(values | fields))

    def _in_quiet_times(self) -> "Story | None":
        """Return how a pod is bound, told of and gone after the last fault, where pods are bound.

        It takes no room, on a node of which nothing else is known.
        """
        pods = (change.what for change in self.changes if isinstance(change.what, PodSeen))
        if not any(each.scheduler == OURS and each.node for each in pods):
            return None
        later = Story()
        later.changes = [*self.changes]
        later.at(QUIET_FROM + 30)
        later.write(pod(QUIET, asks=Room()))
        later.bind(QUIET, ELSEWHERE, asks=Room())
        later.write(pod(QUIET, ELSEWHERE, asks=Room()), gone=True)
        later.changes = later.changes[len(self.changes) :]
        return later

    def _of_no_consequence(self) -> Decision:
        """Return a decision for an empty node, of a pod that was gone before anybody saw it."""
        [first, *_] = self.changes
        return Decision("a", "uid-else", "chaos", "else", first.what.name, 1, first.at, 1, 1)


def in_force(name: str) -> dict[str, float]:
    """Return a page of metrics that names the configuration in force."""
    return {f'k8s_scheduler_config_info{{hash="{name}"}}': 1.0}


def a_good_story() -> Story:
    """Two pods come, fill a node and one leaves; a third fits nowhere and says so."""
    story = Story()
    for name in ("p1", "p2"):
        story.write(pod(name))
        story.decide(name)
        story.bind(name)
    story.write(pod("p1", "n1"), gone=True)
    story.write(pod("p3", asks=dataclasses.replace(SMALL, milli_cpu=5000)))
    story.write(pod("p3", asks=dataclasses.replace(SMALL, milli_cpu=5000), scheduled=UNSCHEDULABLE))
    story.write(EventSeen("uid-p3", "FailedScheduling", "0/1 nodes are available"))
    return story
