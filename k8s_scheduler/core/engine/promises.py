"""Keeps the room that is promised to waiting pods in step with what their status says."""

from collections.abc import Container

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import pod_excess
from k8s_scheduler.core.engine.decision.suspensions import Suspensions
from k8s_scheduler.core.engine.limiting import Limiting
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.protocols import Assuming


class Promises:
    """Nominations of pods that wait, as the watch shows them."""

    def __init__(
        self,
        cache: Assuming,
        queue: SchedulingQueue,
        suspensions: Suspensions,
        limiting: Limiting,
        *,
        served: Container[str],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._suspensions = suspensions
        self._limiting = limiting
        self._served = served

    def keep(self, uid: PodUid, pod: Pod | None) -> None:
        """Keep the promises to pods of ours that wait."""
        if pod is None or not self._waits(uid, pod):
            self._cache.end_nomination(uid)
        elif pod.status.nominated_node_name:
            self._cache.nominate(pod, NodeName(pod.status.nominated_node_name))
        elif self._names_a_node(uid):
            self._cache.end_nomination(uid)
        else:
            # A promise of ours may be on its way to the status: it is one to the pod as it is now.
            promised = self._cache.nominations.node_of(uid)
            if promised is not None:
                self._cache.nominate(pod, promised)

    def _waits(self, uid: PodUid, pod: Pod) -> bool:
        """Return whether a pod is one of ours that may yet be tried."""
        return (
            not pod.spec.node_name
            and pod.spec.scheduler_name in self._served
            and self._cache.node_of(uid) is None
            # Pods that are promised room are judged along with others: no place for one past a
            # limit.
            and not (pod.status.nominated_node_name and pod_excess(pod, self._limiting.pod_limits))
        )

    def _names_a_node(self, uid: PodUid) -> bool:
        """Return whether the status of a pod that waits has named a node so far."""
        known = self._queue.get(uid) or self._suspensions.queued(uid)
        return known is None or bool(known.pod.status.nominated_node_name)
