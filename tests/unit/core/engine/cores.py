"""Cores with all built-in plugins, and what tests tell them."""

from typing import Any

import msgspec

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import ObjectChanged
from k8s_scheduler.core.setup import Setup
from tests.builders import NodeBuilder, PodBuilder, make_node
from tests.inside import inside
from tests.unit.core.harness import Harness

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FULL = Setup(profiles=default_configuration(known_plugins()).profiles)


class FullHarness(Harness):
    """Drives a core that runs the default profile."""

    def __init__(self) -> None:
        super().__init__(FULL)

    def object(self, kind: Kind, name: str, *, namespace: str = "", **parts: Any) -> None:
        metadata = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
        found = msgspec.convert({"metadata": metadata, **parts}, kind.type)
        self.tell(ObjectChanged(self.now, kind, namespace, name, found))

    def drop_object(self, kind: Kind, name: str, *, namespace: str = "") -> None:
        self.tell(ObjectChanged(self.now, kind, namespace, name, None))

    def budget(self, name: str, allowed: int, **pairs: str) -> None:
        self.object(
            Kind.POD_DISRUPTION_BUDGET,
            name,
            namespace="default",
            spec={"selector": {"matchLabels": pairs}},
            status={"disruptionsAllowed": allowed},
        )

    def settle(self) -> None:
        """Decide and wake until there is nothing left to do now."""
        for _ in range(1000):
            if not self.core.has_work:
                return
            self.schedule()
        raise AssertionError("the core never comes to rest")

    def parked(self) -> list[str]:
        return [queued.pod.metadata.name for queued in inside(self.core).queue.parked]

    def parked_in_vain(self) -> list[str]:
        """Return the parked pods that some node would take."""
        return [
            queued.pod.metadata.name
            for queued in inside(self.core).queue.parked
            if self.core.judge(queued.pod).feasible
        ]


def zoned(name: str, zone: str = "z", *, cpu: str = "4") -> NodeBuilder:
    return make_node(name).label(zone=zone, host=name).offers(cpu=cpu, memory="8Gi", pods="110")


def pinned(pod: PodBuilder, host: str) -> PodBuilder:
    pod.raw["spec"]["nodeSelector"] = {"host": host}
    return pod


def promised(pod: PodBuilder, node: str) -> PodBuilder:
    pod.raw["status"]["nominatedNodeName"] = node
    return pod


def near(pod: PodBuilder, *, anti: bool = False, key: str = "zone", **pairs: str) -> PodBuilder:
    """Demand that pods with these labels are near, or not."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": pairs}}
    kind = "podAntiAffinity" if anti else "podAffinity"
    affinity = pod.raw["spec"].setdefault("affinity", {})
    affinity.setdefault(kind, {}).setdefault(REQUIRED, []).append(term)
    return pod


def away(pod: PodBuilder, *, key: str = "zone", **pairs: str) -> PodBuilder:
    return near(pod, anti=True, key=key, **pairs)


def spread(pod: PodBuilder, key: str = "zone", **pairs: str) -> PodBuilder:
    pod.raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": pairs},
        }
    ]
    return pod


def claiming(pod: PodBuilder, claim: str) -> PodBuilder:
    pod.raw["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return pod
