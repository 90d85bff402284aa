"""A mixed load for a scheduler that is being followed: every kind of wish takes its turn."""

from collections.abc import Iterator
from typing import Any

from testbed.bench.scenario_pods import PREFERRED, mixed
from testbed.client import Object
from testbed.workload import make_node

ZONES = 3
DEDICATED = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
_SIZES = (("4", "16Gi"), ("8", "32Gi"), ("16", "32Gi"))
_CPUS = ("50m", "100m", "200m", "350m")


def mixed_nodes(count: int, *, prefix: str = "node") -> Iterator[Object]:
    """Yield nodes of three sizes in three zones; every tenth is for those who tolerate it."""
    for i in range(count):
        cpu, memory = _SIZES[i % len(_SIZES)]
        yield make_node(
            f"{prefix}-{i:04d}",
            cpu=cpu,
            memory=memory,
            zone=f"zone-{i % ZONES}",
            labels={"disk": "ssd" if i % 4 else "hdd"},
            taints=[DEDICATED] if i % 10 == 0 else [],
        )


def mixed_pods(
    count: int, *, namespace: str, scheduler_name: str, start: int = 0
) -> Iterator[Object]:
    """Yield pods that spread, gather and avoid each other, prefer and tolerate nodes."""
    for i in range(start, start + count):
        pod = mixed(f"pod-{i:05d}", i)
        pod["metadata"]["namespace"] = namespace
        # Nobody made the owner: the garbage collector would take the pod away.
        pod["metadata"].pop("ownerReferences", None)
        spec: dict[str, Any] = pod["spec"]
        spec["schedulerName"] = scheduler_name
        cpu = _CPUS[i % len(_CPUS)]
        resources = {"cpu": cpu, "memory": "128Mi"}
        spec["containers"][0]["resources"] = {"requests": resources}
        if i % 5 == 0:
            spec["tolerations"] = [DEDICATED | {"operator": "Equal"}]
        if i % 7 == 0:
            # Not a zone: some of these are spread over all zones evenly.
            spec["nodeSelector"] = {"disk": "ssd"}
        if i % 6 == 0:
            term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            wish = [{"weight": 10 + i % 50, "preference": term}]
            spec.setdefault("affinity", {})["nodeAffinity"] = {PREFERRED: wish}
        yield pod
