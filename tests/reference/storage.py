"""What the rules of volumes have in common, in plain Python over decoded JSON.

A cluster is `{"nodes": [...], "pods": [...], "objects": [...]}`; objects have a `kind`.
"""

from typing import Any

from k8s_scheduler.api.quantity import nano

Raw = dict[str, Any]

IN_TREE = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    "azureFile": ("kubernetes.io/azure-file", None),
    "vsphereVolume": ("kubernetes.io/vsphere-volume", None),
}


def find(cluster: Raw, kind: str, name: str, namespace: str = "") -> Raw | None:
    for found in cluster["objects"]:
        metadata = found["metadata"]
        if (found["kind"], metadata["name"], metadata.get("namespace", "")) == (
            kind,
            name,
            namespace,
        ):
            return found
    return None


def every(cluster: Raw, kind: str) -> list[Raw]:
    found = [o for o in cluster["objects"] if o["kind"] == kind]
    return sorted(found, key=lambda o: (o["metadata"].get("namespace", ""), o["metadata"]["name"]))


def claim(cluster: Raw, pod: Raw, name: str) -> Raw | None:
    return find(cluster, "PersistentVolumeClaim", name, pod["metadata"]["namespace"])


def volumes(pod: Raw) -> list[Raw]:
    return pod["spec"].get("volumes", [])


def claim_name(pod: Raw, volume: Raw) -> str | None:
    if "persistentVolumeClaim" in volume:
        return volume["persistentVolumeClaim"]["claimName"]
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    return None


def owned(pod: Raw, found: Raw) -> bool:
    owners = found["metadata"].get("ownerReferences", [])
    return any(o.get("controller") and o["uid"] == pod["metadata"]["uid"] for o in owners)


def annotation(found: Raw, name: str) -> str | None:
    return found["metadata"].get("annotations", {}).get(name)


def storage_class(found: Raw) -> str:
    beta = annotation(found, "volume.beta.kubernetes.io/storage-class")
    return found["spec"].get("storageClassName", "") if beta is None else beta


def requested(found: Raw) -> int | None:
    amount = found["spec"].get("resources", {}).get("requests", {}).get("storage")
    return None if amount is None else nano(amount)


def in_bytes(amount: int) -> int:
    return -(-amount // 10**9)


def labels(found: Raw) -> dict[str, str]:
    return found["metadata"].get("labels", {})


def expression_holds(expression: Raw, on: dict[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values", [])
    if operator == "In":
        return on.get(key) in values
    if operator == "NotIn":
        return key not in on or on[key] not in values
    if operator == "Exists":
        return key in on
    if operator == "DoesNotExist":
        return key not in on
    if key not in on or not on[key].isdigit():
        return False
    number, bound = int(on[key]), int(values[0])
    return number > bound if operator == "Gt" else number < bound


def selector_holds(selector: Raw | None, on: dict[str, str]) -> bool:
    """Label selectors: an absent one picks nothing, an empty one everything."""
    if selector is None:
        return False
    pairs = selector.get("matchLabels", {}).items()
    return all(on.get(key) == value for key, value in pairs) and all(
        expression_holds(e, on) for e in selector.get("matchExpressions", [])
    )


def reachable(affinity: Raw | None, node: Raw) -> bool:
    """Node affinity of a volume: labels only, fields are not looked at."""
    if not affinity or "required" not in affinity:
        return True
    for term in affinity["required"]["nodeSelectorTerms"]:
        if not term.get("matchExpressions") and not term.get("matchFields"):
            continue
        if all(expression_holds(e, labels(node)) for e in term.get("matchExpressions", [])):
            return True
    return False


def in_tree(source: Raw) -> str | None:
    return next((field for field in IN_TREE if field in source), None)


def handle(source: Raw, field: str, on: dict[str, str]) -> str:
    """The CSI handle of an in-tree disk; ValueError if there is none."""
    disk = source[field]
    if field == "awsElasticBlockStore":
        written = disk["volumeID"]
        if not written.startswith("aws://"):
            return written
        found = "/".join(written.split("/")[3:]).strip("/")
        if not found.startswith("vol-") or "/" in found:
            raise ValueError(written)
        return found
    if field == "gcePersistentDisk":
        known = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
        zones = next((on[key] for key in known if on.get(key)), "").split("__")
        if len(zones) == 1:
            return f"zones/{zones[0]}/{disk['pdName']}"
        regions = {tuple(zone.split("-")[:2]) for zone in zones}
        if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
            raise ValueError(zones)
        return f"regions/{regions.pop()}/{disk['pdName']}"
    if field == "azureDisk":
        if disk.get("kind", "Shared").lower() != "managed":
            raise ValueError(disk)
        return disk["diskURI"]
    return disk["volumeID"]
