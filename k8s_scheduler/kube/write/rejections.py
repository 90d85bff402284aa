"""Pods that their kubelet would not run: OutOfcpu, NodeAffinity and the like.

A kubelet checks each pod once more before it runs it, and refuses one that does not fit any more:
the pod is Failed, with a reason. That is how a race between schedulers ends. The pod watch leaves
finished pods out, and its last event about a pod that finishes shows the state *before* that: the
pod looks deleted. So a pod that leaves the watch is read if it had a node, was not started and was
not being deleted. Such pods are few. Victims of a preemption are not read: without a grace period
their deletion is never seen under way, but the condition that was written first says why.

    leaves, never started ─▶ line (bounded) ─▶ GET ─┬─ Failed with a reason ─▶ counted, logged
                                             ▲      ├─ gone, or anything else ─▶ nothing
                              a few times ───┴──────┘ no answer, 429, 5xx

The pods behind in the line wait meanwhile: a server in trouble would not answer for them either.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from k8s_scheduler.api.meta import Wire, key_of
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import UNREADABLE
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy, always
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.throttle import unlimited
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

# Beyond this many the oldest are dropped: some rejections are enough to act on.
_LINE: Final = 1000
_TIMEOUT_SECONDS: Final = 10.0
TRIES: Final = 5
_POLICY: Final = RetryPolicy(tries=TRIES)
_FORBIDDEN: Final = 403
# The kubelet's words; label values come from a fixed set.
_REASONS: Final = frozenset(
    {
        "OutOfcpu",
        "OutOfmemory",
        "OutOfpods",
        "OutOfephemeral-storage",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "TaintToleration",
        "UnexpectedAdmissionError",
        "TopologyAffinityError",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SysctlForbidden",
        "Evicted",
        "NodeShutdown",
    }
)


class _Metadata(Wire, frozen=True, gc=False):
    uid: str = ""


class _Status(Wire, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""


class _Pod(Wire, frozen=True, gc=False):
    metadata: _Metadata
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Pod).decode


class Rejections:
    """Reads the final state of pods that left before they were started."""

    def __init__(
        self,
        caller: Caller,
        *,
        metrics: KubeMetrics,
        is_ours: Callable[[str], bool],
    ) -> None:
        """Read pods while `caller.may_write`; `is_ours` knows the names of our schedulers."""
        # Reads are few: they do not wait for the rate limit of writes.
        self._caller = replace(caller, admit=unlimited, timeout_seconds=_TIMEOUT_SECONDS)
        self._metrics = metrics
        self._is_ours = is_ours
        self._may_look = caller.may_write
        self._line: asyncio.Queue[Pod] = asyncio.Queue(_LINE)
        self._complaints = BoundedLog(logger, caller.timing.clock)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take a change from the pod informer; never waits."""
        if new is not None or old is None or not _left_unstarted(old) or not self._may_look():
            return
        if self._line.full():
            self._line.get_nowait()
        self._line.put_nowait(old)

    async def run(self) -> None:
        """Read one pod after the other, until cancelled."""
        while True:
            pod = await self._line.get()
            found = await self._read(pod)
            if found is not None and found.metadata.uid == pod.metadata.uid:
                self._tell(pod, found.status)

    async def _read(self, pod: Pod) -> _Pod | None:
        metadata = pod.metadata
        path = PODS.object_path(metadata.name, namespace=metadata.namespace)
        answer = await self._ask(path)
        if answer is None:
            return None
        if answer.status == _FORBIDDEN:
            said = answer.error()
            self._complaints.forbidden("get", "pods", namespace=metadata.namespace, error=said)
        if not answer.ok:
            return None
        try:
            return _decode(answer.body)
        except UNREADABLE as error:
            self._complaints.warning("undecodable", "can't read why a pod ended: %s", error)
            return None

    async def _ask(self, path: str) -> Response | None:
        """Return the answer; None if there is none after a few tries.

        The pod is not asked for again later: without the tries, one bad moment of the server would
        hide a race for good.
        """
        tries = self._caller.tries(_POLICY, may_begin=always, may_repeat=self._may_look)
        async for _ in tries:
            answer = await tries.send("GET", path)
            if answer is not None:
                return answer
        if not tries.was_stopped:
            self._complaints.warning("lost", "can't see why a pod ended: %s", tries.problem)
        return None

    def _tell(self, pod: Pod, status: _Status) -> None:
        if status.phase != "Failed" or not status.reason:
            return
        owner = "ours" if self._is_ours(pod.spec.scheduler_name) else "others"
        self._metrics.pods_rejected.labels(_label(status.reason), owner).inc()
        fields = {
            "pod": key_of(pod.metadata),
            "node": pod.spec.node_name,
            "scheduler": pod.spec.scheduler_name,
            "reason": status.reason,
            "message": status.message,
        }
        logger.warning("A pod was rejected by its kubelet", extra={"fields": fields})


def _left_unstarted(pod: Pod) -> bool:
    """Return whether a pod that has left the watch had a node and was not heard of since."""
    return (
        bool(pod.spec.node_name)
        and pod.status.start_time is None
        and pod.status.phase in ("", "Pending")
        and not is_terminating(pod)
        and not _is_victim(pod)
    )


def _is_victim(pod: Pod) -> bool:
    """Return whether a scheduler took the pod's place away: no kubelet rejected it."""
    return any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions or ()
    )


def _label(reason: str) -> str:
    if reason in _REASONS:
        return reason
    return "OutOfother" if reason.startswith("OutOf") else "other"
