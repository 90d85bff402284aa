"""VolumeBinding, node by node."""

import itertools
from dataclasses import dataclass, field

from k8s_scheduler.api.quantity import nano
from tests.reference.storage import (
    IN_TREE,
    Raw,
    annotation,
    claim,
    claim_name,
    every,
    expression_holds,
    find,
    handle,
    in_bytes,
    in_tree,
    labels,
    owned,
    reachable,
    requested,
    selector_holds,
    storage_class,
    volumes,
)

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TOPOLOGY = {
    "awsElasticBlockStore": "topology.ebs.csi.aws.com/zone",
    "gcePersistentDisk": "topology.gke.io/zone",
    "cinder": "topology.cinder.csi.openstack.org/zone",
}


@dataclass
class Claims:
    bound: list[Raw] = field(default_factory=list)
    waiting: list[Raw] = field(default_factory=list)


@dataclass
class Found:
    """What a node has for the pod."""

    reasons: list[str]
    bindings: list[tuple[Raw, Raw]] = field(default_factory=list)
    provisions: list[tuple[Raw, Raw | None]] = field(default_factory=list)


def pre_filter(pod: Raw, cluster: Raw) -> str | Claims | None:
    """Return why the pod is rejected everywhere, its claims, or None if it has none."""
    found = []
    for volume in volumes(pod):
        if claim_name(pod, volume) is None:
            continue
        wanted = claim(cluster, pod, claim_name(pod, volume))
        if problem := _claim_problem(pod, volume, wanted):
            return problem
        found.append(wanted)
    if not found:
        return None
    claims = Claims()
    for wanted in found:
        has_volume = bool(wanted["spec"].get("volumeName"))
        of_class = find(cluster, "StorageClass", storage_class(wanted))
        waits = of_class and of_class["volumeBindingMode"] == "WaitForFirstConsumer"
        if has_volume and annotation(wanted, "pv.kubernetes.io/bind-completed") is not None:
            claims.bound.append(wanted)
        elif waits and not has_volume:
            claims.waiting.append(wanted)
        else:
            return "pod has unbound immediate PersistentVolumeClaims"
    return claims


def _claim_problem(pod: Raw, volume: Raw, wanted: Raw | None) -> str | None:
    name = claim_name(pod, volume)
    said = f'persistentvolumeclaim "{name}"'
    if wanted is None:
        waiting = "waiting for ephemeral volume controller to create the "
        return waiting + said if "ephemeral" in volume else f"{said} not found"
    if wanted["status"]["phase"] == "Lost":
        lost = wanted["spec"].get("volumeName", "")
        return f'{said} bound to non-existent persistentvolume "{lost}"'
    if "deletionTimestamp" in wanted["metadata"]:
        return f"{said} is being deleted"
    if "ephemeral" in volume and not owned(pod, wanted):
        space, me = pod["metadata"]["namespace"], pod["metadata"]["name"]
        return f"PVC {space}/{name} was not created for pod {space}/{me} (pod is not owner)"
    return None


def judge(claims: Claims, node: Raw, cluster: Raw) -> Found:
    """Return what a node has; ValueError where the cycle fails."""
    reasons = []
    problem = _bound_problem(claims, node, cluster)
    if problem == OUT_OF_REACH:
        reasons.append(problem)
    found = _waiting(claims, node, cluster)
    reasons += found.reasons
    if problem == MISSING:
        reasons.append(problem)
    return Found(reasons, found.bindings, found.provisions)


def _bound_problem(claims: Claims, node: Raw, cluster: Raw) -> str | None:
    csi_node = find(cluster, "CSINode", node["metadata"]["name"])
    for wanted in claims.bound:
        volume = find(cluster, "PersistentVolume", wanted["spec"]["volumeName"])
        if volume is None:
            return MISSING
        if not reachable(_affinity_on(volume, csi_node), node):
            return OUT_OF_REACH
    return None


def _affinity_on(volume: Raw, csi_node: Raw | None) -> Raw | None:
    """Return a volume's affinity as a node sees it that may have handed over its plugin."""
    affinity = volume["spec"].get("nodeAffinity")
    source = in_tree(volume["spec"])
    if source is None or IN_TREE[source][1] is None or csi_node is None:
        return affinity
    migrated = annotation(csi_node, "storage.alpha.kubernetes.io/migrated-plugins") or ""
    if IN_TREE[source][0] not in migrated.split(","):
        return affinity
    handle(volume["spec"], source, labels(volume))
    if source not in TOPOLOGY:
        return affinity
    terms = [
        {**t, "matchExpressions": [dict(e) for e in t.get("matchExpressions", [])]}
        for t in ((affinity or {}).get("required") or {}).get("nodeSelectorTerms", [])
    ]
    expressions = [e for term in terms for e in term["matchExpressions"]]
    new, old = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
    for keys in ([e["key"] for e in expressions], labels(volume)):
        zone = next((key for key in (new, old) if key in keys), None)
        if zone:
            break
    zone = zone or new
    if any(e["key"] == zone and e.get("values") for e in expressions):
        _rename(expressions, zone, TOPOLOGY[source])
    elif zones := [z.strip() for z in labels(volume).get(zone, "").split("__") if z.strip()]:
        terms = terms or [{"matchExpressions": []}]
        for term in terms:
            pin = {"key": TOPOLOGY[source], "operator": "In", "values": zones}
            term["matchExpressions"].append(pin)
    region = "failure-domain.beta.kubernetes.io/region"
    if zone == old and any(e["key"] == region and e.get("values") for e in expressions):
        _rename(expressions, region, "topology.kubernetes.io/region")
    return {"required": {"nodeSelectorTerms": terms}} if terms else affinity


def _rename(expressions: list[Raw], old: str, new: str) -> None:
    for expression in expressions:
        if expression["key"] == old:
            expression["key"] = new


def _waiting(claims: Claims, node: Raw, cluster: Raw) -> Found:
    to_provision, to_match = [], []
    for wanted in claims.waiting:
        selected = annotation(wanted, "volume.kubernetes.io/selected-node")
        if selected is None:
            to_match.append(wanted)
        elif selected != node["metadata"]["name"]:
            return Found([NO_VOLUME])
        else:
            to_provision.append(wanted)
    bindings: list[tuple[Raw, Raw]] = []
    for wanted in sorted(to_match, key=lambda c: requested(c) or 0):
        volume = _match(wanted, node, [v for _, v in bindings], cluster)
        if volume is None:
            to_provision.append(wanted)
        else:
            bindings.append((wanted, volume))
    provisions = []
    for wanted in to_provision:
        problem, capacity = _provision(wanted, node, cluster)
        if problem:
            return Found([problem])
        provisions.append((wanted, capacity))
    return Found([], bindings, provisions)


def _match(wanted: Raw, node: Raw, taken: list[Raw], cluster: Raw) -> Raw | None:
    size = requested(wanted) or 0
    best: tuple[int, Raw] | None = None
    for volume in every(cluster, "PersistentVolume"):
        spec = volume["spec"]
        capacity = nano(spec["capacity"]["storage"])
        kept = spec.get("claimRef")
        mine = kept is not None and _is_mine(kept, wanted)
        if storage_class(volume) != storage_class(wanted) or volume in taken:
            continue
        if (kept and not mine) or capacity < size or "deletionTimestamp" in volume["metadata"]:
            continue
        if not _alike(spec, wanted["spec"]):
            continue
        here = reachable(spec.get("nodeAffinity"), node)
        if mine:
            return volume if here else None
        if volume["status"]["phase"] != "Available" or not here:
            continue
        selector = wanted["spec"].get("selector")
        if selector is not None and not selector_holds(selector, labels(volume)):
            continue
        if not set(wanted["spec"]["accessModes"]) <= set(spec["accessModes"]):
            continue
        if best is None or capacity < best[0]:
            best = capacity, volume
    return best and best[1]


def _is_mine(kept: Raw, wanted: Raw) -> bool:
    metadata = wanted["metadata"]
    same = (kept["namespace"], kept["name"]) == (metadata["namespace"], metadata["name"])
    return same and kept.get("uid", metadata["uid"]) == metadata["uid"]


def _alike(volume: Raw, wanted: Raw) -> bool:
    mode, attributes = "volumeMode", "volumeAttributesClassName"
    return volume.get(mode, "Filesystem") == wanted.get(mode, "Filesystem") and volume.get(
        attributes, ""
    ) == wanted.get(attributes, "")


def _provision(wanted: Raw, node: Raw, cluster: Raw) -> tuple[str | None, Raw | None]:
    of_class = find(cluster, "StorageClass", storage_class(wanted))
    if of_class["provisioner"] == "kubernetes.io/no-provisioner":
        return NO_VOLUME, None
    allowed = of_class.get("allowedTopologies")
    if allowed and not any(
        all(expression_holds({**e, "operator": "In"}, labels(node)) for e in expressions)
        for term in allowed
        if (expressions := term["matchLabelExpressions"])
    ):
        return NO_VOLUME, None
    driver = find(cluster, "CSIDriver", of_class["provisioner"])
    size = requested(wanted)
    if size is None or driver is None or not driver["spec"].get("storageCapacity"):
        return None, None
    for capacity in every(cluster, "CSIStorageCapacity"):
        limit = capacity.get("maximumVolumeSize", capacity.get("capacity"))
        if (
            capacity["storageClassName"] == of_class["metadata"]["name"]
            and limit is not None
            and in_bytes(nano(limit)) >= in_bytes(size)
            and selector_holds(capacity.get("nodeTopology"), labels(node))
        ):
            return None, capacity
    return NO_SPACE, None


def score(found: Found, shape: list[tuple[int, int]]) -> int:
    """Return a node's score; the shape is (utilisation, score up to 10)."""
    classes: dict[str, tuple[int, int]] = {}
    if found.bindings:
        for wanted, volume in found.bindings:
            name = volume["spec"]["storageClassName"]
            used, there = classes.get(name, (0, 0))
            capacity = in_bytes(nano(volume["spec"]["capacity"]["storage"]))
            classes[name] = used + in_bytes(requested(wanted) or 0), there + capacity
    else:
        for wanted, capacity in found.provisions:
            if capacity is not None:
                used, _ = classes.get(storage_class(wanted), (0, 0))
                there = in_bytes(nano(capacity["capacity"]))
                classes[storage_class(wanted)] = used + in_bytes(requested(wanted) or 0), there
    if not classes:
        return 0
    total = sum(_on_shape(shape, used, there) for used, there in classes.values())
    return int(total / len(classes) + 0.5)


def _on_shape(shape: list[tuple[int, int]], used: int, there: int) -> int:
    at = 100 if there == 0 or used > there else used * 100 // there
    points = [(utilisation, 10 * value) for utilisation, value in shape]
    if at <= points[0][0]:
        return points[0][1]
    for (u0, s0), (u1, s1) in itertools.pairwise(points):
        if at <= u1:
            return s0 + int((s1 - s0) * (at - u0) / (u1 - u0))
    return points[-1][1]
