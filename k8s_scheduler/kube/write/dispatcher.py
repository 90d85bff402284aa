"""Writes about pods: bindings and PodScheduled conditions, each in a lane of its own.

    submit_bind ────► ready ──► bind workers ──► POST, GET ──► on_bind_outcome
                        ▲  ▲         │ wait: backoff, Retry-After (no worker is held meanwhile)
                        │  └─────────┘
                        └─ held back while a condition of the same pod is being written
                        (in a line of its own, for few workers, while its namespace has binds in
                         doubt: `bind_shares`)
    submit_condition ─► ConditionQueue ──► condition workers ──► PATCH

Lanes have their own bounds and workers, so that slow conditions never keep a bind waiting.
Binds are never dropped: `bind_room` tells the caller to stop deciding, and a bind that comes all
the same (from a pod that waited in Permit) is taken. `bind_machine` draws the states of one bind;
this module sends its calls. Binds in doubt do not count against that room, but have bounds of their
own, by namespace and in all. Binds that wait for a server that is away are in `outage`.

Order per pod: a bind overtakes a waiting condition of its pod and follows one that is being
written. Otherwise PodScheduled=False could land on a pod that is bound.

An exception that is not a `KubeError` is a bug: it ends `run` and with it the process, because a
bind whose end is not known must not be forgotten quietly.
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.throttle import unlimited
from k8s_scheduler.kube.waiting import wait_within
from k8s_scheduler.kube.workers import BINDING_WORKERS, CONDITION_WORKERS
from k8s_scheduler.kube.write.bind_calls import BindCalls
from k8s_scheduler.kube.write.bind_machine import BindMachine, BindPolicy, BindStep
from k8s_scheduler.kube.write.bind_shares import IN_ALL, PER_NAMESPACE, BindShares
from k8s_scheduler.kube.write.binding import (
    BindFailure,
    BindOutcome,
    BindRequest,
)
from k8s_scheduler.kube.write.condition_writer import ConditionWriter
from k8s_scheduler.kube.write.conditions import ConditionPatch, ConditionQueue
from k8s_scheduler.kube.write.interruptible_waits import InterruptibleWaits
from k8s_scheduler.kube.write.outage import Outage
from k8s_scheduler.kube.write.unsettled import Unsettled
from k8s_scheduler.lib.worker_pool import WorkerPool
from k8s_scheduler.obs.metrics import KubeMetrics

log = logging.getLogger(__name__)

# Failures that are logged; that a pod is gone, or that we no longer lead, is expected.
_TROUBLES = frozenset(
    {
        BindFailure.NOT_SENT,
        BindFailure.CONFLICT,
        BindFailure.ASSIGNED_ELSEWHERE,
        BindFailure.NOT_EXECUTED,
        BindFailure.HELD_BACK,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherConfig:
    """Bounds of the lanes."""

    bind_limit: int = 1000
    bind_workers: int = BINDING_WORKERS
    # Autoscalers act on conditions: one that is dropped is missed until its pod is tried again.
    condition_limit: int = 50_000
    condition_workers: int = CONDITION_WORKERS
    starting_seconds: float = 30.0
    bind_policy: BindPolicy = field(default_factory=BindPolicy)


class Dispatcher:
    """Sends what the scheduler decided; every submitted bind gets exactly one outcome."""

    def __init__(
        self,
        caller: Caller,
        *,
        metrics: KubeMetrics,
        on_bind_outcome: Callable[[BindOutcome], None],
        on_held_back: Callable[[tuple[str, ...]], None] = lambda _namespaces: None,
        on_room: Callable[[], None] = lambda: None,
        config: DispatcherConfig | None = None,
    ) -> None:
        """Send through `caller`.

        `on_held_back` gets the namespaces of which no more pods should be decided, whenever they
        change; `on_room` is called when `bind_room` has grown without an outcome.
        """
        self._caller = caller
        self._on_bind_outcome = on_bind_outcome
        self._on_room = on_room
        self._config = config = config or DispatcherConfig()
        timing = caller.timing
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._uniform = timing.uniform
        self._log = BoundedLog(log, timing.clock)
        self._binds: dict[PodUid, BindMachine] = {}
        self._ready: deque[BindMachine] = deque()
        self._shares = BindShares(on_held_back)
        self._binders = WorkerPool(config.bind_workers, self._next, self._go_on)
        # Binds that wait until a condition of the same pod is written.
        self._held_back: dict[PodUid, BindMachine] = {}
        self._outage = Outage(
            self._put,
            start=self._binders.start,
            timing=timing,
            starting_seconds=config.starting_seconds,
        )
        # Binds in doubt that wait to be sent or read again.
        self._doubtful = InterruptibleWaits(self._put, timing.sleep)
        self._unsettled = Unsettled(config.bind_policy.settle_seconds)
        self._accepting = True
        self._idle = asyncio.Event()
        self._idle.set()
        self._conditions = ConditionWriter(
            caller,
            dropped=metrics.conditions_dropped,
            on_done=self._condition_done,
            limit=config.condition_limit,
            workers=config.condition_workers,
        )
        self._metrics = BindMetrics(metrics)
        self._calls = BindCalls(
            caller, outage=self._outage, unknown=self._metrics.unknown, log=self._log
        )
        metrics.doubtful_binds.set_function(lambda: self._shares.in_doubt)
        metrics.namespaces_held_back.set_function(lambda: len(self._shares.held))
        metrics.pending_writes.labels(kind="bind").set_function(lambda: len(self._binds))
        metrics.pending_writes.labels(kind="condition").set_function(lambda: len(self._conditions))

    def bind_room(self) -> int:
        """Return how many more binds are welcome; the caller stops deciding at 0."""
        if not self._accepting:
            return 0
        in_doubt = self._shares.in_doubt
        if in_doubt >= IN_ALL:
            return 0
        return max(0, self._config.bind_limit - (len(self._binds) - in_doubt))

    def submit_bind(self, request: BindRequest) -> None:
        """Take a bind. Its outcome comes through `on_bind_outcome`, never from inside this call."""
        uid = request.uid
        if uid in self._binds:
            raise ValueError(f"a bind of pod {request.namespace}/{request.name} is under way")
        bind = BindMachine(
            request,
            self._config.bind_policy,
            submitted_at=self._clock(),
            uniform=self._uniform,
        )
        if not self._accepting:
            bind.fail(BindFailure.NOT_ACCEPTED, "the scheduler is stopping")
        if not self._binds:
            self._idle.clear()
        self._binds[uid] = bind
        self._shares.taken(request.namespace)
        if self._conditions.give_way(uid):
            self._put(bind)
        else:
            self._held_back[uid] = bind

    def may_land(self, uid: PodUid) -> bool:
        """Return whether a request of ours may yet bind the pod, if it is not bound now.

        A bind of it is under way, or has ended and was in doubt shortly before.
        """
        return uid in self._binds or self._unsettled.has(uid, now=self._clock())

    def submit_condition(self, patch: ConditionPatch) -> None:
        """Take a condition; the latest per pod is written, none while its pod is being bound."""
        if self._accepting and patch.uid not in self._binds:
            self._conditions.put(patch)
            self._idle.clear()

    @property
    def waiting_conditions(self) -> ConditionQueue:
        return self._conditions.queue

    def stop_accepting(self) -> None:
        """Take no more writes; the ones already taken go on.

        Binds in doubt are read now: one that admission has given up ends with that.
        """
        self._accepting = False
        self._doubtful.wake_all()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._binders.run())
            group.create_task(self._conditions.run())

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until everything is written; return the number of writes whose end is not known.

        A lease that must be left to run out costs more than conditions that are not written. So a
        dispatcher that takes no more writes drops the conditions that wait, early enough for the
        last call under way to end.
        """
        last_seconds = min(timeout_seconds, self._caller.timeout_seconds)
        first_seconds = timeout_seconds - last_seconds
        if not await wait_within(self._idle, first_seconds, sleep=self._sleep):
            if not self._accepting:
                self._conditions.end()
                self._check_idle()
            await wait_within(self._idle, last_seconds, sleep=self._sleep)
        return len(self._binds) + self._conditions.under_way

    def _put(self, bind: BindMachine) -> None:
        if self._shares.is_suspect(bind.request.namespace):
            self._shares.line_up(bind)
        else:
            self._ready.append(bind)
        self._binders.notify()

    def _next(self) -> BindMachine | None:
        # Suspects go first, few at a time: if they came last, a busy scheduler would settle none.
        bind = self._shares.next()
        while bind is None and self._ready:
            bind = self._ready.popleft()
            if self._shares.is_suspect(bind.request.namespace):
                # It became suspect after it was ready.
                self._shares.line_up(bind)
                bind = self._shares.next()
        return bind

    async def _go_on(self, bind: BindMachine) -> None:
        with self._shares.calling(bind.request.namespace):
            wait_seconds, asked = await self._ask(bind)
        if bind.outcome is None:
            self._binders.start(functools.partial(self._make_ready, bind, wait_seconds))
            return
        self._finish(bind)
        if not asked:
            # Such ends (not leading) come in hundreds: let other tasks run in between.
            await asyncio.sleep(0)

    async def _ask(self, bind: BindMachine) -> tuple[float, bool]:
        """Ask until it ends or has to wait; return for how long, and whether anything was asked."""
        caller, request, asked = self._caller, bind.request, False
        while bind.outcome is None:
            if caller.admit is not unlimited:
                await caller.admit()
            if not bind.in_doubt and self._shares.is_full(request.namespace):
                bind.fail(BindFailure.HELD_BACK, _held_back(request.namespace))
                break
            step = bind.next_call(
                self._clock(), may_write=caller.may_write(), stopping=not self._accepting
            )
            if step is None:
                break
            asked = True
            if step is BindStep.READ:
                wait_seconds = bind.read(await self._calls.read(request))
            elif bind.in_doubt:
                wait_seconds = bind.posted(await self._calls.post(request), self._clock())
            else:
                wait_seconds = await self._post_first(bind)
            if wait_seconds > 0.0:
                if bind.in_doubt and not bind.is_unheard and not bind.is_given_up:
                    pace_seconds = self._shares.pace_seconds(request.namespace, self._clock())
                    wait_seconds = max(wait_seconds, pace_seconds)
                return wait_seconds, asked
        return 0.0, asked

    async def _post_first(self, bind: BindMachine) -> float:
        """Send a bind of which nothing is in doubt; it may be from then on."""
        namespace = bind.request.namespace
        with self._shares.first_call(namespace):
            answer = await self._calls.post(bind.request)
        wait_seconds = bind.posted(answer, self._clock())
        if bind.in_doubt:
            self._shares.doubted(namespace, self._clock())
            self._on_room()
        return wait_seconds

    async def _make_ready(self, bind: BindMachine, wait_seconds: float) -> None:
        if bind.is_unheard:
            await self._outage.wait(bind, wait_seconds)
        elif bind.in_doubt:
            await self._doubtful.wait(bind, wait_seconds)
        else:
            await self._sleep(wait_seconds)
            self._put(bind)

    def _finish(self, bind: BindMachine) -> None:
        outcome = bind.outcome
        if outcome is None:
            raise RuntimeError("a bind without an outcome cannot end")
        del self._binds[outcome.uid]
        for freed in self._shares.ended(bind.request.namespace, in_doubt=bind.in_doubt):
            self._put(freed)
        if bind.doubtful_since is not None:
            self._unsettled.add(outcome.uid, bind.doubtful_since, now=self._clock())
        self._metrics.ended(
            outcome, was_in_doubt=bind.in_doubt, seconds=self._clock() - bind.submitted_at
        )
        if outcome.reason in _TROUBLES:
            self._log.warning(
                f"failed: {outcome.reason}",
                "bind of pod %s/%s to node %s failed (%s): %s",
                bind.request.namespace,
                bind.request.name,
                outcome.node,
                outcome.reason,
                outcome.message,
            )
        if not self._binds:
            self._check_idle()
        self._on_bind_outcome(outcome)

    def _condition_done(self, uid: PodUid) -> None:
        held_back = self._held_back.pop(uid, None)
        if held_back is not None:
            self._put(held_back)
        self._check_idle()

    def _check_idle(self) -> None:
        if not self._binds and not len(self._conditions):
            self._idle.set()


def _held_back(namespace: str) -> str:
    return (
        f"binding held back: {PER_NAMESPACE} bindings in namespace {namespace} are without a "
        "known outcome, which is as many as one namespace may have; it is tried again when some "
        "of them have ended"
    )


class BindMetrics:
    """The counters of the binding lane."""

    def __init__(self, metrics: KubeMetrics) -> None:
        attempts = metrics.bind_attempts
        self.unknown = attempts.labels(result="unknown")
        self._succeeded = attempts.labels(result="success")
        self._failed = attempts.labels(result="failure")
        self._failures = {
            reason: metrics.bind_failures.labels(_label(reason)) for reason in BindFailure
        }
        self._doubts = {
            outcome: metrics.doubtful_binds_ended.labels(outcome)
            for outcome in ("bound", *map(_label, BindFailure))
        }
        self._duration = metrics.bind_duration_seconds.labels()

    def ended(self, outcome: BindOutcome, *, was_in_doubt: bool, seconds: float) -> None:
        reason = outcome.reason
        if was_in_doubt:
            self._doubts["bound" if reason is None else _label(reason)].inc()
        (self._succeeded if outcome.bound else self._failed).inc()
        if reason is not None:
            self._failures[reason].inc()
        self._duration.observe(seconds)


def _label(reason: BindFailure) -> str:
    return reason.value.replace(" ", "_")
