"""A cluster as data, and what one scheduler says about the pods that it can't place there.

Two schedulers are compared on the same world, one after the other, each started when everything
is in place: what they say then depends on nothing but the world. Between the two the pods are
created anew, so nothing of the first (conditions, nominations, evictions) reaches the second.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.client import Object
from testbed.options import SCHEDULER as KUBE_SCHEDULER
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from tests.integration.daemons import SCHEDULER, no_complaints, running


@dataclass(frozen=True)
class Thing:
    """An object that is neither node nor pod; `deleted` if it is to be on its way out."""

    collection: str
    body: Object
    status: Object | None = None
    deleted: bool = False


@dataclass(frozen=True)
class Said:
    """What the API server holds about a pod: two of its conditions, and the events about it.

    Of a condition that is status, reason and message; of an event type, reason, action and note.
    """

    scheduled: tuple[str, str, str]
    disrupted: tuple[str, str, str]
    events: tuple[tuple[str, str, str, str], ...]
    nominated: str
    leaving: bool

    @property
    def is_told(self) -> bool:
        """Whether the condition and the last event are there and say the same."""
        return bool(self.events) and self.events[-1][-1] == self.scheduled[-1]


@dataclass(frozen=True)
class World:
    """Nodes, what else there is, pods on nodes, and pods that wait: situation -> pod.

    Of a `silent` situation no scheduler says anything. `arrange` is done when the pods are there,
    before a scheduler is; `settled` asserts that a scheduler has done all it will do.
    """

    nodes: Sequence[Object]
    waiting: Mapping[str, Object]
    residents: Sequence[Object] = ()
    things: Sequence[Thing] = ()
    silent: Sequence[str] = ()
    arrange: Callable[[Sandbox], None] = lambda _: None
    settled: Callable[[Mapping[str, Said]], None] = lambda _: None


@dataclass(frozen=True)
class Contender:
    """One of the two schedulers: the schedulerName it serves, and how it is run."""

    name: str
    run: Callable[[Sandbox], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def _kube_scheduler(sandbox: Sandbox) -> Iterator[None]:
    sandbox.bed.start(KUBE_SCHEDULER)
    try:
        yield
    finally:
        sandbox.bed.stop(KUBE_SCHEDULER)


@contextlib.contextmanager
def _our_scheduler(sandbox: Sandbox) -> Iterator[None]:
    """Run this scheduler; the rights that are shipped with it must do."""
    with running(sandbox.bed) as daemon:
        yield
        no_complaints(daemon)


THEIRS = Contender("default-scheduler", _kube_scheduler)
OURS = Contender(SCHEDULER, _our_scheduler)


def furnish(sandbox: Sandbox, world: World) -> None:
    """Create all but the pods."""
    sandbox.create_nodes(world.nodes)
    for thing in world.things:
        _create(sandbox, thing)


def _create(sandbox: Sandbox, thing: Thing) -> None:
    collection = thing.collection.format(namespace=sandbox.namespace)
    if collection != thing.collection:
        sandbox.client.create(collection, thing.body)
    else:
        sandbox.create_cluster_object(collection, thing.body)
    path = f"{collection}/{thing.body['metadata']['name']}"
    if thing.status is not None:
        sandbox.client.patch(f"{path}/status", {"status": thing.status})
    if thing.deleted:
        sandbox.client.delete(path)


def listen(sandbox: Sandbox, world: World, scheduler: Contender) -> dict[str, Said]:
    """Put the pods there, start one scheduler, and return what is said when all is said."""
    silent = {pod["metadata"]["name"] for pod in world.residents} | set(world.silent)
    try:
        sandbox.create_pods(
            [
                *(_renamed(pod, pod["metadata"]["name"], "nobody") for pod in world.residents),
                *(_renamed(pod, name, scheduler.name) for name, pod in world.waiting.items()),
            ]
        )
        world.arrange(sandbox)
        with scheduler.run(sandbox):

            def all_said() -> dict[str, Said]:
                heard = hear(sandbox, scheduler.name)
                missing = [n for n, said in heard.items() if n not in silent and not said.is_told]
                assert missing == [], missing
                world.settled(heard)
                return heard

            what = f"all that {scheduler.name} has to say"
            return eventually(all_said, 30, what, interval_seconds=0.2)
    finally:
        sandbox.client.delete(f"{sandbox.path}/pods", grace_period_seconds=0)


def hear(sandbox: Sandbox, scheduler_name: str) -> dict[str, Said]:
    """Return what the API server holds about each pod.

    Uids, and the name a scheduler goes by, stand there as words: the rest is to be the same.
    """
    pods = sandbox.pods()
    words = {pod["metadata"]["uid"]: f"<uid of {name}>" for name, pod in pods.items()}
    words[scheduler_name] = "<scheduler>"

    def plain(text: str) -> str:
        for word, replacement in words.items():
            text = text.replace(word, replacement)
        return text

    events: dict[str, list[tuple[str, str, str, str]]] = {}
    path = f"/apis/events.k8s.io/v1/namespaces/{sandbox.namespace}/events"
    for event in sorted(sandbox.client.list(path), key=lambda e: str(e["eventTime"])):
        told = events.setdefault(event["regarding"].get("uid", ""), [])
        entry = (event["type"], event["reason"], event.get("action", ""), plain(event["note"]))
        if entry not in told:
            told.append(entry)
    return {
        name: Said(
            scheduled=_condition(pod, "PodScheduled", plain),
            disrupted=_condition(pod, "DisruptionTarget", plain),
            events=tuple(events.get(pod["metadata"]["uid"], ())),
            nominated=pod["status"].get("nominatedNodeName", ""),
            leaving="deletionTimestamp" in pod["metadata"],
        )
        for name, pod in pods.items()
    }


def _condition(pod: Object, kind: str, plain: Callable[[str], str]) -> tuple[str, str, str]:
    """Return what a condition says; nothing if it is not there."""
    for found in pod["status"].get("conditions") or ():
        if found["type"] == kind:
            return (found["status"], found.get("reason", ""), plain(found.get("message", "")))
    return ("", "", "")


def _renamed(pod: Object, name: str, scheduler_name: str) -> Object:
    """Return the pod under a situation's name, for one scheduler."""
    return pod | {
        "metadata": pod["metadata"] | {"name": name},
        "spec": pod["spec"] | {"schedulerName": scheduler_name},
    }
