"""Makes a few decisions for nothing, before the first real ones.

The first use of each numpy routine, decoder and metric costs milliseconds, all of them together
more than a slice of the event loop may take. A core that is thrown away pays for it.
"""

from k8s_scheduler.api.meta import NodeName, ObjectMeta, PodUid
from k8s_scheduler.api.node import Node, NodeStatus
from k8s_scheduler.api.pod import Container, Pod, PodSpec, ResourceRequirements
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged, Schedule, Tick
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup

_NODES = 3
_OFFERED: dict[str, str | int | float] = {"cpu": "2", "memory": "2Gi", "pods": "3"}


def warm_up(setup: Setup) -> None:
    """Place some pods on imaginary nodes until no more fit, and forget it all."""
    core = Scheduler(setup)
    for i in range(_NODES):
        node = Node(ObjectMeta(name=f"n{i}"), status=NodeStatus(allocatable=_OFFERED))
        core.handle(NodeChanged(0.0, NodeName(f"n{i}"), node))
    for i in range(4 * _NODES):
        uid = PodUid(f"p{i}")
        requests = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
        spec = PodSpec(
            scheduler_name=setup.profiles[0].scheduler_name,
            containers=[Container(name="c", image="i", resources=requests)],
        )
        core.handle(PodChanged(0.0, uid, Pod(ObjectMeta(name=uid, uid=uid), spec)))
    core.handle(Schedule(0.0, 4 * _NODES))
    core.handle(NodeChanged(0.0, NodeName("n0"), None))
    core.handle(Tick(1.0))
