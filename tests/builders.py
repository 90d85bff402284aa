"""Fluent builders of wire objects: `make_pod("a").cpu("500m").tolerates("k").obj()`."""

from typing import Any, NamedTuple

import msgspec

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Declarations


class Reading(NamedTuple):
    """A plugin that reads through a view, and what it has declared."""

    name: str
    declared: Declarations


class _Builder:
    """Collects the object as the API server would send it, and decodes it the same way."""

    kind: type[Any]

    def __init__(self, name: str) -> None:
        self.raw: dict[str, Any] = {"metadata": {"name": name}, "spec": {}, "status": {}}

    def label(self, **labels: str):
        self.raw["metadata"].setdefault("labels", {}).update(labels)
        return self

    def version(self, resource_version: int):
        self.raw["metadata"]["resourceVersion"] = str(resource_version)
        return self

    def obj(self) -> Any:
        return msgspec.convert(self.raw, self.kind)


class PodBuilder(_Builder):
    kind = Pod

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.raw["metadata"].update(namespace="default", uid=f"uid-{name}")
        self.raw["spec"].update(schedulerName="default-scheduler", containers=[])

    def namespace(self, name: str) -> "PodBuilder":
        self.raw["metadata"]["namespace"] = name
        return self

    def uid(self, uid: str) -> "PodBuilder":
        self.raw["metadata"]["uid"] = uid
        return self

    def scheduler(self, name: str) -> "PodBuilder":
        self.raw["spec"]["schedulerName"] = name
        return self

    def request(self, **amounts: str) -> "PodBuilder":
        """Add a container; `_` in a resource's name stands for `-`, `__` for `/`."""
        requests = {
            name.replace("__", "/").replace("_", "-"): value for name, value in amounts.items()
        }
        self.raw["spec"]["containers"].append(
            {
                "name": f"c{len(self.raw['spec']['containers'])}",
                "resources": {"requests": requests},
            }
        )
        return self

    def init(self, *, restartable: bool = False, **amounts: str) -> "PodBuilder":
        inits = self.raw["spec"].setdefault("initContainers", [])
        container = {"name": f"i{len(inits)}", "resources": {"requests": amounts}}
        if restartable:
            container["restartPolicy"] = "Always"
        inits.append(container)
        return self

    def overhead(self, **amounts: str) -> "PodBuilder":
        self.raw["spec"]["overhead"] = amounts
        return self

    def pod_level(self, **amounts: str) -> "PodBuilder":
        self.raw["spec"]["resources"] = {"requests": amounts}
        return self

    def priority(self, value: int) -> "PodBuilder":
        self.raw["spec"]["priority"] = value
        return self

    def on(self, node: str) -> "PodBuilder":
        self.raw["spec"]["nodeName"] = node
        return self

    def tolerates(
        self, key: str = "", *, value: str = "", effect: str = "", operator: str = ""
    ) -> "PodBuilder":
        toleration = {"key": key, "value": value, "effect": effect, "operator": operator}
        self.raw["spec"].setdefault("tolerations", []).append(toleration)
        return self

    def gate(self, *names: str) -> "PodBuilder":
        self.raw["spec"]["schedulingGates"] = [{"name": name} for name in names]
        return self

    def deleting(self) -> "PodBuilder":
        self.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return self

    def condition(self, reason: str, message: str) -> "PodBuilder":
        self.raw["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        ]
        return self


class NodeBuilder(_Builder):
    kind = Node

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.raw["metadata"]["uid"] = f"uid-{name}"
        self.offers(cpu="4", memory="8Gi", pods="110")

    def offers(self, **amounts: str) -> "NodeBuilder":
        self.raw["status"]["allocatable"] = {
            name.replace("__", "/").replace("_", "-"): value for name, value in amounts.items()
        }
        return self

    def cordoned(self) -> "NodeBuilder":
        self.raw["spec"]["unschedulable"] = True
        return self

    def taint(self, key: str, *, value: str = "", effect: str = "NoSchedule") -> "NodeBuilder":
        taint = {"key": key, "value": value, "effect": effect}
        self.raw["spec"].setdefault("taints", []).append(taint)
        return self


def make_pod(name: str) -> PodBuilder:
    return PodBuilder(name)


def make_node(name: str) -> NodeBuilder:
    return NodeBuilder(name)
