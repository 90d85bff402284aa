"""DefaultBinder: hand the pod to the API server by a Binding."""

from typing import ClassVar

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.reasons import Reason


class DefaultBinder:
    """Binds by creating a Binding."""

    name: ClassVar[str] = "DefaultBinder"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def binds(self, pod: Pod) -> bool:
        """Never passes a pod on."""
        return True
