"""Bugs put into the real code on purpose: an auditor that misses them proves nothing.

Each replaces one function of the daemon for the length of a block. Which seed shows which bug is
in `test_planted.py`; `python -m tests.simulation --planted NAME` looks for more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.pod import Pod, PodSpec
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.lease.claim import Claim
from k8s_scheduler.kube.lease.lease import Record
from k8s_scheduler.kube.lease.observed_lease import ObservedLease
from k8s_scheduler.kube.watch import reflector
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.queries import watch_query
from k8s_scheduler.kube.watch.relist import Relist
from k8s_scheduler.kube.write import bind_calls
from k8s_scheduler.kube.write.bind_machine import BindMachine
from k8s_scheduler.kube.write.binding import BindFailure, PostAnswer, Posted, ReadAnswer, judge_post
from k8s_scheduler.kube.write.condition_writer import ConditionWriter
from tests.simulation.planted_restores import RESTORE_PLANTS

Plant = tuple[Any, str, Any]


def lost_delete() -> Plant:
    """A list takes nothing away: what was deleted during an outage stays for ever."""

    async def finish(self: Any, work: Any) -> None:
        del self._present

    return Relist, "finish", finish


def unreserve_on_unknown() -> Plant:
    """A pod that is read unbound counts as not bound, although a request may yet be carried out."""

    def unbound(self: Any, answer: ReadAnswer) -> float:
        self.fail(BindFailure.CONFLICT, answer.message)
        return 0.0

    return BindMachine, "_unbound", unbound


def rebind_after_504() -> Plant:
    """A 504 counts as a refusal."""

    def judge(response: Response) -> PostAnswer:
        return PostAnswer(Posted.REFUSED, "504") if response.status == 504 else judge_post(response)

    return bind_calls, "judge_post", judge


def unreserve_on_500() -> Plant:
    """A 500 ends a bind at once: its pod is given back, and decided anew."""

    def judge(response: Response) -> PostAnswer:
        return PostAnswer(Posted.REFUSED, "500") if response.status == 500 else judge_post(response)

    return bind_calls, "judge_post", judge


def double_assume() -> Plant:
    """An assumed pod takes no room before the watch confirms it."""
    nothing = pod_requests(Pod(ObjectMeta(name="none"), PodSpec(containers=[])))
    assume = Cache.assume

    def assume_nothing(self: Cache, pod: Pod, row: Any, requests: Any = None) -> None:
        assume(self, pod, row, nothing)

    return Cache, "assume", assume_nothing


def missing_barrier() -> Plant:
    """A new leader decides on whatever its caches hold."""

    async def catch_up(self: Informer[Any]) -> None:
        await self.synced.wait()

    return Informer, "catch_up", catch_up


def late_lease() -> Plant:
    """The deadline is counted from the end of the lease, not from its renewal."""

    def deadline(self: Any) -> float:
        config = self._config
        return float(self.held_from + config.renew_deadline_seconds + config.lease_duration_seconds)

    return Claim, "deadline", property(deadline)


def stolen_lease() -> Plant:
    """A standby takes a lease that it has not seen change for a while, however short."""

    def is_free(self: Any, lease: Any) -> bool:
        return self.observed.holder in ("", self._config.identity) or (
            self._clock() - self.observed.since >= self._config.retry_period_seconds * 1.5
        )

    return Claim, "_is_free", is_free


def uncounted_renewal() -> Plant:
    """A renewal that the watch shows is taken note of, but not counted from."""

    def show(self: ObservedLease, record: Record) -> bool:
        self.record = record
        return True

    return ObservedLease, "show", show


def event_without_bind() -> Plant:
    """A Binding without an answer counts as done, and is told."""
    posted = BindMachine.posted

    def trust(self: BindMachine, answer: PostAnswer, now: float) -> float:
        if answer.kind is Posted.UNKNOWN:
            answer = PostAnswer(Posted.BOUND)
        return posted(self, answer, now)

    return BindMachine, "posted", trust


def wrong_resume() -> Plant:
    """A watch that was cut is resumed a little further than where it stopped."""

    def query(resource: Any, version: str, *, timeout_seconds: float) -> dict[str, str]:
        return watch_query(resource, str(int(version) + 2), timeout_seconds=timeout_seconds)

    return reflector, "watch_query", query


def dropped_on_requeue() -> Plant:
    """A parked pod that is woken leaves the queue."""

    def wake(self: SchedulingQueue, queued: Any, event: str, *, now: float) -> None:
        self.remove(queued.uid)

    return SchedulingQueue, "wake", wake


def early_release() -> Plant:
    """The lease is given back before the writes under way have ended."""
    drain = Daemon._drain

    async def release_first(self: Any) -> int:
        elector = self._graph.elector
        if elector is not None and elector.is_leading:
            await elector.release()
        return await drain(self)

    return Daemon, "_drain", release_first


def condition_overtakes() -> Plant:
    """A bind does not wait for the condition of its pod that is being written."""

    def give_way(self: Any, uid: Any) -> bool:
        return True

    return ConditionWriter, "give_way", give_way


PLANTS: Final[dict[str, Callable[[], Plant]]] = {
    plant.__name__: plant
    for plant in (
        lost_delete,
        unreserve_on_unknown,
        rebind_after_504,
        unreserve_on_500,
        double_assume,
        missing_barrier,
        late_lease,
        stolen_lease,
        uncounted_renewal,
        event_without_bind,
        wrong_resume,
        dropped_on_requeue,
        early_release,
        condition_overtakes,
        *RESTORE_PLANTS,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let the daemon have a bug."""
    owner, attribute, replacement = PLANTS[name]()
    with patch.object(owner, attribute, replacement):
        yield
