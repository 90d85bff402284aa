"""Pods that the other scheduler could not place while there is a node for them.

It says so in the condition PodScheduled. That alone proves nothing: a pod is tried again when
something changes, after a backoff of some seconds. So a pod counts only when a node has fitted for
longer than that at a stretch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.simulate.shadowing.report import Report

# Longer than the longest backoff (10 s) and its steps.
PATIENCE_SECONDS = 15.0
# Pods looked at in a second.
_AT_A_TIME = 4


def failed_to_place(pod: Pod) -> bool:
    if pod.spec.node_name or is_terminating(pod):
        return False
    return any(
        c.type == "PodScheduled" and c.status == "False" and c.reason == "Unschedulable"
        for c in pod.status.conditions or ()
    )


@dataclass(slots=True)
class _Waiting:
    pod: Pod
    # Since when a node has fitted at each look; None if none did at the last.
    fits_since: float | None = None
    is_told: bool = False


class UnplacedPods:
    """Looks at pods in turn."""

    def __init__(self, feasible: Callable[[Pod], int], report: Report) -> None:
        self._feasible = feasible
        self._report = report
        self._waiting: dict[str, _Waiting] = {}

    def put(self, pod: Pod) -> None:
        known = self._waiting.get(pod.metadata.uid)
        if known is None:
            self._waiting[pod.metadata.uid] = _Waiting(pod)
            self._report.not_placed(pod.spec.scheduler_name)
        else:
            known.pod = pod

    def remove(self, uid: str) -> None:
        self._waiting.pop(uid, None)

    def look(self, now: float) -> None:
        for uid in list(self._waiting)[:_AT_A_TIME]:
            waiting = self._waiting.pop(uid)
            # To the end of the line.
            self._waiting[uid] = waiting
            nodes = self._feasible(waiting.pod)
            if not nodes:
                waiting.fits_since = None
            elif waiting.fits_since is None:
                waiting.fits_since = now
            elif now - waiting.fits_since >= PATIENCE_SECONDS and not waiting.is_told:
                waiting.is_told = True
                self._report.could_be_placed(
                    waiting.pod.spec.scheduler_name, key_of(waiting.pod.metadata), nodes
                )
