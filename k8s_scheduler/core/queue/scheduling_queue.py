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

A rejected pod is parked until an event lets it pass; an error is retried after its backoff, or
parked too where attempts are limited. Nothing is dropped: a pod leaves by being bound or deleted.
Pods of a namespace that is held back (it has as many bindings under way as it may) are passed over;
among others the order is strict, but for those that give way to others as important (`giving_way`).
"""

from collections.abc import Callable, Iterable, Iterator

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.shapes import shape_of
from k8s_scheduler.core.queue.backoff import QueuePolicy, is_over
from k8s_scheduler.core.queue.places import MOST_FLUSHED, Places, SortKey, pop_expired
from k8s_scheduler.core.queue.queued_pod import QueuedPod, QueueObserver, QueuePlace

BACKOFF_FLUSH_SECONDS = 1.0
PARKED_FLUSH_SECONDS = 30.0
# Rejected pods of namespaces that are held back, which one `pop` at most makes active.
_MOST_PASSED_OVER = 64
# Stands in the place of a rejecting plugin for pods that were tried too often.
MAX_ATTEMPTS = "PodMaxAttempts"
# Why pods judged by another configuration move; kube-scheduler has no such event.
CONFIGURATION_CHANGE = "ConfigurationChange"

Gate = Callable[[Pod], bool]


class SchedulingQueue:
    """Moves pending pods between the places, and tells the observer."""

    def __init__(
        self,
        *,
        sort_key: SortKey,
        is_gated: Gate,
        policy: QueuePolicy,
        observer: QueueObserver,
        is_over_limit: Gate = lambda _pod: False,
    ) -> None:
        self._is_gated = is_gated
        self._is_over_limit = is_over_limit
        self._policy = policy
        self._observer = observer
        # Which structure holds a pod besides `_pods`, by its `place`.
        self.places = places = Places(sort_key)
        self.parked, self.quarantine, self.line = places.parked, places.quarantine, places.line
        self.giving_way = places.giving_way
        self._pods: dict[PodUid, QueuedPod] = {}
        self.last_backoff_flush = self.last_parked_flush = 0.0

    # From the watch

    def add(self, pod: Pod, *, now: float) -> None:
        queued = QueuedPod(pod, timestamp=now)
        if self._is_gated(pod):
            self._enter(queued, QueuePlace.GATED, "UnscheduledPodAdd")
        else:
            queued.first_active = now
            self._enter(queued, QueuePlace.ACTIVE, "UnscheduledPodAdd")

    def update(self, pod: Pod, *, now: float) -> None:
        queued = self._pods[PodUid(pod.metadata.uid)]
        place = queued.place
        if place is QueuePlace.PARKED and shape_of(pod) == (shape := queued.shape):
            # Nothing that judging reads has changed: it stays where it is.
            queued.replace_pod(pod, shape)
            self.parked.replaced(queued)
            return
        self.places.take(queued)
        queued.replace_pod(pod)
        # A gated or parked pod that changed in a way scheduling reads may pass now.
        if place in (QueuePlace.GATED, QueuePlace.PARKED):
            self._reenter(queued, "UnscheduledPodUpdate", now=now)
        elif self._is_over_limit(pod):
            # Gates are not closed again, but a pod may come to ask for more than it may.
            self.places.put(queued, QueuePlace.GATED)
            self._observer.moved(queued, source=place, target=QueuePlace.GATED)
            self._observer.entered(QueuePlace.GATED, "UnscheduledPodUpdate")
        else:
            self.places.put(queued, place)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        queued = self._pods.get(uid)
        if queued is not None:
            self.places.take(queued)
            self._leave(queued)
            self.quarantine.end(uid)
        return queued

    def isolate(self, uid: PodUid, *, deaths: int, not_before: float) -> QueuedPod | None:
        """Put a pending pod into quarantine; return it, or None if it does not wait here."""
        queued = self._pods.get(uid)
        if queued is None:
            return None
        may_be_tried = queued.place in (QueuePlace.ACTIVE, QueuePlace.BACKOFF)
        if may_be_tried:
            self.places.take(queued)
        self.quarantine.begin(uid, deaths=deaths, not_before=not_before)
        if may_be_tried:
            self.places.put(queued, queued.place, sequence=queued.sequence)
        return queued

    # From the configuration

    def reconfigure(
        self, sort_key: SortKey, policy: QueuePolicy, *, judged_anew: Gate, now: float
    ) -> None:
        """Go by another order and other waits; pods that are judged otherwise get another try.

        All others keep their place and sequence. The caller removes pods of no profile before.
        """
        self.dissolve_line()
        is_sorted = sort_key == self.places.sort_key and policy == self._policy
        self._policy = policy
        if not is_sorted:
            self.places.sort_by(sort_key)
        # By sequence, which is part of checkpoints, and not as the dict happens to be laid out.
        for queued in sorted(self._pods.values(), key=lambda q: q.sequence):
            is_judged = judged_anew(queued.pod)
            if queued.place in (QueuePlace.PARKED, QueuePlace.GATED):
                if is_judged:
                    self.places.take(queued)
                    self._reenter(queued, CONFIGURATION_CHANGE, now=now)
            elif is_judged or not is_sorted:
                self.places.take(queued)
                if queued.place is QueuePlace.BACKOFF:
                    queued.backoff_expiry = self._policy.expiry_of(queued)
                self._put_back(queued, judge=is_judged)

    def _put_back(self, queued: QueuedPod, *, judge: bool) -> None:
        """Put a pod back that may be tried, unless it is judged and found to be gated now."""
        source = queued.place
        target = QueuePlace.GATED if judge and self._is_gated(queued.pod) else source
        self.places.put(queued, target, sequence=queued.sequence)
        if target is not source:
            self._observer.moved(queued, source=source, target=target)
            self._observer.entered(target, CONFIGURATION_CHANGE)

    # The line

    def stand_in_line(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Park a popped pod whose attempt is not over: its search goes on in its turn."""
        queued.attempts -= 1
        queued.rejectors = rejectors
        self._pods[queued.uid] = queued
        self.places.put(queued, QueuePlace.PARKED, sequence=queued.sequence)
        self.line.add(queued, order=self.places.sort_key(queued.pod, queued.timestamp))
        self._observer.moved(queued, source=None, target=QueuePlace.PARKED)

    def joins_line(self, queued: QueuedPod) -> bool:
        """Let a popped pod stand behind one of its kind, untried; False if there is none.

        It would be rejected where that one was: what has happened since is judged for both.
        """
        like = self.line.find_like(queued)
        if like is None:
            return False
        group = self.parked.group_of(like)
        queued.seen = group.seen
        self.stand_in_line(queued, tuple(sorted(group.rejectors)))
        return True

    def is_ahead_of(self, queued: QueuedPod) -> bool:
        order = self.places.sort_key(queued.pod, queued.timestamp)
        first = self.line.first_order
        return first is not None and first < (order, queued.sequence)

    @property
    def line_is_next(self) -> bool:
        """Return whether the first in the line comes before all active pods."""
        first, active = self.line.first_order, self.places.active.peek()
        if first is None or active is None:
            return first is not None
        return first[0] <= active[0]

    def pop_line(self) -> QueuedPod | None:
        queued = self.line.first
        if queued is not None:
            self.places.take(queued)
        return self._popped(queued)

    def dissolve_line(self) -> None:
        """Let all in the line be tried as if they had just come to be active."""
        while (queued := self.line.first) is not None:
            self.places.take(queued)
            self.places.put(queued, QueuePlace.ACTIVE, sequence=queued.sequence)
            self._observer.moved(queued, source=QueuePlace.PARKED, target=QueuePlace.ACTIVE)

    # For the engine

    def pop(self) -> QueuedPod | None:
        """Take out the next pod to try: an active one, or else the first rejected one."""
        return self._popped(self.places.active.pop() or self._pop_rejected())

    def pop_quarantined(self) -> QueuedPod | None:
        """Take out a pod of the quarantine whose time has come; for when `pop` gives none."""
        return self._popped(self.quarantine.pop())

    def _popped(self, queued: QueuedPod | None) -> QueuedPod | None:
        if queued is not None:
            self._leave(queued)
            queued.attempts += 1
        return queued

    def _pop_rejected(self) -> QueuedPod | None:
        """Take out the first rejected pod; those that are held back wait as active ones instead."""
        for _ in range(_MOST_PASSED_OVER):
            queued = self.places.backoff.pop()
            if queued is None or queued.pod.metadata.namespace not in self.places.active.held:
                return queued
            self._become_active(queued)
        return None

    def hold_back(self, namespaces: Iterable[str]) -> None:
        """Pass over the pods of these namespaces from now on, and of no other."""
        self.places.active.hold(namespaces)

    @property
    def held_back(self) -> tuple[str, ...]:
        return tuple(sorted(self.places.active.held))

    def return_rejected(self, queued: QueuedPod, rejectors: tuple[str, ...], *, now: float) -> None:
        self.giving_way.failed(queued.pod.metadata.namespace)
        queued.timestamp = now
        queued.was_flushed = False
        queued.unschedulable_count += 1
        queued.consecutive_errors = 0
        queued.rejectors = rejectors
        self._enter(queued, QueuePlace.PARKED, "ScheduleAttemptFailure")

    def return_failed(self, queued: QueuedPod, *, now: float) -> bool:
        """Take back a pod whose attempt ended in an error; it is tried again after its backoff.

        Return False if it has been tried often enough: it is parked then, until something happens
        or it has been parked for long.
        """
        self.giving_way.failed(queued.pod.metadata.namespace)
        queued.timestamp = now
        queued.was_flushed = False
        queued.consecutive_errors += 1
        queued.backoff_expiry = self._policy.expiry_of(queued)
        limit = self._policy.max_attempts
        if limit is not None and queued.attempts >= limit:
            queued.rejectors = (MAX_ATTEMPTS,)
            self._enter(queued, QueuePlace.PARKED, "ScheduleAttemptFailure")
            return False
        queued.rejectors = ()
        self._enter(queued, QueuePlace.BACKOFF, "ScheduleAttemptFailure")
        return True

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins reject a parked pod now; it stays where it is."""
        if rejectors != queued.rejectors:
            self._observer.rejudged(queued, rejectors)
            self.parked.group_of(queued).rejudged(queued, rejectors)

    @property
    def renewals_per_second(self) -> int:
        return self._policy.renewals_per_second

    def wake(self, queued: QueuedPod, event: str, *, now: float) -> None:
        self.places.take(queued)
        self._reenter(queued, event, now=now)

    def activate(self, uid: PodUid, *, now: float) -> None:
        """Try a pod again at once, whatever its backoff says; its gates still count."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is not QueuePlace.ACTIVE:
            self.places.take(queued)
            self._reenter(queued, "ForceActivate", now=now, at_once=True)

    def look_again(self, uid: PodUid, *, now: float) -> None:
        queued = self._pods.get(uid)
        if queued is not None and queued.place is QueuePlace.GATED:
            self._reenter(queued, "ForceActivate", now=now)

    def set_aside(self, queued: QueuedPod) -> None:
        """Take back a pod that was popped too early: it is active, and waits for `bring_back`."""
        queued.attempts -= 1
        self._pods[queued.uid] = queued
        queued.place = QueuePlace.ACTIVE
        self.places.aside[queued.uid] = queued
        self._observer.moved(queued, source=None, target=QueuePlace.ACTIVE)

    def bring_back(self, scheduler_name: str) -> None:
        for queued in list(self.places.aside.values()):
            if queued.pod.spec.scheduler_name == scheduler_name:
                del self.places.aside[queued.uid]
                self.places.put(queued, QueuePlace.ACTIVE, sequence=queued.sequence)

    # Time

    def tick(self, *, now: float) -> None:
        if now - self.last_backoff_flush >= BACKOFF_FLUSH_SECONDS:
            self.last_backoff_flush = now
            for heap in (self.places.backoff, self.places.error_backoff):
                for queued in pop_expired(heap, now):
                    self._become_active(queued)
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
        return self._pods.get(uid)

    @property
    def has_active(self) -> bool:
        """Return whether a pod is active that is not held back."""
        return self.places.active.has_free

    @property
    def has_candidates(self) -> bool:
        """Return whether there is a pod to try, or would be one after some more are passed over."""
        return self.places.has_ordinary or self.quarantine.next_uid is not None

    @property
    def next_quarantined(self) -> PodUid | None:
        """Return the pod of the quarantine that is to be tried now, as there is no other one."""
        return None if self.places.has_ordinary else self.quarantine.next_uid

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    # Checkpoints

    def restore(self, queued: QueuedPod) -> None:
        self._pods[queued.uid] = queued
        self.places.put(queued, queued.place, sequence=queued.sequence)
        self._observer.moved(queued, source=None, target=queued.place)

    # Moves

    def _enter(self, queued: QueuedPod, place: QueuePlace, event: str) -> None:
        self._pods[queued.uid] = queued
        self.places.put(queued, place)
        self._observer.moved(queued, source=None, target=place)
        self._observer.entered(place, event)

    def _reenter(self, queued: QueuedPod, event: str, *, now: float, at_once: bool = False) -> None:
        source = queued.place
        if self._is_gated(queued.pod):
            target = QueuePlace.GATED
        else:
            queued.backoff_expiry = self._policy.expiry_of(queued)
            ready = at_once or is_over(queued.backoff_expiry, now)
            target = QueuePlace.ACTIVE if ready else QueuePlace.BACKOFF
            if queued.first_active is None:
                queued.first_active = now
        self.places.put(queued, target)
        if source is not target:
            self._observer.moved(queued, source=source, target=target)
            self._observer.entered(target, event)

    def _leave(self, queued: QueuedPod) -> None:
        del self._pods[queued.uid]
        self._observer.moved(queued, source=queued.place, target=None)

    def _become_active(self, queued: QueuedPod) -> None:
        self.places.put(queued, QueuePlace.ACTIVE)
        self._observer.moved(queued, source=QueuePlace.BACKOFF, target=QueuePlace.ACTIVE)
        self._observer.entered(QueuePlace.ACTIVE, "BackoffComplete")
