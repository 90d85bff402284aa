"""Drives the core: the one place where messages go in and instructions come out.

Informers and dispatcher call in as things happen; `run` lets the core decide whenever there is
work, room for binds, and leave to decide. All of it is on one thread, so messages are handled
one after the other, in the order in which they came.

    not allowed ──allow()──▶ deciding ──forbid()──▶ not allowed      (state is kept up to date
                                                                      either way)

Where the core fails on a change that an informer tells of, it may be half way through it, and what
it holds is not to be trusted any further:

    whole ──a change fails──▶ broken ──start_over(a new core)──▶ filling ──mend()──▶ whole
                                 ▲                                  │ a change fails
                                 └──────────────────────────────────┘

While it is broken nothing is told to it and it decides nothing; `recovery/rebuilding.py` then fills
a new one with all that the informers hold. A failure elsewhere (deciding, timers, answers) ends the
process, as ever.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from k8s_scheduler.api.config.extras import Batch, SchedulerExtras
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.driver.changes import for_each, is_end, reads_the_same
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.left_out import LeftOut
from k8s_scheduler.app.driver.marks import Marks
from k8s_scheduler.app.driver.read_gone import ReadGone
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.app.driver.undone import Undone
from k8s_scheduler.core.inspection import Holdings
from k8s_scheduler.core.messages.incoming import (
    VICTIM_GONE,
    BindResult,
    HoldBack,
    LimitCaches,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    PodRead,
    Quarantine,
    QueueSettings,
    Reconfigure,
    Recount,
    RequestResult,
    Schedule,
    StorageSetBack,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome
from k8s_scheduler.kube.write.pod_reader import ReadOutcome
from k8s_scheduler.kube.write.write_requests import WriteOutcome
from k8s_scheduler.lib.slices import SliceMeter

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0
# Why a bind was not sent that was decided before the storage was set back.
SET_BACK: Final = "the API server's storage was restored from an older snapshot"
# Decisions between two looks at the clock of the slice; one, after as many have filled a slice.
_STEP = 4


class Pump:
    """Moves messages in and instructions out."""

    def __init__(
        self,
        core: Scheduler,
        *,
        clock: Callable[[], float],
        meter: SliceMeter,
        batch: Batch | None = None,
        may_decide: Callable[[], bool] = lambda: True,
        marks: Marks | None = None,
    ) -> None:
        """Drive `core`. `may_decide` is asked before each few decisions.

        A process that was stopped for a while learns from it, before it decides anything on a
        state that has grown old, that somebody else decides by now. `marks` are told of decisions
        by the core's witness, and here that they have ended.
        """
        self._core = core
        self._clock = clock
        self._meter = meter
        self._batch = batch or Batch()
        self._may_decide = may_decide
        self._marks = marks
        # Namespaces of which no more pods should be decided; a new core is told of them as well.
        self._held_back: tuple[str, ...] = ()
        self._cache_bytes: int | None = None
        # Objects on which the core has failed; and set while it is not to be trusted.
        self.left_out = LeftOut()
        self.broken = asyncio.Event()
        self._is_filling = False
        # Whether what is known is of a storage that was set back, and not yet listed anew.
        self._is_set_back = False
        self._undone: Undone | None = None
        self._carrier: Carrier | None = None
        self._recording: Recording | None = None
        self._allowed = False
        self._wake = asyncio.Event()
        self._read_gone = ReadGone()
        # Whose pods are ours since a reload, until all of them are told of.
        self._to_introduce: frozenset[str] = frozenset()

    def connect(self, carrier: Carrier, recording: Recording | None) -> None:
        """Say where instructions go; before the first message."""
        self._carrier = carrier
        self._recording = recording
        self._undone = Undone(
            may_land=carrier.may_land,
            read=lambda instruction: carrier.carry_out((instruction,)),
            tell=self._pod_is,
        )

    # What happens outside

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        if known is None:
            return
        uid = PodUid(known.metadata.uid)
        self._read_gone.discard(uid)
        if self._undone is not None and new is not None and self._undone.changed(old, new):
            return
        self._pod_is(uid, new)

    def _pod_is(self, uid: PodUid, pod: Pod | None) -> None:
        if pod is None:
            if self._undone is not None:
                self._undone.gone(uid)
            self._change(PodChanged(self._clock(), uid, None), "pods", uid)
        elif told := self.left_out.pod(pod):
            self._change(PodChanged(self._clock(), uid, told), "pods", uid)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        known = new if new is not None else old
        if known is not None:
            name = NodeName(known.metadata.name)
            if new is None or self.left_out.may_tell("nodes", name):
                self._change(NodeChanged(self._clock(), name, new), "nodes", name)

    def object_changed(
        self, kind: Kind, old: ClusterObject | None, new: ClusterObject | None
    ) -> None:
        """Take a change from the informer of another kind.

        Most updates of owners are of their status, of which scheduling reads nothing. They are
        many, and would have every conclusion drawn from the owner drawn again: they end here.
        """
        if old is not None and new is not None and reads_the_same(kind, old, new):
            return
        known = new if new is not None else old
        if known is not None:
            namespace, name = known.metadata.namespace, known.metadata.name
            key = f"{namespace}/{name}"
            if new is None or self.left_out.may_tell(str(kind), key):
                message = ObjectChanged(self._clock(), kind, namespace, name, new)
                self._change(message, str(kind), key)

    def bind_ended(self, outcome: BindOutcome) -> None:
        message = outcome.message
        if outcome.reason is BindFailure.NOT_LEADING and self._is_set_back:
            message = SET_BACK
        if outcome.reason is BindFailure.GONE:
            # It was read, and the watch says so later. Until then it would be tried again and
            # again, and a namesake would be told of its failures.
            self._read_gone.add(outcome.uid)
            self._pod_is(outcome.uid, None)
        self._answer(
            BindResult(
                now=self._clock(),
                uid=outcome.uid,
                attempt=outcome.attempt,
                node=outcome.node,
                bound=outcome.bound,
                message=message,
            )
        )
        if self._undone is not None:
            self._undone.bind_ended(outcome.uid, bound=outcome.bound)

    def hold_back(self, namespaces: tuple[str, ...]) -> None:
        self._held_back = namespaces
        if not self.broken.is_set():
            self._tell(HoldBack(self._clock(), namespaces))

    def limit_caches(self, max_bytes: int) -> None:
        self._cache_bytes = max_bytes
        if not self.broken.is_set():
            self._tell(LimitCaches(self._clock(), max_bytes))

    def room_made(self) -> None:
        """Take note that more binds are welcome, although none has ended."""
        if self.is_whole and self._core.has_work:
            self._wake.set()

    def write_ended(self, outcome: WriteOutcome) -> None:
        self._answer(
            RequestResult(
                now=self._clock(),
                uid=outcome.uid,
                attempt=outcome.attempt,
                request=outcome.request,
                done=outcome.done,
                message=VICTIM_GONE if outcome.gone else outcome.message,
            )
        )

    def pod_read(self, outcome: ReadOutcome) -> None:
        if outcome.pod is None:
            self._read_gone.add(outcome.uid)
        if self._undone is None or not self._undone.was_read(outcome):
            self._answer(PodRead(self._clock(), outcome.uid, outcome.attempt, outcome.pod))

    # Checking

    @property
    def holdings(self) -> Holdings:
        return self._core.holdings

    def knows_otherwise(self, pod: Pod) -> bool:
        """Return whether the core may be right to hold a pod otherwise than the watch has told.

        It was read to be gone, and the watch tells of its end later; or a reload has made it ours,
        and is about to tell.
        """
        uid, scheduler_name = PodUid(pod.metadata.uid), pod.spec.scheduler_name
        is_undone = self._undone is not None and uid in self._undone
        is_known = uid in self._read_gone or is_undone or self.left_out.has("pods", uid)
        return is_known or scheduler_name in self._to_introduce

    def recount(self, first: int, count: int) -> int:
        """Let the core add up anew what pods take; return on how many nodes it was wrong."""
        return len(self._tell(Recount(self._clock(), first, count))) if self.is_whole else 0

    # A storage that was set back

    def doubt(self) -> None:
        """Decide nothing until `trust`: what is known is of a storage that is no more."""
        self._is_set_back = True

    async def trust(self, pods: Mapping[str, Pod]) -> None:
        """Decide again: everything was listed since. `pods` are those that there are.

        What the server had agreed to and the watch has not shown may have been undone: all such
        pods are read, by the core those that it waits for, the others here.
        """
        self._answer(StorageSetBack(self._clock()))
        await for_each(self._meter, "storage set back", pods, self._suspect)
        self._is_set_back = False
        self._wake.set()

    def _suspect(self, pod: Pod) -> None:
        """Have a pod read of which the core was told by a reading what no watch has shown."""
        uid = PodUid(pod.metadata.uid)
        is_otherwise = uid in self._read_gone or self._core.holdings.is_bound(uid)
        if self._undone is not None and not pod.spec.node_name and is_otherwise:
            self._undone.suspect(pod)

    @property
    def is_set_back(self) -> bool:
        """Whether what is known is of a storage that is no more."""
        return self._is_set_back

    # A core that has failed

    @property
    def core(self) -> Scheduler:
        """The core that is driven; another one after each failure."""
        return self._core

    @property
    def is_whole(self) -> bool:
        """Whether the core has been told everything and failed on nothing since."""
        return not (self.broken.is_set() or self._is_filling)

    def start_over(self, core: Scheduler) -> None:
        """Drive a new core, which knows nothing; decide nothing until `mend`."""
        self._core = core
        self._is_filling = True
        self.broken.clear()
        self._read_gone.clear()
        if self._carrier is not None:
            self.connect(self._carrier, self._recording)
        if self._recording is not None:
            self._recording.start_segment()
        if self._held_back:
            self.hold_back(self._held_back)
        if self._cache_bytes is not None:
            self.limit_caches(self._cache_bytes)

    def mend(self) -> None:
        """Decide again, with a core that was told everything; unless it has failed meanwhile."""
        if not self.broken.is_set():
            self._is_filling = False
            if self._marks is not None:
                self.quarantine(self._marks.deaths)
            self._wake.set()

    # Another configuration

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds, besides pods and nodes, that decisions and pods on their way depend on."""
        return self._core.kinds

    def reconfigure(
        self,
        profiles: tuple[ResolvedProfile, ...],
        queue: QueueSettings,
        extras: SchedulerExtras | None = None,
    ) -> frozenset[str]:
        """Decide by other rules from the next decision on; return whose pods are new to us."""
        before, extras = self._core.scheduler_names, extras or SchedulerExtras()
        self._tell(
            Reconfigure(
                self._clock(),
                profiles,
                queue,
                extras.pod_limits,
                extras.node_limits,
                extras.preemption.max_victims_per_minute,
            )
        )
        self._batch = extras.batch
        self._to_introduce = self._core.scheduler_names - before
        return self._to_introduce

    async def introduce(self, names: frozenset[str], pods: Mapping[str, Pod]) -> None:
        """Tell of pods that nobody served before; the core has kept none of them.

        What happens to them meanwhile comes by the watch, as ever: each is told as it is now.
        """

        def tell(pod: Pod) -> None:
            if pod.spec.scheduler_name in names and not pod.spec.node_name:
                self.pod_changed(None, pod)

        await for_each(self._meter, "reload", pods, tell)
        self._to_introduce -= names

    async def renew(self, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> None:
        """Tell nodes and placed pods again: by other limits, more or less of them counts."""

        def tell(pod: Pod) -> None:
            if pod.spec.node_name and pod.spec.affinity is not None:
                self.pod_changed(None, pod)

        await for_each(self._meter, "reload", nodes, partial(self.node_changed, None))
        await for_each(self._meter, "reload", pods, tell)

    async def forget(self, kind: Kind, objects: Mapping[str, ClusterObject]) -> None:
        """Tell that objects are gone which nobody watches any more."""
        tell = partial(self.object_changed, kind, new=None)
        await for_each(self._meter, "reload", objects, tell)

    # Pods that ended a process

    def quarantine(self, deaths: dict[PodUid, int]) -> None:
        """Have pods tried last; before the first decision.

        A core that is being filled is told when it knows the pods.
        """
        if deaths and self.is_whole:
            self._tell(Quarantine(self._clock(), deaths))

    def _is_announced(self) -> bool:
        """Return whether the next pod may be tried: it is harmless, or the Lease tells of it."""
        uid = self._core.next_quarantined
        return uid is None or self._marks is None or self._marks.announce(uid)

    # Leave to decide

    def allow(self) -> None:
        self._allowed = True
        self._wake.set()

    def forbid(self) -> None:
        self._allowed = False

    # Running

    async def run(self) -> None:
        """Decide whenever there is something to decide, until cancelled.

        Decisions come in batches: what they lead to (requests, what the watch shows meanwhile)
        gets its turn in between. Each decision is assumed before the next one is begun.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            part = self._meter.start("core")
            left, at_once, is_first = self._batch.max_pods, _STEP, True
            while self._decides() and self._core.has_work and self._may_decide():
                room = self._connected().bind_room()
                if room <= 0 or (room < _STEP and self._core.binding_count):
                    # A bind that ends makes room, and wakes us. A few at a time cost less each.
                    break
                if not self._is_announced():
                    # Whoever else may be tried is. If there is nobody, the next message wakes us.
                    self._tell(Schedule(self._clock(), 0))
                    if not self._is_announced():
                        self._wake.clear()
                        break
                step = min(room, left, at_once)
                self._tell(Schedule(self._clock(), step))
                if self._marks is not None:
                    self._marks.end()
                left -= step
                is_full = part.full(self._batch.max_milliseconds / 1000)
                at_once = 1 if is_full and is_first else _STEP
                is_first = left <= 0 or is_full
                if is_first:
                    await part.breathe()
                    left = self._batch.max_pods
            part.finish()

    async def tick(self) -> None:
        """Tell the core that time passes, until cancelled."""
        while True:
            part = self._meter.start("timers")
            self._answer(Tick(self._clock()))
            if self._marks is not None and self.is_whole:
                # One that is being filled knows of no quarantine yet.
                self._marks.keep(self._core.holdings.quarantined)
            if self._undone is not None:
                self._undone.remind()
            if self._recording is not None:
                self._recording.flush()
            part.finish()
            await asyncio.sleep(TICK_SECONDS)

    def _decides(self) -> bool:
        return self._allowed and self.is_whole and not self._is_set_back

    def _change(self, message: Message, resource: str, key: str) -> None:
        """Tell the core of a change; one on which it fails leaves it broken."""
        if self.broken.is_set():
            # A new core is told of everything as it is then.
            return
        try:
            self._tell(message)
        except Exception:
            self.broken.set()
            times = self.left_out.failed(resource, key)
            logger.exception(
                "The core has failed on a change, a new one is made",
                extra={"fields": {"resource": resource, "key": key, "times": times}},
            )
        if is_end(message):
            self.left_out.gone(resource, key)

    def _answer(self, message: Message) -> None:
        """Tell the core of time or of what came of its wishes, if it is the one that had them."""
        if self.is_whole:
            self._tell(message)

    def _tell(self, message: Message) -> list[Instruction]:
        if self._recording is None:
            instructions = self._core.handle(message)
        else:
            self._recording.write(message)
            instructions = self._core.handle(message)
            self._recording.answered(instructions)
        if instructions:
            self._connected().carry_out(instructions)
        if not self._wake.is_set() and self._core.has_work:
            self._wake.set()
        return instructions

    def _connected(self) -> Carrier:
        if self._carrier is None:
            raise RuntimeError("connect() comes before the first message")
        return self._carrier
