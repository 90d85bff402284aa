"""Wakes parked pods that an event has helped, and only those.

What changed is judged by the very filters that rejected the pods: the touched rows, once per
parked shape. A pod is woken iff one of these rows would now take it, so with all messages
handled no parked pod is feasible. A pod that found no node at all is woken by the first one,
fitting or not: what it says of itself would be wrong from then on.
"""

from collections.abc import Mapping

import numpy as np

from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.runtime import PluginError, Runtime
from k8s_scheduler.core.framework.views import PodView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import Change, NodeRow, event_label


class Waker:
    """Compares what changed with who is parked."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        cache: Cache,
        runtime: Runtime,
        profiles: Mapping[str, Profile],
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._runtime = runtime
        self._profiles = profiles

    def wake(self, *, now: float) -> None:
        """Judge every parked shape on the rows touched since the last call."""
        changes = self._cache.changes.drain()
        if not changes or not len(self._queue.parked):
            return
        for pods in self._queue.parked.shapes():
            event = _first_nodes(pods, changes) or self._help_for(pods[0], changes)
            if event:
                for queued in pods:
                    self._queue.wake(queued, event_label(event), now=now)

    @property
    def is_due(self) -> bool:
        """Return whether something changed since parked pods were last looked at."""
        return bool(len(self._cache.changes) and len(self._queue.parked))

    def _help_for(self, queued: QueuedPod, changes: Mapping[NodeRow, Change]) -> Change:
        """Return the event that made room for pods of this shape; 0 if there is none."""
        profile = self._profiles[queued.pod.spec.scheduler_name]
        rows = [
            row
            for row, change in changes.items()
            if change & profile.helped_by and self._cache.nodes.node_at(row) is not None
        ]
        if not rows:
            return Change(0)
        touched = np.array(rows, dtype=np.int64)
        try:
            filtered = self._runtime.run_filters(profile, PodView(queued.pod), touched)
        except PluginError:
            # Let the pod's own cycle meet the error: there it is reported.
            return changes[rows[0]] & profile.helped_by
        if not len(filtered.feasible):
            return Change(0)
        return changes[NodeRow(int(filtered.feasible[0]))] & profile.helped_by


def _first_nodes(pods: list[QueuedPod], changes: Mapping[NodeRow, Change]) -> Change:
    """Return NODE_ADD if there are nodes now and there were none when one of the pods was tried."""
    if any(not queued.rejectors for queued in pods):
        return next((Change.NODE_ADD for c in changes.values() if c & Change.NODE_ADD), Change(0))
    return Change(0)
