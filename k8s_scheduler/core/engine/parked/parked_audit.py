"""Looks, on a sample, whether parked pods are parked for good reason.

With all messages handled no parked pod may fit. Waking sees to that; here somebody looks whether
it does. A pod that is found to fit is woken at once, counted and logged: the hole is then small,
and known.
"""

from collections.abc import Mapping

from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.queue.waking import Waker
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.rows import NodeRow


class ParkedAudit:
    """Judges one parked pod at a time afresh."""

    def __init__(
        self,
        *,
        cache: Tables,
        queue: SchedulingQueue,
        waker: Waker,
        runtime: Runtime,
        profiles: Mapping[str, Profile],
        meter: Meter,
        nominees: Nominees,
        out: Outbox,
    ) -> None:
        self._cache = cache
        self._nominees = nominees
        self._queue = queue
        self._waker = waker
        self._runtime = runtime
        self._profiles = profiles
        self._meter = meter
        self._out = out

    def look(self, *, now: float) -> None:
        """Look at one pod; wake it if it fits."""
        queued = self._waker.sample()
        if queued is None:
            return
        profile = self._profiles[queued.pod.spec.scheduler_name]
        if any(name not in profile.filter_names for name in queued.rejectors):
            # Whatever else rejected it is not judged here: that it passes filters says nothing.
            return
        rows = self._cache.nodes.present_rows()
        try:
            view = queued.view
            nominated = self._nominees.counting_for(queued.pod)
            found = self._runtime.run_filters(profile, view, rows, nominated).feasible
        except (PluginError, QuantityError):
            return
        if not len(found):
            return
        self.report(queued, NodeRow(int(found[0])))
        self._queue.wake(queued, "UnschedulableTimeout", now=now)

    def report(self, queued: QueuedPod, row: NodeRow) -> None:
        """Count and log a parked pod that a node takes."""
        self._meter.parked_in_vain()
        metadata = queued.pod.metadata
        line = Log(
            Severity.ERROR,
            "a parked pod fits and was not woken: please report this",
            {
                "pod": f"{metadata.namespace}/{metadata.name}",
                "node": self._cache.nodes.name_of(row),
                "rejected_by": ", ".join(queued.rejectors),
            },
        )
        self._out.append(line)
