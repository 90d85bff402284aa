"""Promises of room as state machines, beside a model that is a dictionary: pod -> node and pod.

The first machine asks the cache directly. The second one tells a whole core of pods as the watch
does, while they wait, while extenders are asked about them and while they are on their way: there
promises follow what statuses say, but for those that are still on their way into a status.
"""

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    ExtenderAnswer,
    NodeChanged,
    PodChanged,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import AskExtender, Bind, Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.news.changes import Change
from k8s_scheduler.core.state.pods.nominations import Nominations
from tests.builders import make_node, make_pod
from tests.fakes.extender import FakeExtender
from tests.inside import inside
from tests.property.machines.pacing import Machine, paced
from tests.unit.core.harness import profile

NODES = ("n0", "n1", "n2")
NAMES = st.sampled_from(NODES)
APPS = st.sampled_from("xy")
Promises = dict[str, tuple[str, Pod]]


def check(found: Nominations, promises: Promises) -> None:
    """Compare everything that can be asked with the dictionary."""
    assert len(found) == len(promises)
    assert {p.metadata.uid: (node, p) for node, p in found.entries()} == promises
    assert found.nodes() == tuple(sorted({node for node, _ in promises.values()}))
    for uid, (node, _) in promises.items():
        assert found.node_of(PodUid(uid)) == node
    for name in NODES:
        expected = {uid: pod for uid, (node, pod) in promises.items() if node == name}
        assert dict(found.on(NodeName(name))) == expected


class PromisesInTheCache(Machine):
    created = Bundle("created")

    @initialize()
    def open(self) -> None:
        self.cache = Cache()
        self.count = 0
        self.promises: Promises = {}
        self.versions: dict[str, Pod] = {}
        self.placed: dict[str, str] = {}
        self.assumed: set[str] = set()
        self.nodes: set[str] = set()

    def ended(self, uid: str) -> dict[str, Change]:
        """Return what the end of a promise has others be told; it is over from now on."""
        node, _ = self.promises.pop(uid, ("", None))
        known = self.nodes | set(self.placed.values())
        return {node: Change.ASSIGNED_POD_DELETE} if node in known else {}

    def noted(self) -> dict[str, Change]:
        changes = self.cache.changes.drain().rows
        return {self.cache.nodes.name_of(row): change for row, change in changes.items()}

    @rule(name=NAMES)
    def put_node(self, name: str) -> None:
        self.cache.put_node(make_node(name).obj())
        self.nodes.add(name)
        self.cache.changes.drain()

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(name=NAMES)
    def drop_node(self, name: str) -> None:
        """The promise outlives the node: it may come back."""
        self.cache.remove_node(NodeName(name))
        self.nodes.discard(name)
        self.cache.changes.drain()

    @rule(target=created, app=APPS)
    def create(self, app: str) -> str:
        self.count += 1
        uid = f"u{self.count}"
        self.versions[uid] = make_pod("p").uid(uid).label(app=app).request(cpu="1").obj()
        return uid

    @rule(uid=created, app=APPS, version=st.integers(1, 9))
    def change(self, uid: str, app: str, version: int) -> None:
        """Only what others can see of a pod is news to them when it is promised room again."""
        pod = self.versions[uid]
        metadata = msgspec.structs.replace(
            pod.metadata, labels={"app": app}, resource_version=str(version)
        )
        self.versions[uid] = msgspec.structs.replace(pod, metadata=metadata)

    @rule(uid=created, name=NAMES)
    def nominate(self, uid: str, name: str) -> None:
        if uid in self.placed:
            return
        pod = self.versions[uid]
        node, known = self.promises.get(uid, ("", pod))
        renewed = node == name and known.metadata.labels == pod.metadata.labels
        expected = {} if renewed else self.ended(uid)
        self.cache.nominate(pod, NodeName(name))
        self.promises.pop(uid, None)
        self.promises[uid] = (name, pod)
        assert self.noted() == expected

    @rule(uid=created)
    def end(self, uid: str) -> None:
        expected = self.ended(uid)
        self.cache.end_nomination(PodUid(uid))
        assert self.noted() == expected

    @precondition(lambda self: self.nodes)
    @rule(uid=created, pick=st.integers(0, 2))
    def assume(self, uid: str, pick: int) -> None:
        if uid not in self.placed:
            name = NodeName(sorted(self.nodes)[pick % len(self.nodes)])
            row = self.cache.nodes.row_of(name)
            assert row is not None
            expected = self.ended(uid)
            self.cache.assume(self.versions[uid], row)
            self.placed[uid] = name
            self.assumed.add(uid)
            assert self.noted() == expected

    @precondition(lambda self: self.assumed)
    @rule()
    def forget(self) -> None:
        """Who could not be bound has lost the promise as well."""
        uid = min(self.assumed)
        self.assumed.discard(uid)
        del self.placed[uid]
        self.cache.forget(PodUid(uid), quietly=True)
        assert self.noted() == {}

    @rule(uid=created, name=NAMES)
    def see_bound(self, uid: str, name: str) -> None:
        if self.placed.get(uid, name) != name:
            return
        if uid not in self.placed:
            self.ended(uid)
        spec = msgspec.structs.replace(self.versions[uid].spec, node_name=name)
        self.versions[uid] = msgspec.structs.replace(self.versions[uid], spec=spec)
        self.cache.put_bound(self.versions[uid])
        self.placed[uid] = name
        self.assumed.discard(uid)
        self.cache.changes.drain()

    @rule(uid=consumes(created))
    def delete(self, uid: str) -> None:
        self.cache.remove_pod(PodUid(uid))
        self.placed.pop(uid, None)
        self.assumed.discard(uid)
        self.cache.changes.drain()
        expected = self.ended(uid)
        self.cache.end_nomination(PodUid(uid))
        assert self.noted() == expected

    @invariant()
    def promises_are_the_dictionary(self) -> None:
        check(self.cache.nominations, self.promises)


SETUP = Setup(
    profiles=(profile(),), extenders=(FakeExtender("asker", prioritizes=False, label="ask"),)
)


class PromisesInTheCore(Machine):
    created = Bundle("created")

    @initialize()
    def open(self) -> None:
        self.core = Scheduler(SETUP)
        self.now = 1000.0
        self.count = 0
        self.promises: Promises = {}
        # What the core was last told of each pod, and which of them are on their way or placed.
        self.seen: dict[str, dict[str, Any]] = {}
        self.binds: dict[str, Bind] = {}
        self.placed: set[str] = set()
        self.question: AskExtender | None = None
        for name in NODES:
            self.core.handle(NodeChanged(self.now, NodeName(name), make_node(name).obj()))

    def tell(self, message: Any) -> None:
        out: list[Instruction] = self.core.handle(message)
        for instruction in out:
            if isinstance(instruction, Bind):
                # It has room now.
                self.binds[instruction.uid] = instruction
                self.placed.add(instruction.uid)
                self.promises.pop(instruction.uid, None)
            elif isinstance(instruction, AskExtender):
                self.question = instruction

    def show(self, uid: str, raw: dict[str, Any]) -> None:
        """Tell of a version; the model follows kube-scheduler's rule."""
        pod: Pod = msgspec.convert(copy.deepcopy(raw), Pod)
        before = self.seen.get(uid)
        self.seen[uid] = raw
        named, ours = pod.status.nominated_node_name, pod.spec.scheduler_name != "other"
        if pod.spec.node_name or uid in self.placed or not ours:
            self.promises.pop(uid, None)
            if pod.spec.node_name:
                self.placed.add(uid)
        elif named:
            self.promises[uid] = (named, pod)
        elif before is None or before["status"].get("nominatedNodeName"):
            self.promises.pop(uid, None)
        elif uid in self.promises:
            # A promise of ours is on its way to the status; it is one to the pod as it is now.
            self.promises[uid] = (self.promises[uid][0], pod)
        self.tell(PodChanged(self.now, PodUid(uid), pod))

    @rule(
        target=created,
        app=APPS,
        asked=st.booleans(),
        named=st.sampled_from(["", *NODES]),
        scheduler=st.sampled_from(["default-scheduler"] * 3 + ["other"]),
    )
    def create(self, *, app: str, asked: bool, named: str, scheduler: str) -> str:
        self.count += 1
        uid = f"u{self.count}"
        pod = make_pod(f"p{self.count % 3}").uid(uid).label(app=app).scheduler(scheduler)
        if asked:
            pod.label(ask="yes")
        pod.raw["status"]["nominatedNodeName"] = named
        self.show(uid, pod.raw)
        return uid

    @rule(uid=created, app=APPS)
    def relabel(self, uid: str, app: str) -> None:
        raw = copy.deepcopy(self.seen[uid])
        raw["metadata"]["labels"]["app"] = app
        self.show(uid, raw)

    @rule(uid=created, named=st.sampled_from(["", *NODES]))
    def write_status(self, uid: str, named: str) -> None:
        raw = copy.deepcopy(self.seen[uid])
        raw["status"]["nominatedNodeName"] = named
        self.show(uid, raw)

    @rule(uid=created, name=NAMES)
    def bind_by_stranger(self, uid: str, name: str) -> None:
        raw = copy.deepcopy(self.seen[uid])
        if not raw["spec"].get("nodeName") and uid not in self.binds:
            raw["spec"]["nodeName"] = name
            self.show(uid, raw)

    @rule(uid=consumes(created))
    def delete(self, uid: str) -> None:
        del self.seen[uid]
        self.binds.pop(uid, None)
        self.placed.discard(uid)
        self.promises.pop(uid, None)
        self.tell(PodChanged(self.now, PodUid(uid), None))

    # What the engine promises by itself, as preemption does to a pod that is back in the queue

    @rule(uid=created, name=NAMES)
    def promise(self, uid: str, name: str) -> None:
        queued = inside(self.core).queue.get(PodUid(uid))
        if queued is not None:
            inside(self.core).cache.nominate(queued.pod, NodeName(name))
            self.promises[uid] = (name, queued.pod)

    # Decisions

    @rule(limit=st.sampled_from([1, 1, 9]))
    def schedule(self, limit: int) -> None:
        self.tell(Schedule(self.now, limit))

    @precondition(lambda self: self.question is not None)
    @rule(said=st.sampled_from(["yes", "no", "error"]))
    def answer(self, said: str) -> None:
        asked, self.question = self.question, None
        assert asked is not None
        if said != "yes" and asked.uid in self.seen and asked.uid not in self.placed:
            # A pod that fails, or that no node takes, is promised nothing any more.
            self.promises.pop(asked.uid, None)
        message = ExtenderAnswer(
            self.now,
            asked.uid,
            asked.attempt,
            asked.request,
            error="no answer" if said == "error" else "",
            nodes=asked.nodes if said == "yes" else (),
        )
        self.tell(message)

    @precondition(lambda self: self.binds)
    @rule(bound=st.booleans())
    def answer_bind(self, *, bound: bool) -> None:
        uid = min(self.binds)
        bind = self.binds.pop(uid)
        if bound:
            raw = copy.deepcopy(self.seen[uid])
            raw["spec"]["nodeName"] = bind.node
            self.show(uid, raw)
        else:
            self.placed.discard(uid)
        self.tell(BindResult(self.now, bind.uid, bind.attempt, bind.node, bound))

    @rule(seconds=st.sampled_from([1.0, 12.0, 400.0]))
    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.tell(Tick(self.now))

    @invariant()
    def promises_are_the_dictionary(self) -> None:
        check(inside(self.core).cache.nominations, self.promises)


TestPromisesInTheCache = PromisesInTheCache.TestCase
TestPromisesInTheCache.settings = paced(times=1, steps=40)
TestPromisesInTheCore = PromisesInTheCore.TestCase
TestPromisesInTheCore.settings = paced(times=2, steps=50)
