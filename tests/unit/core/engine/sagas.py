"""Pods on their way, one hand on every plugin: actors say what a test tells them to say.

`SagaHarness("One", "Two")` runs the default profile with two actors after the built-in plugins at
Reserve, Permit, PreBind and PostBind. Their lines are kept by point and pod; without a line an
actor lets everything pass.
"""

import dataclasses
from collections import Counter
from typing import Any, ClassVar

import msgspec

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.api.kinds import Kind, as_text, from_text
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.plugin import ObjectPatch, PreBinding, Rejection, Wait
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.messages.incoming import (
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    RequestResult,
    Restore,
)
from k8s_scheduler.core.messages.outgoing import (
    Instruction,
    PatchCondition,
    RecordEvent,
    Request,
)
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.harness import Harness, only

POINTS = ("reserve", "permit", "preBind", "postBind")
wire = msgspec.msgpack.Encoder(enc_hook=as_text)
unwire = msgspec.msgpack.Decoder(Message, dec_hook=from_text)


class Actor:
    """A plugin that says its lines: a value, an exception to raise, or a function to call."""

    reasons: ClassVar = ()
    depends_on: ClassVar = ()
    writes: ClassVar = (Kind.PERSISTENT_VOLUME,)

    def __init__(self, name: str, journal: list[tuple[str, str, str]]) -> None:
        self.name = name
        self.journal = journal
        self.lines: dict[tuple[str, str], Any] = {}
        self.waiting: Any = None

    def line(self, point: str, answer: Any, *, pod: str = "") -> None:
        """Say this at a point, about one pod or about all."""
        self.lines[point, pod] = answer

    def attach(self, waiting):
        self.waiting = waiting

    def reserve(self, state, pod, rows):
        return self._say("reserve", pod)

    def unreserve(self, state, pod):
        return self._say("unreserve", pod)

    def permit(self, state, pod, node):
        return self._say("permit", pod)

    def pre_bind(self, state, pod, rows):
        return self._say("pre_bind", pod)

    def pre_bound(self, state, pod, rows):
        said = self._say("pre_bound", pod)
        return True if said is None else said

    def post_bind(self, state, pod, node):
        return self._say("post_bind", pod)

    def _say(self, point, pod):
        name = pod.metadata.name
        self.journal.append((point, self.name, name))
        answer = self.lines.get((point, name), self.lines.get((point, "")))
        if isinstance(answer, Exception):
            raise answer
        return answer(pod) if callable(answer) else answer


def no(text: str = "no", *, plugin: str = "One") -> Rejection:
    return Rejection((Reason(f"{plugin}/No", text),))


def hold(seconds: float = 10.0) -> Wait:
    return Wait(seconds)


def writes(*names: str, seconds: float = 60.0, errand: str = "writing") -> PreBinding:
    """Return what changes the named volumes before a pod may be bound."""
    patches = tuple(
        ObjectPatch(Kind.PERSISTENT_VOLUME, "", name, {"metadata": {"labels": {"a": "b"}}})
        for name in names
    )
    return PreBinding(patches, seconds, errand=errand)


class SagaHarness(FullHarness):
    """Drives a core with actors among its plugins."""

    def __init__(self, *names: str) -> None:
        self.journal: list[tuple[str, str, str]] = []
        self.actors = {name: Actor(name, self.journal) for name in names}
        Harness.__init__(self, _setup(self.actors))

    def __getitem__(self, name: str) -> Actor:
        return self.actors[name]

    # Answers

    def answer(
        self, request: Request, *, done: bool = True, message: str = ""
    ) -> list[Instruction]:
        return self.tell(
            RequestResult(self.now, request.uid, request.attempt, request.request, done, message)
        )

    # What is so

    def calls(self, *points: str) -> list[tuple[str, str, str]]:
        """Return who was asked so far, at these points or at all."""
        return [call for call in self.journal if not points or call[0] in points]

    def phase(self, name: str) -> str | None:
        flight = inside(self.core).flights.get(PodUid(f"uid-{name}"))
        return None if flight is None else flight.phase.value

    def place(self, name: str) -> str | None:
        queued = inside(self.core).queue.get(PodUid(f"uid-{name}"))
        return None if queued is None else queued.place.value

    def node_of(self, name: str) -> str | None:
        return inside(self.core).cache.node_of(PodUid(f"uid-{name}"))

    def promise_of(self, name: str) -> str | None:
        return inside(self.core).cache.nominations.node_of(PodUid(f"uid-{name}"))

    def notes(self, name: str) -> list[str]:
        """Return what events have said about a pod."""
        return [e.note for e in only(RecordEvent, self.out) if e.name == name]

    # Other cores

    def twin(self) -> "SagaHarness":
        """Return a harness whose core was restored from this one's checkpoint, by the wire."""
        twin = SagaHarness(*self.actors)
        twin.now = self.now
        for name, actor in self.actors.items():
            twin.actors[name].lines = actor.lines
        twin.told = list(self.told)
        restore = unwire.decode(wire.encode(Restore(self.now, self.core.checkpoint())))
        twin.core.handle(restore)
        assert twin.core.checkpoint() == self.core.checkpoint()
        return twin

    def fresh(self) -> "SagaHarness":
        """Return a harness whose core was told nothing but what the API server has now."""
        last: dict[tuple[str, ...], Message] = {}
        for message in self.told:
            if isinstance(message, PodChanged):
                last["pod", message.uid] = message
            elif isinstance(message, NodeChanged):
                last["node", message.name] = message
            elif isinstance(message, ObjectChanged):
                last[message.kind, message.namespace, message.name] = message
        other = SagaHarness(*self.actors)
        other.now = self.now
        for message in last.values():
            other.tell(msgspec.structs.replace(message, now=self.now))
        return other


def _setup(actors: dict[str, Actor]) -> Setup:
    (profile,) = default_configuration(known_plugins()).profiles
    uses = tuple(PluginUse(name) for name in actors)
    points = profile.points | {p: (*profile.points.get(p, ()), *uses) for p in POINTS}
    made = {
        name: Registration(Actor, factory=lambda actor=actor: actor)
        for name, actor in actors.items()
    }
    return Setup(
        profiles=(dataclasses.replace(profile, points=points),),
        queue=QueuePolicy(BackoffPolicy()),
        plugins=BUILT_INS | made,
    )


def state_of(core: Scheduler) -> dict[str, Any]:
    """Return what a core believes, as far as its past must not matter."""
    cache = inside(core).cache
    return {
        "placed": sorted(
            (pod.metadata.uid, cache.nodes.name_of(row), assumed)
            for row, pod, assumed in cache.placed_pods()
        ),
        "pending": sorted(queued.uid for queued in inside(core).queue),
        "versions": sorted(
            (queued.uid, queued.pod.metadata.resource_version) for queued in inside(core).queue
        ),
        "flights": sorted(flight.uid for flight in inside(core).flights),
        "evictions": sorted(entry.uid for entry in inside(core).state.preemptions.entries()),
        "promises": sorted((pod.metadata.uid, node) for node, pod in cache.nominations.entries()),
        "objects": list(cache.objects.entries()),
        "room": room_of(core),
    }


def room_of(core: Scheduler) -> dict[str, tuple[int, int]]:
    """Return by node what is taken, as the columns have it."""
    nodes = inside(core).cache.nodes
    return {
        name: (int(nodes.column("requested/cpu")[row]), int(nodes.column("pod_count")[row]))
        for row, name in nodes.used_rows()
    }


def check_room(core: Scheduler) -> None:
    """Columns are the sum of their pods."""
    cache = inside(core).cache
    counts: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    for row, pod, assumed in cache.placed_pods():
        name = cache.nodes.name_of(row)
        counts[name] += 1
        cpu[name] += dict(pod_requests(pod, from_status=not assumed).amounts).get("cpu", 0)
    for name, (taken, count) in room_of(core).items():
        assert (taken, count) == (cpu[name], counts[name]), name


def send(bench, *names, **requests):
    """Create pods and decide for them."""
    for name in names:
        bench.pod(make_pod(name).request(**(requests or {"cpu": "1"})).obj())
    return bench.schedule()


def volume(bench, name, version, **labels):
    """Show a version of a volume."""
    metadata = {"resourceVersion": version, "labels": labels}
    bench.object(Kind.PERSISTENT_VOLUME, name, metadata=metadata)


def failures(instructions):
    """Return the conditions that are written: pod, reason and message."""
    return [(c.name, c.reason, c.message) for c in only(PatchCondition, instructions)]


def is_untouched(bench, name):
    """Check that a pod has left nothing behind but itself in the queue."""
    check_room(bench.core)
    assert bench.node_of(name) is None
    assert bench.phase(name) is None
    assert bench.place(name) is not None
