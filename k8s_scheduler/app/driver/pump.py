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
process.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.api.config.extras import BatchSettings
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.driver.changes import for_each, is_end, reads_the_same
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.left_out import LeftOut
from k8s_scheduler.app.driver.marks import Marks
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.app.driver.undone import Undone
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
    Reconfigure,
    Recount,
    RequestResult,
    Schedule,
    StorageSetBack,
    Tick,
)
from k8s_scheduler.core.messages.outgoing import Instruction
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup, settings_of
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


@dataclass(slots=True, kw_only=True)
class Decisions:
    """How the core may decide.

    `may_decide` is asked before each few decisions: from it a process that was stopped for a while
    learns, before it decides anything on a state that has grown old, that another one decides by
    now. `marks` are told of decisions by the core's witness, and by the pump that they have ended.
    """

    batch: BatchSettings = field(default_factory=BatchSettings)
    may_decide: Callable[[], bool] = lambda: True
    marks: Marks | None = None

    def may_try(self, uid: PodUid | None) -> bool:
        """Return whether the next pod may be tried: it is harmless, or the Lease tells of it."""
        return uid is None or self.marks is None or self.marks.announce(uid)


class Pump:
    """Moves messages in and instructions out."""

    def __init__(
        self,
        core: Scheduler,
        carrier: Carrier,
        *,
        clock: Callable[[], float],
        meter: SliceMeter,
        decisions: Decisions | None = None,
        recording: Recording | None = None,
    ) -> None:
        # Another one after each failure.
        self.core = core
        self._carrier = carrier
        self._clock = clock
        self.meter = meter
        self._decisions = decisions or Decisions()
        self._recording = recording
        # Namespaces of which no more pods should be decided; a new core is told of them as well.
        self._held_back: tuple[str, ...] = ()
        self._cache_bytes: int | None = None
        # Objects on which the core has failed; and set while it is not to be trusted.
        self.left_out = LeftOut()
        self.broken = asyncio.Event()
        self._is_filling = False
        # Whether what is known is of a storage that was set back, and not yet listed anew.
        self.is_set_back = False
        self._undone = Undone(
            may_land=carrier.dispatcher.may_land,
            read=lambda instruction: carrier.carry_out((instruction,)),
            tell=self._pod_is,
        )
        self._allowed = False
        self._wake = asyncio.Event()
        # Whose pods are ours since a reload, until all of them are told of.
        self.to_introduce: frozenset[str] = frozenset()

    # What happens outside

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        known = new if new is not None else old
        if known is not None and not self._undone.changed(old, new):
            self._pod_is(PodUid(known.metadata.uid), new)

    def _pod_is(self, uid: PodUid, pod: Pod | None) -> None:
        if pod is None:
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
        if outcome.reason is BindFailure.NOT_LEADING and self.is_set_back:
            message = SET_BACK
        if outcome.reason is BindFailure.GONE:
            # It was read, and the watch says so later. Until then it would be tried again and
            # again, and a namesake would be told of its failures.
            self._undone.read_gone(outcome.uid)
            self._pod_is(outcome.uid, None)
        uid, attempt, bound = outcome.uid, outcome.attempt, outcome.bound
        self._answer(BindResult(self._clock(), uid, attempt, outcome.node, bound, message))
        self._undone.bind_ended(uid, bound=bound)

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
        if self.is_whole and self.core.has_work:
            self._wake.set()

    def write_ended(self, outcome: WriteOutcome) -> None:
        uid, attempt, request = outcome.uid, outcome.attempt, outcome.request
        message = VICTIM_GONE if outcome.gone else outcome.message
        self._answer(RequestResult(self._clock(), uid, attempt, request, outcome.done, message))

    def pod_read(self, outcome: ReadOutcome) -> None:
        if not self._undone.was_read(outcome):
            self._answer(PodRead(self._clock(), outcome.uid, outcome.attempt, outcome.pod))

    # Checking

    def knows_otherwise(self, pod: Pod) -> bool:
        """Return whether the core may be right to hold a pod otherwise than the watch has told.

        It was read to be gone, and the watch tells of its end later; or a reload has made it ours,
        and is about to tell.
        """
        uid, scheduler_name = PodUid(pod.metadata.uid), pod.spec.scheduler_name
        is_known = uid in self._undone or self.left_out.has("pods", uid)
        return is_known or scheduler_name in self.to_introduce

    def recount(self, first: int, count: int) -> int:
        """Let the core add up anew what pods take; return on how many nodes it was wrong."""
        return len(self._tell(Recount(self._clock(), first, count))) if self.is_whole else 0

    # A storage that was set back

    def doubt(self) -> None:
        """Decide nothing until `trust`: what is known is of a storage that is no more."""
        self.is_set_back = True

    async def trust(self, pods: Mapping[str, Pod]) -> None:
        """Decide again: everything was listed since. `pods` are those that there are.

        What the server had agreed to and the watch has not shown may have been undone: all such
        pods are read, by the core those that it waits for, the others here.
        """
        self._answer(StorageSetBack(self._clock()))
        await for_each(self.meter, "storage set back", pods, self._suspect)
        self.is_set_back = False
        self._wake.set()

    def _suspect(self, pod: Pod) -> None:
        """Have a pod read of which the core was told by a reading what no watch has shown."""
        uid = PodUid(pod.metadata.uid)
        is_otherwise = uid in self._undone or self.core.holdings.is_bound(uid)
        if is_otherwise and not pod.spec.node_name:
            self._undone.suspect(pod)

    # A core that has failed

    @property
    def is_whole(self) -> bool:
        """Whether the core has been told everything and failed on nothing since."""
        return not (self.broken.is_set() or self._is_filling)

    def start_over(self, core: Scheduler) -> None:
        """Drive a new core, which knows nothing; decide nothing until `mend`."""
        self.core = core
        self._is_filling = True
        self.broken.clear()
        self._undone.clear()
        if self._recording is not None:
            self._recording.start_segment(core)
        if self._held_back:
            self.hold_back(self._held_back)
        if self._cache_bytes is not None:
            self.limit_caches(self._cache_bytes)

    def mend(self) -> None:
        """Decide again, with a core that was told everything; unless it has failed meanwhile."""
        if not self.broken.is_set():
            self._is_filling = False
            if self._decisions.marks is not None:
                self.quarantine(self._decisions.marks.deaths)
            self._wake.set()

    def reconfigure(self, setup: Setup, batch: BatchSettings) -> frozenset[str]:
        """Decide by other rules from the next decision on; return whose pods are new to us.

        The core knows none of those: they are told of next, and taken from `to_introduce` then.
        """
        before = self.core.scheduler_names
        self._tell(
            Reconfigure(
                self._clock(),
                setup.profiles,
                settings_of(setup.queue),
                setup.pod_limits,
                setup.node_limits,
                setup.max_victims_per_minute,
            )
        )
        self._decisions.batch = batch
        self.to_introduce = self.core.scheduler_names - before
        return self.to_introduce

    def quarantine(self, deaths: dict[PodUid, int]) -> None:
        """Have pods tried last; before the first decision.

        A core that is being filled is told when it knows the pods.
        """
        if deaths and self.is_whole:
            self._tell(Quarantine(self._clock(), deaths))

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
        rules = self._decisions
        while True:
            await self._wake.wait()
            self._wake.clear()
            part = self.meter.start("core")
            left, at_once, is_first = rules.batch.max_pods, _STEP, True
            while self._decides() and self.core.has_work and rules.may_decide():
                room = self._carrier.dispatcher.bind_room()
                if room <= 0 or (room < _STEP and self.core.binding_count):
                    # A bind that ends makes room, and wakes us. A few at a time cost less each.
                    break
                if not rules.may_try(self.core.next_quarantined):
                    # Another pod may be tried; if there is none, the next message wakes us.
                    self._tell(Schedule(self._clock(), 0))
                    if not rules.may_try(self.core.next_quarantined):
                        self._wake.clear()
                        break
                step = min(room, left, at_once)
                self._tell(Schedule(self._clock(), step))
                if rules.marks is not None:
                    rules.marks.end()
                left -= step
                is_full = part.full(rules.batch.max_milliseconds / 1000)
                at_once = 1 if is_full and is_first else _STEP
                is_first = left <= 0 or is_full
                if is_first:
                    await part.breathe()
                    left = rules.batch.max_pods
            part.finish()

    async def tick(self) -> None:
        """Tell the core that time passes, until cancelled."""
        while True:
            part = self.meter.start("timers")
            self._answer(Tick(self._clock()))
            if self._decisions.marks is not None and self.is_whole:
                # One that is being filled knows of no quarantine yet.
                self._decisions.marks.keep(self.core.holdings.quarantined)
            self._undone.remind()
            if self._recording is not None:
                self._recording.flush()
            part.finish()
            await asyncio.sleep(TICK_SECONDS)

    def _decides(self) -> bool:
        return self._allowed and self.is_whole and not self.is_set_back

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
        if self._recording is not None:
            self._recording.write(message)
        instructions = self.core.handle(message)
        if self._recording is not None:
            self._recording.answered(instructions)
        if instructions:
            self._carrier.carry_out(instructions)
        if not self._wake.is_set() and self.core.has_work:
            self._wake.set()
        return instructions
