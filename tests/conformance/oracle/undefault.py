"""Scenarios as people write them: what the API server would fill in is left out, by chance.

Turns the oracle's scenarios, where everything is written out, into such in which limits stand
without requests, nodes have a capacity alone, ports have no protocol, and so on. The result means
something else than the original now and then; it is a new question, for both sides.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.oracle.gen import scenarios

# Finer than thousandths: the API server rounds it up.
_FINE = ["100u", "1500u", "0.0005", "333333n"]


def undefaulted_scenarios(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield `count` scenarios of each family, with less in them; ids begin with the family."""
    for scenario in scenarios(seed, count):
        rng = random.Random(f"undefault/{scenario['id']}")
        yield Undefault(rng).scenario(scenario)


class Undefault:
    """Takes away what has a default."""

    def __init__(self, rng: random.Random) -> None:
        self.r = rng

    def scenario(self, scenario: dict[str, Any]) -> dict[str, Any]:
        """Return the scenario with less in it."""
        objects = copy.deepcopy(scenario["objects"])
        for o in objects:
            change = getattr(self, f"_{o['kind'].lower()}", None)
            if change is not None:
                change(o)
        return {**scenario, "id": f"{scenario['id']}-undefaulted", "objects": objects}

    def _p(self, chance: float) -> bool:
        return self.r.random() < chance

    def _pod(self, pod: dict[str, Any]) -> None:
        spec = pod["spec"]
        if self._p(0.2):
            spec["hostNetwork"] = True
        if self._p(0.2):
            spec["schedulerName"] = self.r.choice(["", "default-scheduler", "another"])
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            self._container(container)
        if self._p(0.2):
            spec["resources"] = self._pod_level()
        if self._p(0.2):
            rbd = {"monitors": ["m1"], "image": self.r.choice(["i1", "i2"])}
            if self._p(0.5):
                rbd["pool"] = self.r.choice(["", "rbd", "other"])
            spec.setdefault("volumes", []).append({"name": "rbd", "rbd": rbd})

    def _container(self, container: dict[str, Any]) -> None:
        resources = container.get("resources", {})
        requests = resources.get("requests", {})
        for name in sorted(requests):
            if self._p(0.3):
                resources.setdefault("limits", {})[name] = requests[name]
                if self._p(0.8):
                    del requests[name]
        if "requests" in resources and not requests and self._p(0.5):
            del resources["requests"]
        if requests.get("cpu") and self._p(0.1):
            requests["cpu"] = self.r.choice(_FINE)
        if self._p(0.2):
            container.setdefault("ports", []).append({"containerPort": self.r.choice([80, 81])})
        for port in container.get("ports", []):
            if self._p(0.4):
                port.pop("protocol", None)

    def _pod_level(self) -> dict[str, Any]:
        amounts = {"cpu": ["500m", "1500m", "3"], "memory": ["512Mi", "3Gi"]}
        amounts["hugepages-2Mi"] = ["4Mi", "64Mi"]
        level: dict[str, Any] = {}
        for part in ("limits", "requests"):
            level[part] = {name: self.r.choice(amounts[name]) for name in amounts if self._p(0.4)}
            if not level[part] and self._p(0.5):
                del level[part]
        return level

    def _node(self, node: dict[str, Any]) -> None:
        if self._p(0.3):
            node["status"].pop("allocatable")
        elif self._p(0.2):
            node["status"]["allocatable"] = {
                **node["status"]["allocatable"],
                "cpu": self.r.choice(["1.9999", "2000000001n"]),
            }

    def _namespace(self, namespace: dict[str, Any]) -> None:
        if self._p(0.5):
            del namespace["metadata"]["labels"]["kubernetes.io/metadata.name"]

    def _storageclass(self, storage_class: dict[str, Any]) -> None:
        if storage_class["volumeBindingMode"] == "Immediate":
            del storage_class["volumeBindingMode"]

    def _csidriver(self, driver: dict[str, Any]) -> None:
        if self._p(0.5):
            del driver["spec"]["storageCapacity"]

    def _persistentvolume(self, volume: dict[str, Any]) -> None:
        if self._p(0.3):
            volume["spec"]["volumeMode"] = self.r.choice(["Filesystem", "Block"])

    def _persistentvolumeclaim(self, claim: dict[str, Any]) -> None:
        if self._p(0.3):
            claim["spec"]["volumeMode"] = self.r.choice(["Filesystem", "Block"])
        if claim["status"]["phase"] == "Pending" and self._p(0.5):
            del claim["status"]

    def _replicationcontroller(self, controller: dict[str, Any]) -> None:
        spec = controller["spec"]
        spec["template"] = {"metadata": {"labels": spec["selector"]}, "spec": {"containers": []}}
        if self._p(0.7):
            del spec["selector"]
