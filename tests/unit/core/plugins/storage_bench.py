"""One plugin of volumes on a small cluster, and short ways to write storage objects."""

import msgspec
import numpy as np

from k8s_scheduler.api.kinds import kind_named
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP, Reject
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.cache import Cache

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SPACE = "default"


class StorageBench:
    """A cluster of named nodes with labels, in the order given."""

    def __init__(self, plugin, **nodes):
        self.plugin = plugin
        self.cache = Cache()
        self.verdicts = VerdictTable()
        for name, labels in nodes.items():
            metadata = {"name": name, "labels": {HOST: name} | labels}
            self.cache.put_node(msgspec.convert({"metadata": metadata}, Node))

    def put(self, *objects):
        for raw in objects:
            kind = kind_named(raw["kind"])
            found = msgspec.convert(raw, kind.type)
            metadata = found.metadata
            self.cache.objects.put(kind, metadata.namespace, metadata.name, found)
        return self

    def place(self, *pods):
        for raw in pods:
            self.cache.put_bound(msgspec.convert(raw, Pod))
        return self

    def view(self, *names, delta=None):
        rows = [self.cache.nodes.row_of(name) for name in names]
        return RowsView(
            self.cache,
            np.array(rows) if names else self.cache.nodes.present_rows(),
            plugin=self.plugin.name,
            declared=Declarations(self.plugin.depends_on),
            verdicts=self.verdicts,
            delta=delta,
        )

    def prepare(self, raw):
        return self.plugin.prepare(pod_view(raw), self.view())

    def refusal(self, raw):
        """Return why the pod is refused before any node is looked at."""
        prepared = self.prepare(raw)
        assert isinstance(prepared, Reject)
        assert not prepared.resolvable
        return prepared.reasons[0].text

    def rejections(self, raw, *names):
        """Return for each node None or (reasons, resolvable)."""
        prepared = self.prepare(raw)
        assert prepared is not SKIP
        return self.judge(prepared, *names)

    def judge(self, prepared, *names, delta=None):
        codes = self.plugin.filter(prepared, self.view(*names, delta=delta)).tolist()
        verdicts = [self.verdicts[code] if code else None for code in codes]
        return [v and (*[r.text for r in v.reasons], v.resolvable) for v in verdicts]

    def pre_score(self, raw, *names):
        return self.plugin.pre_score(pod_view(raw), self.view(*names))

    def scores(self, raw, *names):
        view = self.view(*names)
        return self.plugin.score(self.plugin.pre_score(pod_view(raw), view), view).tolist()


def pod_view(raw):
    return PodView(msgspec.convert(raw, Pod))


def pod(*volumes, name="p", node="", namespace=SPACE):
    """Return a pod; a volume that is a string is a claim."""
    written = [
        {"persistentVolumeClaim": {"claimName": volume}} if isinstance(volume, str) else volume
        for volume in volumes
    ]
    named = [{"name": f"v{number}"} | volume for number, volume in enumerate(written)]
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"volumes": named, "nodeName": node}}


def claim(name, *, of="", size="1Gi", to="", mode="ReadWriteOnce", **more):
    """Return a claim of a class; `to` is the volume it is bound to."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if to else {}
    metadata = {"name": name, "namespace": SPACE, "uid": f"uid-{name}", "annotations": annotations}
    for key in ("annotations", "deletionTimestamp", "ownerReferences"):
        if key in more:
            metadata[key] = more.pop(key)
    phase = more.pop("phase", "Pending")
    spec = {"storageClassName": of, "volumeName": to, "accessModes": [mode]} | more
    if size:
        spec["resources"] = {"requests": {"storage": size}}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }


def volume(name, *, of="", size="1Gi", phase="Available", pin=None, **more):
    """Return a volume of a class; `pin` are the hosts from which it is reached."""
    metadata = {"name": name}
    for key in ("labels", "annotations", "deletionTimestamp"):
        if key in more:
            metadata[key] = more.pop(key)
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"]} | more
    spec["capacity"] = {"storage": size}
    if pin is not None:
        spec["nodeAffinity"] = affinity({"key": HOST, "operator": "In", "values": pin})
    return {
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }


def affinity(*expressions):
    """Return a node affinity of one term."""
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


def csi(driver, handle):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def storage_class(name, provisioner="csi.a", *, mode="WaitForFirstConsumer", **more):
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    } | more


LOCAL = storage_class("local", "kubernetes.io/no-provisioner")


def csi_node(name, *migrated, **limits):
    """Return a CSINode; a limit of None is a driver without one. `_` in names stands for `.`."""
    drivers = [
        {"name": driver.replace("_", ".")}
        | ({} if limit is None else {"allocatable": {"count": limit}})
        for driver, limit in limits.items()
    ]
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    metadata = {"name": name, "annotations": {key: ",".join(migrated)} if migrated else {}}
    return {"kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def csi_driver(name, **spec):
    return {"kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(name, of, amount, topology, **more):
    return {
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "drivers"},
        "storageClassName": of,
        "capacity": amount,
        "nodeTopology": topology,
    } | more


def attachment(name, node, attacher, volume_name):
    source = {"persistentVolumeName": volume_name} if volume_name else {}
    return {
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": attacher, "nodeName": node, "source": source},
    }
