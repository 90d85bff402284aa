"""VolumeZone, node by node."""

from tests.reference.storage import Raw, claim, find, labels, storage_class, volumes

TWINS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
LABELS = (*TWINS, *TWINS.values())
ELSEWHERE = "node(s) had no available volume zone"


def pre_filter(pod: Raw, cluster: Raw) -> str | list[Raw]:
    """Return why the pod is rejected everywhere, or its volumes."""
    found = []
    for volume in volumes(pod):
        if "persistentVolumeClaim" not in volume:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]
        wanted = claim(cluster, pod, name)
        if wanted is None:
            return f'persistentvolumeclaim "{name}" not found'
        volume_name = wanted["spec"].get("volumeName")
        if volume_name:
            bound = find(cluster, "PersistentVolume", volume_name)
            if bound is None:
                return f'persistentvolume "{volume_name}" not found'
            found.append(bound)
            continue
        class_name = storage_class(wanted)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        of_class = find(cluster, "StorageClass", class_name)
        if of_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        if of_class["volumeBindingMode"] != "WaitForFirstConsumer":
            return "PersistentVolume had no name"
    return found


def constraints(found: list[Raw]) -> list[tuple[str, set[str]]]:
    """Return the labels that say something, with their values."""
    said = []
    for volume in found:
        for key in LABELS:
            if key in labels(volume):
                values = {part.strip() for part in labels(volume)[key].split("__")}
                if "" not in values:
                    said.append((key, values))
    return said


def rejection(said: list[tuple[str, set[str]]], node: Raw) -> str | None:
    if not any(key in labels(node) for key in LABELS):
        return None
    for key, values in said:
        value = labels(node).get(key, labels(node).get(TWINS.get(key, key)))
        if value not in values:
            return ELSEWHERE
    return None
