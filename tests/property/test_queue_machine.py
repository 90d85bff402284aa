"""The scheduling queue as a state machine, beside a model of it that is one dictionary.

Every live pending pod is in exactly one place, none is there twice, and what is next, how long
pods wait and what the metrics say is what the model says. The machine plays the engine: it takes
pods out, brings them back with any outcome, and things happen to them meanwhile.
"""

import dataclasses
from collections import Counter
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.framework.shapes import shape_of
from k8s_scheduler.core.messages.checkpoint import QueueEntry
from k8s_scheduler.core.plugins.priority_sort import PrioritySort
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.queue.heap import Heap
from k8s_scheduler.core.queue.peers import preemption_key
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueuePlace
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.obs.metrics import Metrics
from tests.property.machines.pacing import Machine, paced
from tests.property.machines.queue_model import (
    ACTIVE,
    BACKOFF,
    GATED,
    PARKED,
    PLACES,
    POPPED,
    Facts,
    QueueModel,
    changed,
)
from tests.unit.core.plugins.plugin_bench import made

SCHEDULERS = ("default-scheduler", "other")
PLUGINS = ("NodeResourcesFit", "TaintToleration")
APPS = st.sampled_from("xy")
PRIORITIES = st.sampled_from([0, 0, 5])
FACTS = st.builds(
    Facts,
    uid=st.just(""),
    app=APPS,
    cpu=st.sampled_from(["0", "1", "4"]),
    priority=PRIORITIES,
    scheduler=st.sampled_from(SCHEDULERS),
    gated=st.sampled_from([False, False, False, True]),
    namespace=st.sampled_from("ab"),
)
# A tuple holds the plugins that reject a pod.
Outcome = str | tuple[str, ...]
OUTCOMES: list[Outcome] = ["bound", "failed", "failed", "too early", (), PLUGINS[:1], PLUGINS]
SORTS = st.sampled_from([PrioritySort(), made("SmallRequestFirst")])
SECONDS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 5.0, 11.0, 31.0, 290.0, 301.0])
wire = msgspec.msgpack.Encoder()
unwire = msgspec.msgpack.Decoder(QueueEntry)


class QueueMachine(Machine):
    pods = Bundle("pods")
    attempts = Bundle("attempts")

    @initialize(
        target=pods,
        sort=SORTS,
        max_attempts=st.sampled_from([None, 3]),
        facts=st.lists(FACTS, min_size=1, max_size=4),
    )
    def open(self, sort: Any, max_attempts: int | None, facts: list[Facts]) -> Any:
        self.now = 1000.0
        self.created = 0
        self.sort = sort
        self.policy = QueuePolicy(BackoffPolicy(), max_attempts=max_attempts)
        self.model = QueueModel(sort.sort_key, max_attempts)
        # What the engine holds.
        self.popped: dict[str, QueuedPod] = {}
        self.start()
        return multiple(*(self.create(one) for one in facts))

    def start(self) -> None:
        self.metrics = Metrics().scheduler
        self.queue = SchedulingQueue(
            sort_key=self.sort.sort_key,
            is_gated=self.is_gated,
            policy=self.policy,
            observer=Meter(self.metrics, SCHEDULERS),
        )

    def is_gated(self, pod: Pod) -> bool:
        return bool(pod.spec.scheduling_gates) or pod.metadata.uid in self.model.held

    # The watch

    @rule(target=pods, facts=FACTS)
    def create(self, facts: Facts) -> str:
        self.created += 1
        facts = dataclasses.replace(facts, uid=f"p{self.created}")
        self.queue.add(facts.pod(), now=self.now)
        self.model.add(facts, self.now)
        return facts.uid

    @rule(uid=pods, app=APPS, priority=PRIORITIES, ungate=st.booleans())
    def update(self, *, uid: str, app: str, priority: int, ungate: bool) -> None:
        if uid not in self.model.entries:
            return
        facts = changed(self.model.entries[uid].facts, app=app, priority=priority, ungate=ungate)
        if uid in self.popped:
            self.popped[uid].replace_pod(facts.pod())
        else:
            self.queue.update(facts.pod(), now=self.now)
        self.model.update(facts, self.now)

    @precondition(lambda self: len(self.model.entries) > 2)
    @rule(uid=consumes(pods))
    def delete(self, uid: str) -> None:
        """A pod is gone, or somebody else has bound it; the engine lets go of it too."""
        waits = self.queue.remove(PodUid(uid)) is not None
        assert waits == (uid in self.model.entries and uid not in self.popped)
        self.popped.pop(uid, None)
        if uid in self.model.entries:
            self.model.remove(uid)

    # The engine

    @rule(target=attempts)
    def begin(self) -> Any:
        """Take the next pod out."""
        expected = self.model.next_ones()
        queued = self.queue.pop()
        for uid in self.model.rejected():
            found = self.queue.get(PodUid(uid))
            if found is not None and found.place is QueuePlace.ACTIVE:
                self.model.pass_over(uid, None if queued is None else queued.uid)
        if queued is None:
            assert expected == []
            return multiple()
        assert queued.uid in expected
        self.model.pop(queued.uid)
        self.popped[queued.uid] = queued
        return queued.uid

    @rule(namespaces=st.sampled_from([(), (), ("a",), ("b",), ("a", "b")]))
    def hold_back(self, namespaces: tuple[str, ...]) -> None:
        """Bindings of some namespaces come to nothing, and others can be tried again."""
        self.queue.hold_back(namespaces)
        self.model.held_back = namespaces

    @precondition(lambda self: self.model.next_ones())
    @rule(outcome=st.sampled_from(OUTCOMES))
    def attempt(self, outcome: Outcome) -> None:
        """Take the next pod out, and be done with it at once."""
        self.end(self.begin(), outcome)

    @rule(uid=consumes(attempts), outcome=st.sampled_from(OUTCOMES))
    def end(self, uid: str, outcome: Outcome) -> None:
        """End an attempt: bound, failed, popped too early, or rejected by some plugins."""
        queued = self.popped.pop(uid, None)
        if queued is None:
            return
        # Whatever the attempt knew of: one may end long after another that began later.
        queued.seen = queued.sequence % 5
        if outcome == "bound":
            self.model.remove(uid)
        elif outcome == "failed":
            again = self.queue.return_failed(queued, now=self.now)
            assert again == self.model.fail(uid, self.now)
        elif isinstance(outcome, str):
            self.queue.set_aside(queued)
            self.model.set_aside(uid)
        else:
            self.queue.return_rejected(queued, outcome, now=self.now)
            self.model.reject(uid, outcome, self.now)

    @precondition(lambda self: self.model.next_ones())
    @rule(times=st.integers(2, 8), outcome=st.sampled_from(["failed", PLUGINS]))
    def keep_failing(self, times: int, outcome: Outcome) -> None:
        """Backoff shows its whole length only to those that have failed often."""
        for _ in range(times):
            self.pass_time(11.0, tick=True)
            if self.model.next_ones():
                self.attempt(outcome)
            for _ in self.model.within(PARKED):
                self.help(0, make_room=False)

    @precondition(lambda self: any(entry.aside for entry in self.model.entries.values()))
    @rule(scheduler=st.sampled_from(SCHEDULERS))
    def bring_back(self, scheduler: str) -> None:
        self.queue.bring_back(scheduler)
        self.model.bring_back(scheduler)

    @precondition(lambda self: self.model.within(PARKED))
    @rule(pick=st.integers(0, 7), make_room=st.booleans())
    def help(self, pick: int, *, make_room: bool) -> None:
        """Something helps a parked pod; or room is being made for it, and it waits for that."""
        uid = self.one_of(PARKED, pick)
        queued = self.queue.get(PodUid(uid))
        assert queued is not None
        if make_room:
            self.model.held.add(uid)
        else:
            self.queue.wake(queued, "NodeAdd", now=self.now)
            self.model.wake(uid, self.now)

    @precondition(lambda self: self.model.held)
    @rule(failed=st.booleans())
    def room_is_made(self, *, failed: bool) -> None:
        """What was to be done for a pod is done, or went wrong: then it is tried at once."""
        uid = min(self.model.held)
        self.model.held.discard(uid)
        if failed:
            self.queue.activate(PodUid(uid), now=self.now)
            self.model.activate(uid, self.now)
        else:
            self.queue.look_again(PodUid(uid), now=self.now)
            self.model.look_again(uid, self.now)

    def one_of(self, place: str, pick: int) -> str:
        found = self.model.within(place)
        return found[pick % len(found)]

    # Time

    @precondition(lambda self: self.model.within(BACKOFF) or self.model.within(PARKED))
    @rule(seconds=SECONDS, tick=st.sampled_from([True, True, False]))
    def pass_time(self, seconds: float, *, tick: bool) -> None:
        self.now += seconds
        if tick:
            self.queue.tick(now=self.now)
            self.model.tick(self.now)

    @precondition(lambda self: len(self.queue) > 0)
    @rule(keep_open=st.booleans())
    def restart(self, *, keep_open: bool) -> None:
        """A new queue goes on from what a checkpoint says of the old one.

        Attempts that are open go on, or are over as if their pods had come back in time.
        """
        while self.popped and not keep_open:
            self.end(min(self.popped), "failed")
        old = self.queue
        self.start()
        self.queue.hold_back(old.held_back)
        for queued in sorted(old, key=lambda queued: queued.sequence):
            self.queue.restore(_copied(queued))
        self.queue.places.next_sequence = old.places.next_sequence
        self.queue.last_backoff_flush = old.last_backoff_flush
        self.queue.last_parked_flush = old.last_parked_flush
        self.popped = {uid: _copied(queued) for uid, queued in self.popped.items()}
        self.model.forget_what_no_checkpoint_keeps()

    # What must hold

    @invariant()
    def nobody_is_lost(self) -> None:
        waiting = [uid for uid, e in self.model.entries.items() if e.place != POPPED]
        assert sorted(queued.uid for queued in self.queue) == sorted(waiting)
        assert len(self.queue) == len(waiting)
        assert sorted(self.popped) == sorted(self.model.within(POPPED))
        assert all(self.queue.get(PodUid(uid)) is None for uid in self.popped)
        # Those that are held back are only known to be when they are first in line.
        some = self.model.next_ones() or self.model.rejected()
        assert self.queue.has_candidates == bool(some)

    @invariant()
    def everybody_is_in_one_place(self) -> None:
        """The structures hold each pod once between them, where the model has it."""
        found: Counter[tuple[str, str]] = Counter()
        for heap in self.queue.places.active._heaps.values():
            found.update((uid, ACTIVE) for uid in _living(heap))
        found.update((uid, "aside") for uid in self.queue.places.aside)
        found.update((uid, BACKOFF) for uid in _living(self.queue.places.backoff))
        found.update((uid, "error") for uid in _living(self.queue.places.error_backoff))
        found.update((queued.uid, PARKED) for queued in self.queue.parked)
        expected: Counter[tuple[str, str]] = Counter()
        for uid, entry in self.model.entries.items():
            place = entry.place
            if place == ACTIVE and entry.aside:
                place = "aside"
            elif place == BACKOFF and entry.errors:
                place = "error"
            if place not in (POPPED, GATED):
                expected[uid, place] = 1
        assert found == expected

    @invariant()
    def stories_are_remembered(self) -> None:
        for uid, entry in self.model.entries.items():
            queued = self.popped.get(uid) or self.queue.get(PodUid(uid))
            assert queued is not None
            assert queued.pod == entry.facts.pod()
            assert queued.timestamp == entry.timestamp
            assert queued.first_active == entry.first_active
            assert queued.attempts == entry.attempts
            assert queued.unschedulable_count == entry.rejections
            assert queued.consecutive_errors == entry.errors
            assert queued.rejectors == entry.rejectors
            assert queued.was_flushed == entry.flushed
            if entry.place != POPPED:
                assert queued.place.value == entry.place
            if entry.place == BACKOFF:
                assert queued.backoff_expiry == entry.expiry

    @invariant()
    def parked_pods_are_known_by_group(self) -> None:
        parked = self.queue.parked
        groups = parked.groups()
        assert [g.first.sequence for g in groups] == sorted(g.first.sequence for g in groups)
        listed = [queued.uid for alike in groups for queued in alike]
        assert sorted(listed) == sorted(self.model.within(PARKED))
        for queued in parked:
            assert queued.shape == shape_of(queued.pod)
            assert queued in parked.group_of(queued)
            assert parked.group_of(queued).rejectors >= set(queued.rejectors)
        for alike in groups:
            # Nobody has asked for labels.
            assert len({queued.shape.spec for queued in alike}) == 1

    @invariant()
    def what_is_kept_of_parked_pods_is_what_they_say(self) -> None:
        for alike in self.queue.parked.groups():
            pods = list(alike)
            assert alike.in_order() == sorted(pods, key=lambda queued: queued.sequence)
            assert len(alike) == len(pods)
            assert alike.first is pods[0]
            assert alike.seen == min(queued.seen for queued in pods)
            assert alike.found_no_node == any(not queued.rejectors for queued in pods)
            groups = alike.peers()
            for peers in groups:
                assert all(preemption_key(queued.pod) == peers.key for queued in peers)
            priorities = [peers.key.priority for peers in groups]
            assert priorities == sorted(priorities, reverse=True)
            assert len({peers.key for peers in groups}) == len(groups)
            listed = [queued.uid for peers in groups for queued in peers]
            assert sorted(listed) == sorted(queued.uid for queued in pods)

    @invariant()
    def metrics_count_what_waits(self) -> None:
        pending = self.metrics.pending_pods
        found = {place: pending.labels(place).value for place in PLACES}
        assert found == self.model.counts()
        expected = self.model.rejected_by()
        for plugin in (*PLUGINS, "PodMaxAttempts"):
            for scheduler in SCHEDULERS:
                gauge = self.metrics.unschedulable_pods.labels(plugin, scheduler)
                assert gauge.value == expected[plugin, scheduler]


def _living(heap: Heap[QueuedPod]) -> list[str]:
    """Return the uids that would come out of a heap, as often as they would."""
    return [entry[2] for entry in heap._entries if heap._is_live(entry)]


def _copied(queued: QueuedPod) -> QueuedPod:
    return QueuedPod.from_entry(unwire.decode(wire.encode(queued.entry())))


TestQueue = QueueMachine.TestCase
TestQueue.settings = paced(times=1.5, steps=60)
