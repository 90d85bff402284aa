"""Whether a pod may enter the queue: PreEnqueue plugins, limits, victims that have yet to leave."""

from k8s_scheduler.api.meta import PodUid, key_of
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming
from k8s_scheduler.core.messages.outgoing import Log, Severity


class PreEnqueueGate:
    """Asked by the queue."""

    def __init__(self, state: CoreState, evictions: Evictions) -> None:
        self._state = state
        self._evictions = evictions

    def is_gated(self, pod: Pod) -> bool:
        if self._evictions.is_under_way(PodUid(pod.metadata.uid)):
            return True
        watch = self._state.meter.watches[pod.spec.scheduler_name]
        profile = self._state.profiles.of_pod(pod)
        started = watch.now()
        status = points.SUCCESS
        try:
            for name, plugin in profile.pre_enqueue:
                with blaming(name, "PreEnqueue"):
                    if plugin.pre_enqueue(pod) is not None:
                        status = points.UNRESOLVABLE
                        break
        except PluginError as error:
            status = points.ERROR
            self._state.out.remark(self._complaint(pod, error))
        watch.ended(points.PRE_ENQUEUE, status, started)
        # What has gates of its own is not told of limits: its condition says that it is gated.
        return status != points.SUCCESS or self._state.limiting.is_over(pod)

    def _complaint(self, pod: Pod, error: PluginError) -> Log:
        self._state.meter.plugin_failed(error.plugin, error.extension_point)
        fields: dict[str, str | int] = {
            "plugin": error.plugin,
            "extension_point": error.extension_point,
            "pod": key_of(pod.metadata),
            "error": str(error),
        }
        return Log(Severity.ERROR, "plugin failed, the pod is kept out of the queue", fields)
