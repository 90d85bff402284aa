"""Pods and nodes as nobody should write them, built from ones that are right.

An API server would refuse most of it; some of it, it takes. Each hostile trait is a function that
makes a pod or a node worse. Sizes stay below what etcd stores in one object (about 1.5 MiB).

Most objects are tame: odd in what they say, but of the right types, so that they reach the plugins.
The wild ones are of any type, and most of them can't be decoded.
"""

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.mutations import odd_scalar

Raw = dict[str, Any]


class Dice(random.Random):
    """Chance, and whether the object at hand is a wild one."""

    wild = False

    def pick(self, *tame: Any, wild: tuple[Any, ...] = ()) -> Any:
        """Return one of the tame values, or of all if the object is wild."""
        return self.choice((*tame, *wild) if self.wild else tame)


Trait = Callable[[Raw, Dice], None]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
KEYS = ("app", "tier", "zone", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "", "é")
VALUES = ("a", "b", "db", "web", "", "1", "-1", "9" * 30, "9" * 5000, "é")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", "", "Equal", "Matches")
QUANTITIES = (
    "0",
    "1",
    "-1",
    "",
    " 1",
    "1 ",
    "+1",
    ".",
    "1.",
    ".5",
    "1e3",
    "1E",
    "1e1000",
    "1e-1000",
    "1e999999999999",
    "0x10",
    "NaN",
    "Infinity",
    "1n",
    "0.0000000001",
    "100m",
    "1.5Gi",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "9223372036854775807m",
    "7Ei",
    "8Ei",
    "16Ei",
    "-8Ei",
    "999E",
    "9" * 5000,
    "0." + "0" * 5000 + "1",
    "१",
    "1\n",
    0,
    1,
    -1,
    0.1,
    1e300,
    -1e300,
)
WILD_QUANTITIES = (2**63, 2**64, -(2**63) - 1, 10**400, None, True, [], {})
GOOD_QUANTITIES = ("0", "1", "100m", "1.5Gi", "7Ei", "9223372036854775807", "1e3", 1, 0.1)
RESOURCES = (
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    "example.com/gpu",
    "hugepages-2Mi",
    "hugepages-",
    "attachable-volumes-x",
    "requests.cpu",
    "kubernetes.io/",
    "",
    "é",
    "a/b/c",
    "x" * 5000,
)
TIMES = ("", "2026-01-01T00:00:00Z", "0000-00-00", "99999-01-01T00:00:00Z", "now")
NODE_NAMES = tuple(f"n{i}" for i in range(8))


def amounts(rng: Dice) -> Raw:
    """Return a list of resources, mostly odd."""
    count = rng.choice((0, 1, 2, 3, 300))
    drawn = (rng.choice(RESOURCES) for _ in range(min(count, 4)))
    # One broken quantity spoils all, so most lists have none.
    values = GOOD_QUANTITIES if rng.random() < 0.6 else QUANTITIES
    found = {name: rng.pick(*values, wild=WILD_QUANTITIES) for name in drawn}
    if count > 4:
        found |= {f"example.com/r{i}": str(i) for i in range(count)}
    return found


def selector(rng: Dice) -> Any:
    """Return a label selector, or what stands in its place."""
    kind = rng.random()
    if kind < 0.1 and rng.wild:
        return odd_scalar(rng)
    if kind < 0.2:
        return {}
    many = rng.choice((1, 1, 2, 60)) if rng.random() < 0.05 else 1
    return {
        "matchLabels": {rng.choice(KEYS): rng.choice(VALUES)},
        "matchExpressions": [requirement(rng) for _ in range(many)],
    }


def requirement(rng: Dice) -> Raw:
    """Return one requirement of a selector."""
    values = [rng.choice(VALUES) for _ in range(rng.choice((0, 1, 1, 2)))]
    return {
        "key": rng.choice(KEYS),
        "operator": rng.choice(OPERATORS),
        "values": rng.choice((values, values, None)),
    }


def term(rng: Dice) -> Raw:
    """Return a term of pod affinity."""
    return {
        "topologyKey": rng.choice(KEYS),
        "labelSelector": selector(rng),
        "namespaces": rng.choice((None, [], ["default"], ["", "a"], ["x"] * 50)),
        "namespaceSelector": rng.choice((None, {}, selector(rng))),
        "matchLabelKeys": rng.choice((None, [], ["app"], ["", "nobody"])),
        "mismatchLabelKeys": rng.choice((None, [], ["app"])),
    }


def how_many(rng: Dice) -> int:
    """Return mostly few, at times thousands."""
    return rng.choice((0, 1, 1, 2, 3, 8)) if rng.random() < 0.93 else rng.choice((300, 2000))


def terms(rng: Dice) -> list[Raw]:
    """Return terms of pod affinity, at times thousands that all differ."""
    count = how_many(rng)
    drawn = [term(rng) for _ in range(min(count, 8))]
    labels = ({"matchLabels": {"app": f"v{i}"}} for i in range(8, count))
    return drawn + [
        {"topologyKey": KEYS[i % 5], "labelSelector": one} for i, one in enumerate(labels)
    ]


def requirements(rng: Dice) -> list[Raw]:
    """Return requirements on nodes, at times hundreds that all differ."""
    count = min(how_many(rng), 300)
    drawn = [requirement(rng) for _ in range(min(count, 8))]
    return drawn + [
        {"key": f"k{i}", "operator": "NotIn", "values": [str(i)]} for i in range(8, count)
    ]


# Traits of pods


def _requests(pod: Raw, rng: Dice) -> None:
    resources = {"requests": amounts(rng), "limits": amounts(rng)}
    pod["spec"]["containers"] = [{"name": "c", "resources": resources}]
    if rng.random() < 0.3:
        pod["spec"]["overhead"] = amounts(rng)
    if rng.random() < 0.3:
        pod["spec"]["resources"] = {"requests": amounts(rng)}
    if rng.random() < 0.3:
        init = {"name": "i", "resources": {"requests": amounts(rng)}, "restartPolicy": "Always"}
        pod["spec"]["initContainers"] = [init] * rng.choice((1, 3, 200))


def _pod_affinity(pod: Raw, rng: Dice) -> None:
    affinity = pod["spec"].setdefault("affinity", {})
    for kind in rng.sample(("podAffinity", "podAntiAffinity"), rng.choice((1, 2))):
        weighted = [
            {
                "weight": rng.pick(1, 100, -1, 0, 2**31 - 1, wild=(2**31, 2**63, 2**70)),
                "podAffinityTerm": t,
            }
            for t in terms(rng)
        ]
        affinity[kind] = {REQUIRED: terms(rng), PREFERRED: weighted}


def _cycle(pod: Raw, rng: Dice) -> None:
    """Be one of a ring of pods each of which can't stand the next."""
    size = rng.choice((2, 3, 50))
    mine = rng.randrange(size)
    pod["metadata"]["labels"] = {"ring": f"r{mine}"}
    other = {"matchLabels": {"ring": f"r{(mine + 1) % size}"}}
    terms = [{"topologyKey": key, "labelSelector": other} for key in KEYS[2:5]]
    pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}
    if rng.random() < 0.3:
        pod["spec"]["affinity"]["podAffinity"] = {REQUIRED: terms}


def _node_affinity(pod: Raw, rng: Dice) -> None:
    def node_term() -> Raw:
        return {
            "matchExpressions": requirements(rng),
            "matchFields": rng.choice((None, [], [requirement(rng) | {"key": "metadata.name"}])),
        }

    required = {"nodeSelectorTerms": [node_term() for _ in range(min(how_many(rng), 100))]}
    preferred = [
        {"weight": rng.pick(1, -1, 101, 2**31 - 1, wild=(2**70,)), "preference": node_term()}
        for _ in range(min(how_many(rng), 100))
    ]
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["nodeAffinity"] = {
        REQUIRED: rng.pick(
            required, required, None, {"nodeSelectorTerms": []}, wild=({}, odd_scalar(rng))
        ),
        PREFERRED: rng.choice((preferred, preferred, None)),
    }
    if rng.random() < 0.3:
        pod["spec"]["nodeSelector"] = {f"k{i}": "v" for i in range(how_many(rng))}


def _spread(pod: Raw, rng: Dice) -> None:
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": rng.pick(1, 1, 0, -1, 2**31 - 1, wild=(2**31, 2**63, 2**70)),
            "topologyKey": rng.choice(KEYS),
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway", "", "Maybe")),
            "labelSelector": selector(rng),
            "minDomains": rng.pick(None, 1, 0, -1, 2**31 - 1, wild=(2**31, 2**70)),
            "nodeAffinityPolicy": rng.choice((None, "Honor", "Ignore", "")),
            "nodeTaintsPolicy": rng.choice((None, "Honor", "Ignore", "?")),
            "matchLabelKeys": rng.choice((None, [], ["app"], ["", "x"] * 30)),
        }
        for _ in range(how_many(rng))
    ]


def _tolerations(pod: Raw, rng: Dice) -> None:
    pod["spec"]["tolerations"] = [
        {
            "key": rng.choice(KEYS),
            "operator": rng.choice(("Exists", "Equal", "", "Lt", "Gt", "Nope")),
            "value": rng.choice(VALUES),
            "effect": rng.choice(("", "NoSchedule", "PreferNoSchedule", "NoExecute", "x")),
            "tolerationSeconds": rng.choice((None, 0, -1, 2**70)),
        }
        for _ in range(how_many(rng))
    ]


def _ports(pod: Raw, rng: Dice) -> None:
    ports = [
        {
            "hostPort": rng.pick(80, 0, -1, 65536, 2**31 - 1, wild=(2**31, 2**70)),
            "containerPort": 1,
            "hostIP": rng.choice(("", "0.0.0.0", "::", "127.0.0.1", "nowhere", "é")),
            "protocol": rng.choice(("TCP", "UDP", "SCTP", "", "tcp", "x" * 500)),
        }
        for _ in range(how_many(rng))
    ]
    pod["spec"]["containers"] = [{"name": "c", "ports": ports}]


def _labels(thing: Raw, rng: Dice) -> None:
    count = rng.choice((10, 1000, 10_000))
    thing["metadata"]["labels"] = {f"k{i}.example.com/x": f"v{i % 7}" for i in range(count)}
    if rng.random() < 0.3:
        thing["metadata"]["annotations"] = {"a": "x" * rng.choice((10, 250_000))}


def _identity(thing: Raw, rng: Dice) -> None:
    field = rng.choice(("name", "namespace", "uid", "resourceVersion", "generation", "labels"))
    tame = {"generation": (0, -1, 2**63 - 1), "labels": (None, {}, {"": ""})}
    odd = rng.pick(*tame.get(field, ("", "a/b", "é", "x" * 300, "p1")), wild=(odd_scalar(rng),))
    thing["metadata"][field] = odd


def _times(thing: Raw, rng: Dice) -> None:
    for field in ("creationTimestamp", "deletionTimestamp"):
        if rng.random() < 0.5:
            thing["metadata"][field] = rng.pick(*TIMES, wild=(0, None))
    thing.setdefault("status", {})["startTime"] = rng.pick(*TIMES, wild=(0, None))


def _priority(pod: Raw, rng: Dice) -> None:
    pod["spec"]["priority"] = rng.pick(
        0, 1, 10**9, 2**31 - 1, -(2**31), wild=(2**31, 2**63, 2**70, -(2**70))
    )
    pod["spec"]["preemptionPolicy"] = rng.choice((None, "Never", "PreemptLowerPriority", "?"))


def _status(pod: Raw, rng: Dice) -> None:
    pod["status"] = {
        "phase": rng.choice(("Pending", "Running", "Succeeded", "", "?")),
        "nominatedNodeName": rng.choice((*NODE_NAMES, "", "nobody")),
        "conditions": [
            {"type": "PodScheduled", "status": rng.choice(("False", "True", "")), "reason": "x"}
        ]
        * rng.choice((0, 1, 2, 500)),
        "containerStatuses": [{"name": "c", "allocatedResources": amounts(rng)}],
    }


def _volumes(pod: Raw, rng: Dice) -> None:
    one = rng.choice(
        (
            {"persistentVolumeClaim": {"claimName": rng.choice(("", "nobody", "é"))}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": rng.random() < 0.5}},
            {"awsElasticBlockStore": {"volumeID": ""}},
            {"csi": {"driver": ""}},
            {"rbd": {"image": "i", "monitors": []}},
            {},
        )
    )
    pod["spec"]["volumes"] = [{"name": f"v{i}", **one} for i in range(how_many(rng))]


def _gates(pod: Raw, rng: Dice) -> None:
    pod["spec"]["schedulingGates"] = [{"name": f"g{i}"} for i in range(how_many(rng))]


def _containers(pod: Raw, rng: Dice) -> None:
    container = {"name": "c", "image": rng.choice(("", "x", "é" * 300, "a:b@c")), "resources": None}
    pod["spec"]["containers"] = rng.choice(([container] * how_many(rng), None, []))


POD_TRAITS: tuple[Trait, ...] = (
    _requests,
    _requests,
    _pod_affinity,
    _pod_affinity,
    _cycle,
    _node_affinity,
    _spread,
    _tolerations,
    _ports,
    _labels,
    _identity,
    _times,
    _priority,
    _status,
    _volumes,
    _gates,
    _containers,
)


# Traits of nodes


def _offers(node: Raw, rng: Dice) -> None:
    node.setdefault("status", {})["allocatable"] = amounts(rng)


def _taints(node: Raw, rng: Dice) -> None:
    node.setdefault("spec", {})["taints"] = [
        {
            "key": rng.choice(KEYS),
            "value": rng.choice(VALUES),
            "effect": rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute", "", "x")),
        }
        for _ in range(how_many(rng))
    ]


def _images(node: Raw, rng: Dice) -> None:
    node.setdefault("status", {})["images"] = [
        {
            "names": rng.choice(([f"i{i}", "x"], [], None)),
            "sizeBytes": rng.pick(1, 0, -1, 2**63 - 1, -(2**63), wild=(2**63, 2**70)),
        }
        for i in range(how_many(rng))
    ]


def _conditions(node: Raw, rng: Dice) -> None:
    condition = {
        "type": rng.choice(("Ready", "")),
        "status": rng.pick("True", "", wild=(odd_scalar(rng),)),
    }
    node.setdefault("status", {})["conditions"] = [condition] * how_many(rng)
    node["status"]["declaredFeatures"] = rng.choice((None, [], ["x"] * how_many(rng)))


def _topology(node: Raw, rng: Dice) -> None:
    node["metadata"]["labels"] = {key: rng.choice(VALUES) for key in KEYS}


NODE_TRAITS: tuple[Trait, ...] = (
    _offers,
    _offers,
    _taints,
    _images,
    _conditions,
    _topology,
    _labels,
    _identity,
    _times,
)
