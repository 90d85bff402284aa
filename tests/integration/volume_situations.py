"""Pods that fit nowhere because of their volumes, by situation.

Claims and volumes are as the controllers leave them: nobody else is there to bind or to make any.
"""

from collections.abc import Mapping
from typing import Any

from testbed.client import Object
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_node
from tests.integration.situations import resident, waiting
from tests.integration.worlds import Thing, World

CLAIMS = "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1"
DRIVER = "csi.example.com"
COUNTING_DRIVER = "counting.example.com"
BY_HAND = "kubernetes.io/no-provisioner"
GIBIBYTE = {"storage": "1Gi"}


def storage_class(name: str, provisioner: str, **more: Any) -> Thing:
    """Return a class that binds late, unless told otherwise."""
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return Thing(f"{STORAGE}/storageclasses", body | more)


def claim_body(name: str, class_name: str, *, mode: str = "ReadWriteOnce", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [mode],
            "storageClassName": class_name,
            "resources": {"requests": GIBIBYTE},
        }
        | spec,
    }


def unbound_claim(name: str, class_name: str, **more: Any) -> Thing:
    return Thing(CLAIMS, claim_body(name, class_name, **more))


def bound_claim(name: str, *, volume: str, phase: str = "Bound", **more: Any) -> Thing:
    """Return a claim that the controller has bound to a volume, be that there or not."""
    body = claim_body(name, "late", volumeName=volume, **more)
    body["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return Thing(CLAIMS, body, status={"phase": phase})


def volume_body(
    name: str,
    *,
    class_name: str = "late",
    labels: Mapping[str, str] | None = None,
    only_on: str = "",
    mode: str = "ReadWriteOnce",
    driver: str = DRIVER,
    **spec: Any,
) -> Object:
    """Return a volume, reachable from one node only if `only_on` names it."""
    if only_on:
        match = {"key": HOSTNAME_LABEL, "operator": "In", "values": [only_on]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "capacity": GIBIBYTE,
            "accessModes": [mode],
            "storageClassName": class_name,
            "csi": {"driver": driver, "volumeHandle": name},
        }
        | spec,
    }


def volume(name: str, **more: Any) -> Thing:
    return Thing(VOLUMES, volume_body(name, **more))


def using(*claims: str) -> Object:
    """Return a pod with these claims."""
    return waiting(
        volumes=[
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}}
            for i, claim in enumerate(claims)
        ]
    )


def with_ephemeral_volume() -> Object:
    template = {"spec": claim_body("", "late")["spec"]}
    return waiting(volumes=[{"name": "own", "ephemeral": {"volumeClaimTemplate": template}}])


def with_disk(name: str, node: str = "") -> Object:
    """Return a pod that writes to a disk which only one node can have at a time."""
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": name}}
    return resident("holds-a-disk", node, volumes=[disk]) if node else waiting(volumes=[disk])


def csi_node(name: str, count: int) -> Thing:
    drivers = [{"name": COUNTING_DRIVER, "nodeID": name, "allocatable": {"count": count}}]
    return Thing(
        f"{STORAGE}/csinodes",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": drivers},
        },
    )


def csi_driver(name: str) -> Thing:
    return Thing(
        f"{STORAGE}/csidrivers",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": name},
            "spec": {"storageCapacity": True},
        },
    )


def _things() -> list[Thing]:
    elsewhere = [{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["north"]}]}]
    leaving = unbound_claim("leaving", "late")
    leaving.body["metadata"]["finalizers"] = ["example.com/stay"]
    return [
        storage_class("late", BY_HAND),
        storage_class("at-once", DRIVER, volumeBindingMode="Immediate"),
        storage_class("elsewhere", DRIVER, allowedTopologies=elsewhere),
        storage_class("scarce", "scarce.example.com"),
        csi_driver("scarce.example.com"),
        *(csi_node(name, 1) for name in ("east-1", "west-1", "west-2")),
        unbound_claim("immediate", "at-once"),
        unbound_claim("no-volume", "late"),
        unbound_claim("wrong-topology", "elsewhere"),
        unbound_claim("no-capacity", "scarce"),
        unbound_claim("no-class", "ghost-class"),
        unbound_claim("classless", ""),
        Thing(CLAIMS, leaving.body, deleted=True),
        bound_claim("lost", volume="gone", phase="Lost"),
        bound_claim("astray", volume="gone"),
        volume("far", only_on="ghost"),
        bound_claim("far", volume="far"),
        volume("zonal", labels={ZONE_LABEL: "north"}),
        bound_claim("zonal", volume="zonal"),
        volume("single", mode="ReadWriteOncePod"),
        bound_claim("single", volume="single", mode="ReadWriteOncePod"),
        *(volume(f"counted-{i}", driver=COUNTING_DRIVER) for i in range(2)),
        *(bound_claim(f"counted-{i}", volume=f"counted-{i}") for i in range(2)),
        volume("here", only_on="east-1"),
        bound_claim("here", volume="here"),
        volume("there", only_on="west-1"),
        bound_claim("there", volume="there"),
        Thing(CLAIMS, claim_body("of-somebody-own", "late")),
    ]


def _waiting() -> dict[str, Object]:
    large = using("here")
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    return {
        "a-claim-that-is-not-there": using("ghost"),
        "an-immediate-claim-that-is-unbound": using("immediate"),
        "a-claim-that-is-being-deleted": using("leaving"),
        "a-claim-that-lost-its-volume": using("lost"),
        "a-claim-bound-to-a-volume-that-is-not-there": using("astray"),
        "a-claim-of-a-class-that-is-not-there": using("no-class"),
        "a-claim-without-a-class": using("classless"),
        "no-volume-to-bind": using("no-volume"),
        "no-volume-to-bind-and-too-far": using("no-volume", "far"),
        "a-class-for-another-topology": using("wrong-topology"),
        "no-capacity-to-make-a-volume": using("no-capacity"),
        "a-volume-out-of-reach": using("far"),
        "volumes-on-different-nodes": using("here", "there"),
        "a-volume-on-a-node-that-is-too-small": large,
        "a-volume-of-another-zone": using("zonal"),
        "a-claim-for-one-pod-only": using("single"),
        "more-volumes-than-a-node-takes": using("counted-0", "counted-1"),
        "an-ephemeral-volume-not-made-yet": with_ephemeral_volume(),
        "of-somebody": with_ephemeral_volume(),
        "a-disk-that-is-in-use": with_disk("disk"),
    }


def of_volumes() -> World:
    """Return the world of volumes."""
    holder = using("single")
    holder["metadata"]["name"] = "holds-a-claim"
    holder["spec"]["nodeName"] = "east-1"
    disks = []
    for node in ("east-1", "west-1", "west-2"):
        pod = with_disk("disk", node)
        pod["metadata"]["name"] = f"holds-a-disk-on-{node}"
        disks.append(pod)
    return World(
        nodes=[
            make_node("east-1", zone="east"),
            make_node("west-1", zone="west"),
            make_node("west-2", zone="west"),
        ],
        residents=[holder, *disks],
        things=_things(),
        waiting=_waiting(),
    )
