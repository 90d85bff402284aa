"""Looks after parked pods: wakes them, keeps their reasons true, and checks on a sample."""

from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.decision.cycle import Cycle
from k8s_scheduler.core.engine.parked.parked_audit import ParkedAudit
from k8s_scheduler.core.engine.parked.renewals import Renewals
from k8s_scheduler.core.engine.preemption.post_filter import PostFilter
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.queue.waking import Waker


class ParkedPods:
    """Everything that is done for pods between two attempts."""

    def __init__(
        self, state: CoreState, runtime: Runtime, *, cycle: Cycle, post_filter: PostFilter
    ) -> None:
        self._queue = state.queue
        self.waker = Waker(
            queue=state.queue,
            cache=state.cache,
            runtime=runtime,
            profiles=state.profiles,
            could_make_room=post_filter.could,
        )
        self._audit = ParkedAudit(state, runtime, waker=self.waker, nominees=cycle.nominees)
        self.renewals = Renewals(
            state, cycle, post_filter=post_filter, waker=self.waker, audit=self._audit
        )

    @property
    def is_due(self) -> bool:
        return self.waker.is_due or self.renewals.is_due

    def wake(self, *, now: float) -> None:
        self.waker.wake(now=now)
        self.renewals.step(now=now)

    def tick(self, *, now: float) -> None:
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
