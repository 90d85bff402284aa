"""The scheduling queue: every pending pod is in exactly one place.

                 add                    pop                 (in flight, with the engine)
    (unknown) ─────────▶ ACTIVE ─────────────────────────▶ ────────┬──────────▶ bound
        │                 ▲  ▲                             │       │
        │ gated           │  │ backoff over, or nothing    │error  │rejected
        ▼                 │  │ else to do (rejected only)  ▼       ▼
      GATED ──────────────┘  └────────────────────────── BACKOFF  PARKED
             gates gone                                    ▲       │
                                                           └───────┘
                                             an event helps, or 5 minutes are over
                                             (straight to ACTIVE if its backoff is over)

Some parked pods stand in a line: a search for room is due to them that was not finished, or not
begun because others are more important. Each is popped in its turn, or when something wakes it.

A rejected pod is parked until something happens that lets it pass; an error is retried after its
backoff whatever happens, or parked too where attempts are limited. Nothing is ever dropped: a pod
leaves by being bound or deleted. Time comes in with every call.
Pods of a namespace that is held back (as many bindings as it may have are under way, some without a
known outcome) stay where they are and are passed over; among others the order is strict, but for
those that give way to others as important (`giving_way`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.shapes import shape_of
from k8s_scheduler.core.queue.backoff import BackoffPolicy, is_over
from k8s_scheduler.core.queue.giving_way import GivingWay
from k8s_scheduler.core.queue.heap import Heap
from k8s_scheduler.core.queue.line import Line
from k8s_scheduler.core.queue.lines import Lines
from k8s_scheduler.core.queue.observer import QueueObserver
from k8s_scheduler.core.queue.parked import Parked
from k8s_scheduler.core.queue.quarantine import Quarantine
from k8s_scheduler.core.queue.queued_pod import Place, QueuedPod

BACKOFF_FLUSH_SECONDS = 1.0
PARKED_FLUSH_SECONDS = 30.0
DEFAULT_PARKED_LIMIT_SECONDS = 300.0
# Of each kind, so many pods at most are made active by one tick; the others by the next ones.
MOST_FLUSHED = 500

# Rejected pods of namespaces that are held back, which one `pop` at most makes active.
_MOST_PASSED_OVER = 64

# Stands in the place of a rejecting plugin for pods that were tried too often.
MAX_ATTEMPTS = "PodMaxAttempts"

# Why pods move that are judged by another configuration; kube-scheduler knows no such event.
CONFIGURATION_CHANGE = "ConfigurationChange"

SortKey = Callable[[Pod, float], tuple[float, ...]]
Gate = Callable[[Pod], bool]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """What is configurable about waiting."""

    backoff: BackoffPolicy
    parked_limit_seconds: float = DEFAULT_PARKED_LIMIT_SECONDS
    # After as many attempts an error is no reason to try again; None: it always is.
    max_attempts: int | None = None
    # So many parked pods are told each second, at most, what holds them back now; 0: none is.
    # Recordings that say nothing of it are from before there was such a thing.
    renewals_per_second: int = 0


class SchedulingQueue:
    """Pending pods."""

    def __init__(
        self,
        *,
        sort_key: SortKey,
        is_gated: Gate,
        policy: QueuePolicy,
        observer: QueueObserver,
        is_over_limit: Gate = lambda _pod: False,
    ) -> None:
        self._sort_key = sort_key
        self._is_gated = is_gated
        self._is_over_limit = is_over_limit
        self._policy = policy
        self._observer = observer
        # By namespace.
        self.giving_way = GivingWay()
        self._active: Lines[QueuedPod] = Lines(giving_way=self.giving_way)
        # Rejected pods may be tried early when there is nothing else to do; errors may not.
        self._backoff: Heap[QueuedPod] = Heap()
        self._error_backoff: Heap[QueuedPod] = Heap()
        self.parked = Parked()
        self.quarantine = Quarantine()
        # Active pods that have to wait until a decision of their profile is no longer suspended.
        self._aside: dict[PodUid, QueuedPod] = {}
        self.line = Line()
        # Every pending pod; its `place` says which of the structures above holds it too.
        self._pods: dict[PodUid, QueuedPod] = {}
        self.next_sequence = 0
        self.last_backoff_flush = 0.0
        self.last_parked_flush = 0.0

    # From the watch

    def add(self, pod: Pod, *, now: float) -> None:
        """Take a pod that is not in the queue."""
        queued = QueuedPod(pod, timestamp=now)
        if self._is_gated(pod):
            self._enter(queued, Place.GATED, "UnscheduledPodAdd")
        else:
            queued.first_active = now
            self._enter(queued, Place.ACTIVE, "UnscheduledPodAdd")

    def update(self, pod: Pod, *, now: float) -> None:
        """Take a newer version of a pod in the queue."""
        queued = self._pods[PodUid(pod.metadata.uid)]
        place = queued.place
        if place is Place.PARKED and shape_of(pod) == (shape := queued.shape):
            # Nothing that judging reads has changed: it stays where it is.
            queued.replace_pod(pod, shape)
            self.parked.replaced(queued)
            return
        self._take_from_place(queued)
        queued.replace_pod(pod)
        # A gated or parked pod that changed in a way scheduling reads may pass now.
        if place in (Place.GATED, Place.PARKED):
            self._reenter(queued, "UnscheduledPodUpdate", now=now)
        elif self._is_over_limit(pod):
            # Gates are not closed again, but a pod may come to ask for more than it may.
            self._put(queued, Place.GATED)
            self._observer.moved(queued, source=place, target=Place.GATED)
            self._observer.entered(Place.GATED, "UnscheduledPodUpdate")
        else:
            self._put(queued, place)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        """Take a pod out, wherever it waits."""
        queued = self._pods.get(uid)
        if queued is not None:
            self._take_from_place(queued)
            self._leave(queued)
            self.quarantine.end(uid)
        return queued

    def isolate(self, uid: PodUid, *, deaths: int, not_before: float) -> QueuedPod | None:
        """Put a pending pod into quarantine; return it, or None if it does not wait here."""
        queued = self._pods.get(uid)
        if queued is None:
            return None
        may_be_tried = queued.place in (Place.ACTIVE, Place.BACKOFF)
        if may_be_tried:
            self._take_from_place(queued)
        self.quarantine.begin(uid, deaths=deaths, not_before=not_before)
        if may_be_tried:
            self._put(queued, queued.place, sequence=queued.sequence)
        return queued

    # From the configuration

    def reconfigure(
        self, sort_key: SortKey, policy: QueuePolicy, *, judged_anew: Gate, now: float
    ) -> None:
        """Go by another order and other waits; pods that are judged otherwise get another try.

        Everybody else stays where they are, in the order in which they came where all else is
        equal. All pods must be served: who is not leaves before.
        """
        self.dissolve_line()
        is_sorted = sort_key == self._sort_key and policy == self._policy
        self._sort_key, self._policy = sort_key, policy
        if not is_sorted:
            self._active = Lines(self._active.held, giving_way=self.giving_way)
            self._backoff, self._error_backoff = Heap(), Heap()
        # By sequence, which is part of checkpoints, and not as the dict happens to be laid out.
        for queued in sorted(self._pods.values(), key=lambda q: q.sequence):
            is_judged = judged_anew(queued.pod)
            if queued.place in (Place.PARKED, Place.GATED):
                if is_judged:
                    self._take_from_place(queued)
                    self._reenter(queued, CONFIGURATION_CHANGE, now=now)
            elif is_judged or not is_sorted:
                self._take_from_place(queued)
                if queued.place is Place.BACKOFF:
                    queued.backoff_expiry = self._expiry(queued)
                self._put_back(queued, judge=is_judged)

    def _put_back(self, queued: QueuedPod, *, judge: bool) -> None:
        """Put a pod back that may be tried, unless it is judged and found to be gated now."""
        source = queued.place
        target = Place.GATED if judge and self._is_gated(queued.pod) else source
        self._put(queued, target, sequence=queued.sequence)
        if target is not source:
            self._observer.moved(queued, source=source, target=target)
            self._observer.entered(target, CONFIGURATION_CHANGE)

    # The line

    def stand_in_line(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Park a popped pod whose attempt is not over: its search goes on in its turn."""
        queued.attempts -= 1
        queued.rejectors = rejectors
        self._pods[queued.uid] = queued
        self._put(queued, Place.PARKED, sequence=queued.sequence)
        self.line.add(queued, order=self._sort_key(queued.pod, queued.timestamp))
        self._observer.moved(queued, source=None, target=Place.PARKED)

    def joins_line(self, queued: QueuedPod) -> bool:
        """Let a popped pod stand behind one of its kind, untried; False if there is none.

        It would be rejected where that one was: what has happened since is judged for both.
        """
        like = self.line.find_like(queued)
        if like is None:
            return False
        alike = self.parked.group_of(like)
        queued.seen = alike.seen
        self.stand_in_line(queued, tuple(sorted(alike.rejectors)))
        return True

    def is_ahead_of(self, queued: QueuedPod) -> bool:
        """Return whether a pod in the line comes before a popped one."""
        order = self._sort_key(queued.pod, queued.timestamp)
        first = self.line.first_order
        return first is not None and first < (order, queued.sequence)

    @property
    def line_is_next(self) -> bool:
        """Return whether the first in the line comes before all active pods."""
        first, active = self.line.first_order, self._active.peek()
        if first is None or active is None:
            return first is not None
        return first[0] <= active[0]

    def pop_line(self) -> QueuedPod | None:
        """Take out the first in the line."""
        queued = self.line.first
        if queued is not None:
            self._take_from_place(queued)
            self._leave(queued)
            queued.attempts += 1
        return queued

    def dissolve_line(self) -> None:
        """Let all in the line be tried as if they had just come to be active."""
        while (queued := self.line.first) is not None:
            self._take_from_place(queued)
            self._put(queued, Place.ACTIVE, sequence=queued.sequence)
            self._observer.moved(queued, source=Place.PARKED, target=Place.ACTIVE)

    # For the engine

    def pop(self) -> QueuedPod | None:
        """Take out the next pod to try: an active one, or else the first rejected one."""
        queued = self._active.pop() or self._pop_rejected()
        return None if queued is None else self._popped(queued)

    def pop_quarantined(self) -> QueuedPod | None:
        """Take out a pod of the quarantine whose time has come; for when `pop` gives none."""
        queued = self.quarantine.pop()
        return None if queued is None else self._popped(queued)

    def _popped(self, queued: QueuedPod) -> QueuedPod:
        self._leave(queued)
        queued.attempts += 1
        return queued

    def _pop_rejected(self) -> QueuedPod | None:
        """Take out the first rejected pod; those that are held back wait as active ones instead."""
        for _ in range(_MOST_PASSED_OVER):
            queued = self._backoff.pop()
            if queued is None or queued.pod.metadata.namespace not in self._active.held:
                return queued
            self._become_active(queued)
        return None

    def hold_back(self, namespaces: Iterable[str]) -> None:
        """Pass over the pods of these namespaces from now on, and of no other."""
        self._active.hold(namespaces)

    @property
    def held_back(self) -> tuple[str, ...]:
        """The namespaces whose pods are passed over, sorted."""
        return tuple(sorted(self._active.held))

    def return_rejected(self, queued: QueuedPod, rejectors: tuple[str, ...], *, now: float) -> None:
        """Park a pod that no node would take."""
        self.giving_way.failed(queued.pod.metadata.namespace)
        queued.timestamp = now
        queued.was_flushed = False
        queued.unschedulable_count += 1
        queued.consecutive_errors = 0
        queued.rejectors = rejectors
        self._enter(queued, Place.PARKED, "ScheduleAttemptFailure")

    def return_failed(self, queued: QueuedPod, *, now: float) -> bool:
        """Take back a pod whose attempt ended in an error; it is tried again after its backoff.

        Return False if it has been tried often enough: it is parked then, until something happens
        or it has been parked for long.
        """
        self.giving_way.failed(queued.pod.metadata.namespace)
        queued.timestamp = now
        queued.was_flushed = False
        queued.consecutive_errors += 1
        queued.backoff_expiry = self._expiry(queued)
        limit = self._policy.max_attempts
        if limit is not None and queued.attempts >= limit:
            queued.rejectors = (MAX_ATTEMPTS,)
            self._enter(queued, Place.PARKED, "ScheduleAttemptFailure")
            return False
        queued.rejectors = ()
        self._enter(queued, Place.BACKOFF, "ScheduleAttemptFailure")
        return True

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins reject a parked pod now; it stays where it is."""
        if rejectors != queued.rejectors:
            self._observer.rejudged(queued, rejectors)
            self.parked.rejudged(queued, rejectors)

    @property
    def renewals_per_second(self) -> int:
        """How many parked pods may be told each second what holds them back now."""
        return self._policy.renewals_per_second

    def wake(self, queued: QueuedPod, event: str, *, now: float) -> None:
        """Give a parked pod another try: at once, or when its backoff is over."""
        self._take_from_place(queued)
        self._reenter(queued, event, now=now)

    def activate(self, uid: PodUid, *, now: float) -> None:
        """Try a pod again at once, whatever its backoff says; its gates still count."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is not Place.ACTIVE:
            self._take_from_place(queued)
            self._reenter(queued, "ForceActivate", now=now, at_once=True)

    def look_again(self, uid: PodUid, *, now: float) -> None:
        """See whether a gated pod may pass now."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.GATED:
            self._reenter(queued, "ForceActivate", now=now)

    def set_aside(self, queued: QueuedPod) -> None:
        """Take back a pod that was popped too early: it is active, and waits for `bring_back`."""
        queued.attempts -= 1
        self._pods[queued.uid] = queued
        queued.place = Place.ACTIVE
        self._aside[queued.uid] = queued
        self._observer.moved(queued, source=None, target=Place.ACTIVE)

    def bring_back(self, scheduler_name: str) -> None:
        """Let the pods of a profile that were set aside be popped again."""
        for queued in list(self._aside.values()):
            if queued.pod.spec.scheduler_name == scheduler_name:
                del self._aside[queued.uid]
                self._put(queued, Place.ACTIVE, sequence=queued.sequence)

    # Time

    def tick(self, *, now: float) -> None:
        """Do what the timers are due for."""
        if now - self.last_backoff_flush >= BACKOFF_FLUSH_SECONDS:
            self.last_backoff_flush = now
            self._flush_backoff(self._backoff, now)
            self._flush_backoff(self._error_backoff, now)
        self.quarantine.tick(now)
        if now - self.last_parked_flush >= PARKED_FLUSH_SECONDS:
            limit = self._policy.parked_limit_seconds
            overdue = [q for q in self.parked if now - q.timestamp > limit]
            for queued in overdue[:MOST_FLUSHED]:
                queued.was_flushed = True
                self.wake(queued, "UnschedulableTimeout", now=now)
            if len(overdue) <= MOST_FLUSHED:
                self.last_parked_flush = now
                self.giving_way.forget()

    # Reading

    def get(self, uid: PodUid) -> QueuedPod | None:
        """Return a pending pod, wherever it waits."""
        return self._pods.get(uid)

    @property
    def has_active(self) -> bool:
        """Return whether a pod is active that is not held back."""
        return self._active.has_free

    @property
    def has_candidates(self) -> bool:
        """Return whether there is a pod to try, or would be one after some more are passed over."""
        return self._has_ordinary or self.quarantine.next_uid is not None

    @property
    def next_quarantined(self) -> PodUid | None:
        """Return the pod of the quarantine that is to be tried now, as there is no other one."""
        return None if self._has_ordinary else self.quarantine.next_uid

    @property
    def _has_ordinary(self) -> bool:
        return self._active.has_free or bool(len(self._backoff) or len(self.line))

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    # Checkpoints

    def restore(self, queued: QueuedPod) -> None:
        """Put a pod where a checkpoint says it was."""
        self._pods[queued.uid] = queued
        self._put(queued, queued.place, sequence=queued.sequence)
        self._observer.moved(queued, source=None, target=queued.place)

    # Moves

    def _enter(self, queued: QueuedPod, place: Place, event: str) -> None:
        self._pods[queued.uid] = queued
        self._put(queued, place)
        self._observer.moved(queued, source=None, target=place)
        self._observer.entered(place, event)

    def _reenter(self, queued: QueuedPod, event: str, *, now: float, at_once: bool = False) -> None:
        source = queued.place
        if self._is_gated(queued.pod):
            target = Place.GATED
        else:
            queued.backoff_expiry = self._expiry(queued)
            ready = at_once or is_over(queued.backoff_expiry, now)
            target = Place.ACTIVE if ready else Place.BACKOFF
            if queued.first_active is None:
                queued.first_active = now
        self._put(queued, target)
        if source is not target:
            self._observer.moved(queued, source=source, target=target)
            self._observer.entered(target, event)

    def _leave(self, queued: QueuedPod) -> None:
        del self._pods[queued.uid]
        self._observer.moved(queued, source=queued.place, target=None)

    def _put(self, queued: QueuedPod, place: Place, *, sequence: int | None = None) -> None:
        queued.place = place
        if sequence is None:
            sequence = self.next_sequence
            self.next_sequence += 1
        queued.sequence = sequence
        if queued.uid in self.quarantine and place in (Place.ACTIVE, Place.BACKOFF):
            self.quarantine.hold(queued)
            return
        order = self._sort_key(queued.pod, queued.timestamp)
        if place is Place.ACTIVE:
            line = queued.pod.metadata.namespace
            self._active.push(queued.uid, queued, line=line, order=order, sequence=sequence)
        elif place is Place.BACKOFF:
            heap = self._error_backoff if queued.consecutive_errors else self._backoff
            heap.push(queued.uid, queued, order=(queued.backoff_expiry, *order), sequence=sequence)
        elif place is Place.PARKED:
            self.parked.add(queued)

    def _take_from_place(self, queued: QueuedPod) -> None:
        if self._aside.pop(queued.uid, None) is not None or self.quarantine.take(queued.uid):
            return
        if queued.place is Place.ACTIVE:
            self._active.remove(queued.uid)
        elif queued.place is Place.BACKOFF:
            heap = self._error_backoff if queued.consecutive_errors else self._backoff
            heap.remove(queued.uid)
        elif queued.place is Place.PARKED:
            self.parked.remove(queued.uid)
            self.line.remove(queued)

    def _flush_backoff(self, heap: Heap[QueuedPod], now: float) -> None:
        for _ in range(MOST_FLUSHED):
            first = heap.peek()
            if first is None or not is_over(first[0][0], now):
                return
            heap.pop()
            self._become_active(first[1])

    def _become_active(self, queued: QueuedPod) -> None:
        self._put(queued, Place.ACTIVE)
        self._observer.moved(queued, source=Place.BACKOFF, target=Place.ACTIVE)
        self._observer.entered(Place.ACTIVE, "BackoffComplete")

    def _expiry(self, queued: QueuedPod) -> float:
        return self._policy.backoff.expiry(
            timestamp=queued.timestamp,
            unschedulable_count=queued.unschedulable_count,
            errors=queued.consecutive_errors,
        )
