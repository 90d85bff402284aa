"""Drives the core: the one place where messages go in and instructions come out.

Informers and dispatcher call in as things happen; `run` lets the core decide whenever there is
work, room for binds, and leave to decide. All of it is on one thread, so messages are handled
one after the other, in the order in which they came.

    not allowed ──allow()──▶ deciding ──forbid()──▶ not allowed      (state is kept up to date
                                                                      either way)
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from k8s_scheduler.api.config import ResolvedProfile
from k8s_scheduler.api.extras import Batch
from k8s_scheduler.api.kinds import ClusterObject, Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.carrier import Carrier
from k8s_scheduler.app.recording import Recording
from k8s_scheduler.core.engine.evictions import GONE
from k8s_scheduler.core.engine.holdings import Holdings
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    PodRead,
    QueueSettings,
    Reconfigure,
    Recount,
    RequestResult,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.kube.binding import BindFailure, BindOutcome
from k8s_scheduler.kube.pod_reader import ReadOutcome
from k8s_scheduler.kube.write_requests import WriteOutcome
from k8s_scheduler.lib.slices import SliceMeter

TICK_SECONDS = 1.0
# Decisions between two looks at the clock of the slice.
_STEP = 4
_MOST_READ_GONE: Final = 1024
# Binding a volume writes these, and a write must name the version it was decided on.
_VERSIONED: Final = frozenset({Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM})


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
    ) -> None:
        """Drive `core`. `may_decide` is asked before each few decisions.

        A process that was stopped for a while learns from it, before it decides anything on a
        state that has grown old, that somebody else decides by now.
        """
        self._core = core
        self._clock = clock
        self._meter = meter
        self._batch = batch or Batch()
        self._may_decide = may_decide
        self._carrier: Carrier | None = None
        self._recording: Recording | None = None
        self._allowed = False
        self._wake = asyncio.Event()
        # Of these the core knows more than the watch has told, oldest first.
        self._read_gone: dict[PodUid, None] = {}
        # Whose pods are ours since a reload, until all of them are told of.
        self._to_introduce: frozenset[str] = frozenset()

    def connect(self, carrier: Carrier, recording: Recording | None) -> None:
        """Say where instructions go; before the first message."""
        self._carrier = carrier
        self._recording = recording

    # What happens outside

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take a change from the pod informer."""
        known = new if new is not None else old
        if known is not None:
            uid = PodUid(known.metadata.uid)
            self._read_gone.pop(uid, None)
            self._tell(PodChanged(self._clock(), uid, new))

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Take a change from the node informer."""
        known = new if new is not None else old
        if known is not None:
            self._tell(NodeChanged(self._clock(), NodeName(known.metadata.name), new))

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
            metadata = known.metadata
            self._tell(ObjectChanged(self._clock(), kind, metadata.namespace, metadata.name, new))

    def bind_ended(self, outcome: BindOutcome) -> None:
        """Take the definite outcome of a bind."""
        if outcome.reason is BindFailure.GONE:
            # It was read, and the watch says so later. Until then it would be tried again and
            # again, and a namesake would be told of its failures.
            self._remember_gone(outcome.uid)
            self._tell(PodChanged(self._clock(), outcome.uid, None))
        self._tell(
            BindResult(
                now=self._clock(),
                uid=outcome.uid,
                attempt=outcome.attempt,
                node=outcome.node,
                bound=outcome.bound,
                message=outcome.message,
            )
        )

    def write_ended(self, outcome: WriteOutcome) -> None:
        """Take the definite outcome of a write that a pod waits for."""
        self._tell(
            RequestResult(
                now=self._clock(),
                uid=outcome.uid,
                attempt=outcome.attempt,
                request=outcome.request,
                done=outcome.done,
                message=GONE if outcome.gone else outcome.message,
            )
        )

    def pod_read(self, outcome: ReadOutcome) -> None:
        """Take a pod that the core wanted to be read."""
        if outcome.pod is None:
            self._remember_gone(outcome.uid)
        self._tell(PodRead(self._clock(), outcome.uid, outcome.attempt, outcome.pod))

    # Checking

    @property
    def holdings(self) -> Holdings:
        """What the core holds, to be compared and printed."""
        return self._core.holdings

    def knows_otherwise(self, pod: Pod) -> bool:
        """Return whether the core may be right to hold a pod otherwise than the watch has told.

        It was read to be gone, and the watch tells of its end later; or a reload has made it ours,
        and is about to tell.
        """
        uid, scheduler_name = PodUid(pod.metadata.uid), pod.spec.scheduler_name
        return uid in self._read_gone or scheduler_name in self._to_introduce

    def recount(self, first: int, count: int) -> int:
        """Let the core add up anew what pods take; return on how many nodes it was wrong."""
        return len(self._tell(Recount(self._clock(), first, count)))

    # Another configuration

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds, besides pods and nodes, that decisions and pods on their way depend on."""
        return self._core.kinds

    def reconfigure(
        self, profiles: tuple[ResolvedProfile, ...], queue: QueueSettings, batch: Batch
    ) -> frozenset[str]:
        """Decide by other rules from the next decision on; return whose pods are new to us."""
        before = self._core.scheduler_names
        self._tell(Reconfigure(self._clock(), profiles, queue))
        self._batch = batch
        self._to_introduce = self._core.scheduler_names - before
        return self._to_introduce

    async def introduce(self, names: frozenset[str], pods: Mapping[str, Pod]) -> None:
        """Tell of pods that nobody served before; the core has kept none of them.

        What happens to them meanwhile comes by the watch, as ever: each is told as it is now.
        """
        part = self._meter.start("reload")
        for key in list(pods):
            pod = pods.get(key)
            if pod is not None and pod.spec.scheduler_name in names and not pod.spec.node_name:
                self.pod_changed(None, pod)
            if part.full():
                await part.breathe()
        part.finish()
        self._to_introduce -= names

    async def forget(self, kind: Kind, objects: Iterable[ClusterObject]) -> None:
        """Tell that objects are gone which nobody watches any more."""
        part = self._meter.start("reload")
        for found in list(objects):
            self.object_changed(kind, found, None)
            if part.full():
                await part.breathe()
        part.finish()

    # Leave to decide

    def allow(self) -> None:
        """Let the core decide: state is complete, and nobody else is deciding."""
        self._allowed = True
        self._wake.set()

    def forbid(self) -> None:
        """Let the core decide nothing more."""
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
            left = self._batch.max_pods
            while self._allowed and self._core.has_work and self._may_decide():
                room = self._connected().bind_room()
                if room <= 0 or (room < _STEP and self._core.binding_count):
                    # A bind that ends makes room, and wakes us. A few at a time cost less each.
                    break
                step = min(room, left, _STEP)
                self._tell(Schedule(self._clock(), step))
                left -= step
                if left <= 0 or part.full(self._batch.max_milliseconds / 1000):
                    await part.breathe()
                    left = self._batch.max_pods
            part.finish()

    async def tick(self) -> None:
        """Tell the core that time passes, until cancelled."""
        while True:
            part = self._meter.start("timers")
            self._tell(Tick(self._clock()))
            if self._recording is not None:
                self._recording.flush()
            part.finish()
            await asyncio.sleep(TICK_SECONDS)

    def _remember_gone(self, uid: PodUid) -> None:
        self._read_gone[uid] = None
        if len(self._read_gone) > _MOST_READ_GONE:
            # The watch had told of most of these before they were read.
            del self._read_gone[next(iter(self._read_gone))]

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


def reads_the_same(kind: Kind, old: ClusterObject, new: ClusterObject) -> bool:
    """Return whether an update changed nothing that scheduling reads."""
    if kind in _VERSIONED:
        return False
    metadata = msgspec.structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return msgspec.structs.replace(old, metadata=metadata) == new
