"""`k8s-scheduler` with one plugin more: a Doorkeeper at Permit. Run as a program by tests.

Pods say by a label what is to become of them at the door: `door: shut` rejects, `door: <seconds>`
makes the pod wait that long at most. A pod with `says: allow` or `says: reject` goes through and
speaks for all that wait at that moment; without a label pods pass.
"""

from typing import ClassVar

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.cli.main import main
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.plugin import Rejection, Wait, WaitingPods
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.registry import ProfilePlace, Registration

SHUT = Reason(code="Doorkeeper/Shut", text="the door is shut")


class Doorkeeper:
    """Lets pods through, or not, or later."""

    name: ClassVar[str] = "Doorkeeper"
    reasons: ClassVar[tuple[Reason, ...]] = (SHUT,)
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def __init__(self) -> None:
        self._waiting: WaitingPods | None = None

    def attach(self, waiting: WaitingPods) -> None:
        """Learn who waits."""
        self._waiting = waiting

    def permit(self, _state: CycleState, pod: Pod, _node: NodeName) -> Rejection | Wait | None:
        """Do as the pod's labels say."""
        labels = pod.metadata.labels or {}
        if said := labels.get("says"):
            self._speak(said)
            return None
        door = labels.get("door")
        if door == "shut":
            return Rejection((SHUT,))
        return Wait(float(door)) if door else None

    def _speak(self, said: str) -> None:
        assert self._waiting is not None
        for uid in self._waiting.uids(self.name):
            if said == "allow":
                self._waiting.allow(uid, self.name)
            else:
                self._waiting.reject(uid, self.name, "somebody said no")


if __name__ == "__main__":
    BUILT_INS[Doorkeeper.name] = Registration(Doorkeeper, place=ProfilePlace.NAMED)
    main()
