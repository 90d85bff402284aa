"""VolumeRestrictions, node by node and pod by pod."""

from tests.reference.storage import Raw, claim, volumes

DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")
NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


def pre_filter(pod: Raw, cluster: Raw) -> str | int | None:
    """Return why the pod is rejected everywhere, its conflicts, or None where it is skipped."""
    exclusive = exclusive_claims(pod, cluster)
    if isinstance(exclusive, str):
        return exclusive
    conflicts = 0
    for name in exclusive:
        conflicts += any(
            other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and name in _claims(other)
            for other in cluster["pods"]
        )
    has_disk = any(kind in volume for volume in volumes(pod) for kind in DISKS)
    return conflicts if has_disk or conflicts else None


def exclusive_claims(pod: Raw, cluster: Raw) -> set[str] | str:
    exclusive = set()
    for name in _claims(pod):
        found = claim(cluster, pod, name)
        if found is None:
            return f'persistentvolumeclaim "{name}" not found'
        if "ReadWriteOncePod" in found["spec"]["accessModes"]:
            exclusive.add(name)
    return exclusive


def references(other: Raw, exclusive: set[str]) -> int:
    """How much a pod that comes or goes changes the conflicts; namespaces are not looked at."""
    return sum(name in exclusive for name in _claims(other))


def rejection(pod: Raw, on_node: list[Raw], conflicts: int) -> str | None:
    mine = volumes(pod)
    theirs = [volume for other in on_node for volume in volumes(other)]
    if any(_conflict(a, b) for a in mine for b in theirs):
        return NO_DISK
    return IN_USE if conflicts > 0 else None


def _claims(pod: Raw) -> list[str]:
    sources = (volume.get("persistentVolumeClaim") for volume in volumes(pod))
    return [source["claimName"] for source in sources if source]


def _conflict(a: Raw, b: Raw) -> bool:
    for kind in DISKS:
        if kind not in a or kind not in b:
            continue
        x, y = a[kind], b[kind]
        both_read = x.get("readOnly") and y.get("readOnly")
        if kind == "gcePersistentDisk" and x["pdName"] == y["pdName"] and not both_read:
            return True
        if kind == "awsElasticBlockStore" and x["volumeID"] == y["volumeID"]:
            return True
        if kind == "iscsi" and x["iqn"] == y["iqn"] and not both_read:
            return True
        if kind == "rbd" and not both_read:
            shared = set(x["monitors"]) & set(y["monitors"])
            same = x["image"] == y["image"] and x.get("pool", "rbd") == y.get("pool", "rbd")
            if shared and same:
                return True
    return False
