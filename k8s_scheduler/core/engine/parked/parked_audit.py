"""Looks, on a sample, whether parked pods are parked for good reason.

With all messages handled no parked pod may fit. Waking sees to that, and here it is checked. A pod
that is found to fit is woken at once, counted and logged: the hole is then small, and known.
"""

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.waking import Waker
from k8s_scheduler.core.state.rows import NodeRow


class ParkedAudit:
    """Judges one parked pod at a time afresh."""

    def __init__(
        self, state: CoreState, runtime: Runtime, *, waker: Waker, nominees: Nominees
    ) -> None:
        self._state = state
        self._runtime = runtime
        self._waker = waker
        self._nominees = nominees

    def look(self, *, now: float) -> None:
        queued = self._waker.sample()
        if queued is None:
            return
        profile = self._state.profiles[queued.pod.spec.scheduler_name]
        if any(name not in profile.filter_names for name in queued.rejectors):
            # Whatever else rejected it is not judged here: that it passes filters says nothing.
            return
        rows = self._state.cache.nodes.present_rows()
        try:
            view = queued.view
            nominated = self._nominees.counting_for(queued.pod)
            found = self._runtime.run_filters(profile, view, rows, nominated).feasible
        except (PluginError, QuantityError):
            return
        if not len(found):
            return
        self.report(queued, NodeRow(int(found[0])))
        self._state.queue.wake(queued, "UnschedulableTimeout", now=now)

    def report(self, queued: QueuedPod, row: NodeRow) -> None:
        self._state.meter.metrics.parked_but_feasible.inc()
        line = Log(
            Severity.ERROR,
            "a parked pod fits and was not woken: please report this",
            {
                "pod": key_of(queued.pod.metadata),
                "node": self._state.cache.nodes.name_of(row),
                "rejected_by": ", ".join(queued.rejectors),
            },
        )
        self._state.out.append(line)
