"""One plugin of volumes on a small cluster, and short ways to write storage objects."""

from tests.unit.core.plugins.plugin_bench import PluginBench

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SPACE = "default"


class StorageBench(PluginBench):
    """A cluster of named nodes with labels, in the order given."""

    def __init__(self, plugin, **nodes):
        super().__init__(
            plugin,
            *(
                {"metadata": {"name": name, "labels": {HOST: name} | labels}}
                for name, labels in nodes.items()
            ),
        )


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
