"""NodeVolumeLimits, node by node and pod by pod."""

from tests.reference.storage import (
    IN_TREE,
    Raw,
    claim,
    claim_name,
    every,
    find,
    handle,
    in_tree,
    labels,
    owned,
    storage_class,
    volumes,
)

TOO_MANY = "node(s) exceed max volume count"
Found = dict[tuple[str, str], str]


def is_skipped(pod: Raw) -> bool:
    sources = ("persistentVolumeClaim", "ephemeral", *IN_TREE)
    return not any(source in volume for volume in volumes(pod) for source in sources)


def rejection(pod: Raw, node: Raw, on_node: list[Raw], cluster: Raw) -> tuple[str, bool] | None:
    """Return (reason, resolvable) of the node's rejection; ValueError where the cycle fails."""
    csi_node = find(cluster, "CSINode", node["metadata"]["name"])
    try:
        new = attachable(pod, cluster, csi_node, new=True)
    except LookupError as error:
        return str(error.args[0]), False
    drivers = (csi_node or {}).get("spec", {}).get("drivers", [])
    for driver in sorted(set(new.values())):
        found = find(cluster, "CSIDriver", driver)
        insists = found is not None and found["spec"].get("preventPodSchedulingIfMissing")
        if insists and driver not in [d["name"] for d in drivers]:
            return f"{driver} CSI driver is not installed on the node", True
    limits = {
        d["name"]: d["allocatable"]["count"]
        for d in drivers
        if d.get("allocatable", {}).get("count") is not None
    }
    if not new or not limits:
        return None
    used: Found = {}
    for other in on_node:
        used |= attachable(other, cluster, csi_node, new=False)
    everything = dict(used)
    for attachment in every(cluster, "VolumeAttachment"):
        spec = attachment["spec"]
        volume = find(cluster, "PersistentVolume", spec["source"].get("persistentVolumeName", ""))
        if spec["nodeName"] == node["metadata"]["name"] and volume and "csi" in volume["spec"]:
            key = (spec["attacher"], volume["spec"]["csi"]["volumeHandle"])
            everything[key] = spec["attacher"]
    for driver, limit in limits.items():
        added = [key for key, of in new.items() if of == driver and key not in used]
        held = [key for key, of in everything.items() if of == driver]
        if added and len(held) + len(added) > limit:
            return TOO_MANY, True
    return None


def attachable(pod: Raw, cluster: Raw, csi_node: Raw | None, *, new: bool) -> Found:
    found: Found = {}
    for volume in volumes(pod):
        name = claim_name(pod, volume)
        if name is None:
            field = in_tree(volume)
            if field and IN_TREE[field][1] and csi_node:
                driver = IN_TREE[field][1]
                found[driver, handle(volume, field, {})] = driver
            continue
        wanted = claim(cluster, pod, name)
        if wanted is None:
            if new:
                space = pod["metadata"]["namespace"]
                raise LookupError(
                    f'looking up PVC {space}/{name}: persistentvolumeclaim "{name}" not found'
                )
            continue
        if "ephemeral" in volume and not owned(pod, wanted):
            raise ValueError(name)
        if (key := _of_claim(wanted, cluster, csi_node)) is not None:
            found[key] = key[0]
    return found


def _of_claim(wanted: Raw, cluster: Raw, csi_node: Raw | None) -> tuple[str, str] | None:
    volume = find(cluster, "PersistentVolume", wanted["spec"].get("volumeName", ""))
    if volume is None:
        of_class = find(cluster, "StorageClass", storage_class(wanted))
        if of_class is None:
            return None
        provisioner = of_class["provisioner"]
        for plugin, driver in IN_TREE.values():
            if plugin == provisioner:
                provisioner = driver if csi_node else None
        return (provisioner, f"claim {wanted['metadata']['name']}") if provisioner else None
    if "csi" in volume["spec"]:
        return volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]
    field = in_tree(volume["spec"])
    if field is None or IN_TREE[field][1] is None or csi_node is None:
        return None
    try:
        return IN_TREE[field][1], handle(volume["spec"], field, labels(volume))
    except ValueError:
        return None
