"""Changes of all that is neither pod nor node, in the random histories of `kept_world`."""

import random
from typing import Any

from k8s_scheduler.api.kinds import Kind, kind_named
from tests.property.kept_pods import (
    CLAIMS,
    INDEX,
    NAMESPACES,
    NODES,
    OWNERS,
    SERVICES,
    ZONE,
    Raw,
)
from tests.property.saga_world import PV, PVC, Server, claim, volume


class ObjectChanges:
    """What may happen to namespaces, services, owners and volumes."""

    server: Server
    rng: random.Random

    def _change(self, kind: Kind, namespace: str, name: str, raw: Raw) -> None:
        if (kind, namespace, name) in self.server.objects and self.rng.random() < 0.35:
            self.server.drop(kind, namespace, name)
        else:
            metadata = {"name": name, "namespace": namespace, **raw.pop("metadata", {})}
            self.server.put(kind, {"metadata": metadata, **raw})

    def change_namespace(self) -> None:
        labels = self.rng.choice([{}, {"team": "red"}, {"team": "blue"}])
        name = self.rng.choice(NAMESPACES)
        self._change(Kind.NAMESPACE, "", name, {"metadata": {"labels": labels}})

    def _random_selector(self) -> dict[str, str]:
        picked = self.rng.choice([{}, {"app": "x"}, {"app": "y"}, {INDEX: "1"}, {"version": "1"}])
        return dict(picked)

    def change_service(self) -> None:
        spec = {"selector": self._random_selector()}
        namespace, name = self.rng.choice(NAMESPACES), self.rng.choice(SERVICES)
        self._change(Kind.SERVICE, namespace, name, {"spec": spec})

    def change_owner(self) -> None:
        kind = kind_named(self.rng.choice(OWNERS))
        labels = self._random_selector()
        selector: Any = labels
        if kind is not Kind.REPLICATION_CONTROLLER:
            selector = {"matchLabels": labels}
        self._change(kind, self.rng.choice(NAMESPACES), "o", {"spec": {"selector": selector}})

    # Volumes

    def begin_volumes(self) -> None:
        for name in ("local", "dynamic"):
            provisioner = "kubernetes.io/no-provisioner" if name == "local" else "csi.a"
            mode = "WaitForFirstConsumer"
            raw = {"provisioner": provisioner, "volumeBindingMode": mode}
            self.server.put(Kind.STORAGE_CLASS, {"metadata": {"name": name}, **raw})
        for _ in range(4):
            self.change_claim()
            self.change_volume()

    def change_class(self) -> None:
        mode = self.rng.choice(["Immediate", "WaitForFirstConsumer", "WaitForFirstConsumer"])
        raw: Raw = {"provisioner": "csi.a", "volumeBindingMode": mode}
        if self.rng.random() < 0.3:
            values = {"key": ZONE, "values": ["z0", "z1"]}
            raw["allowedTopologies"] = [{"matchLabelExpressions": [values]}]
        self._change(Kind.STORAGE_CLASS, "", "dynamic", raw)

    def change_claim(self) -> None:
        name = self.rng.choice(CLAIMS)
        raw = claim(name, self.rng.choice(["local", "dynamic"]))
        mode = self.rng.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])
        raw["spec"]["accessModes"] = [mode]
        if self.rng.random() < 0.4:
            raw["spec"]["volumeName"] = self.rng.choice(["v0", "v1", "v2"])
            raw["status"]["phase"] = "Bound"
            raw["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self._change(PVC, "default", name, raw)

    def change_volume(self) -> None:
        name = self.rng.choice(["v0", "v1", "v2"])
        raw = volume(name, self.rng.choice(["local", "dynamic"]), self.rng.choice(NODES))
        kind = self.rng.choice(["host", "zone", "csi"])
        if kind != "host":
            raw["spec"].pop("nodeAffinity")
        if kind == "zone":
            raw["metadata"]["labels"] = {ZONE: self.rng.choice(["z0", "z1"])}
        if kind == "csi":
            raw["spec"]["csi"] = {"driver": "csi.a", "volumeHandle": name}
        self._change(PV, "", name, raw)

    def change_csi_node(self) -> None:
        name = self.rng.choice(NODES)
        count = self.rng.choice([0, 1, 2])
        driver = {"name": "csi.a", "nodeID": name, "allocatable": {"count": count}}
        self._change(Kind.CSI_NODE, "", name, {"spec": {"drivers": [driver]}})

    def change_attachment(self) -> None:
        spec = {
            "attacher": "csi.a",
            "nodeName": self.rng.choice(NODES),
            "source": {"persistentVolumeName": self.rng.choice(["v0", "v1"])},
        }
        self._change(Kind.VOLUME_ATTACHMENT, "", "a0", {"spec": spec})

    def control_volumes(self) -> None:
        if not self.server.control_volumes():
            self.server.provision(lucky=self.rng.random() < 0.7)
