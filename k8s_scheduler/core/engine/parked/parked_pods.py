"""Looks after parked pods: wakes them, keeps their reasons true, and checks on a sample."""

from collections.abc import Mapping

from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.parked.parked_audit import ParkedAudit
from k8s_scheduler.core.engine.parked.renewals import Renewals
from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.queue.waking import Waker
from k8s_scheduler.core.state.protocols import Tables


class ParkedPods:
    """Everything that is done for pods between two attempts."""

    def __init__(
        self,
        *,
        cache: Tables,
        queue: SchedulingQueue,
        runtime: Runtime,
        cycle: Cycle,
        making_room: MakingRoom,
        profiles: Mapping[str, Profile],
        meter: Meter,
        out: Outbox,
    ) -> None:
        self._queue = queue
        self.waker = Waker(
            queue=queue,
            cache=cache,
            runtime=runtime,
            profiles=profiles,
            could_make_room=making_room.could,
        )
        self._audit = ParkedAudit(
            cache=cache,
            queue=queue,
            waker=self.waker,
            runtime=runtime,
            profiles=profiles,
            meter=meter,
            nominees=cycle.nominees,
            out=out,
        )
        self.renewals = Renewals(
            cache=cache,
            queue=queue,
            cycle=cycle,
            making_room=making_room,
            waker=self.waker,
            audit=self._audit,
            profiles=profiles,
            meter=meter,
            out=out,
        )

    @property
    def is_due(self) -> bool:
        """Return whether there is something to do before the next tick."""
        return self.waker.is_due or self.renewals.is_due

    def wake(self, *, now: float) -> None:
        """Do one step of waking, and one of renewing reasons."""
        self.waker.wake(now=now)
        self.renewals.step(now=now)

    def tick(self, *, now: float) -> None:
        """Do what is due once a second."""
        self.waker.wake(now=now)
        self._queue.tick(now=now)
        self._audit.look(now=now)
        self.renewals.begin(now=now)
        self.renewals.step(now=now)

    def rewind(self) -> None:
        """Give up what is half done; it is begun again from the start."""
        self.waker.rewind()
        self.renewals.rewind()
        self._queue.giving_way.forget()
