"""Drives the core: the one place where messages go in and instructions come out.

Informers and dispatcher call in as things happen; `run` lets the core decide whenever there is
work, room for binds, and leave to decide. All of it is on one thread, so messages are handled
one after the other, in the order in which they came.

    not allowed ──allow()──▶ deciding ──forbid()──▶ not allowed      (state is kept up to date
                                                                      either way)
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from k8s_scheduler.api.extras import Batch
from k8s_scheduler.api.kinds import ClusterObject, Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.carrier import Carrier
from k8s_scheduler.app.recording import Recording
from k8s_scheduler.core.engine.evictions import GONE
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    RequestResult,
    Schedule,
    Tick,
)
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.kube.binding import BindOutcome
from k8s_scheduler.kube.write_requests import WriteOutcome
from k8s_scheduler.lib.slices import SliceMeter

TICK_SECONDS = 1.0
# Decisions between two looks at the clock of the slice.
_STEP = 4
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
    ) -> None:
        self._core = core
        self._clock = clock
        self._meter = meter
        self._batch = batch or Batch()
        self._carrier: Carrier | None = None
        self._recording: Recording | None = None
        self._allowed = False
        self._wake = asyncio.Event()

    def connect(self, carrier: Carrier, recording: Recording | None) -> None:
        """Say where instructions go; before the first message."""
        self._carrier = carrier
        self._recording = recording

    # What happens outside

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take a change from the pod informer."""
        known = new if new is not None else old
        if known is not None:
            self._tell(PodChanged(self._clock(), PodUid(known.metadata.uid), new))

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
        if old is not None and new is not None and _reads_the_same(kind, old, new):
            return
        known = new if new is not None else old
        if known is not None:
            metadata = known.metadata
            self._tell(ObjectChanged(self._clock(), kind, metadata.namespace, metadata.name, new))

    def bind_ended(self, outcome: BindOutcome) -> None:
        """Take the definite outcome of a bind."""
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
            while self._allowed and self._core.has_work:
                room = self._connected().bind_room()
                if room <= 0:
                    # A bind that ends makes room, and wakes us.
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

    def _tell(self, message: Message) -> None:
        if self._recording is None:
            instructions = self._core.handle(message)
        else:
            self._recording.write(message)
            instructions = self._core.handle(message)
            self._recording.answered(instructions)
        self._connected().carry_out(instructions)
        self._wake.set()

    def _connected(self) -> Carrier:
        if self._carrier is None:
            raise RuntimeError("connect() comes before the first message")
        return self._carrier


def _reads_the_same(kind: Kind, old: ClusterObject, new: ClusterObject) -> bool:
    """Return whether an update changed nothing that scheduling reads."""
    if kind in _VERSIONED:
        return False
    metadata = msgspec.structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return msgspec.structs.replace(old, metadata=metadata) == new
