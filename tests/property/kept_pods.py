"""Pods of few shapes but of all kinds, the nodes they go to, and the profiles that judge them."""

import copy
import dataclasses
import functools
import random
from collections.abc import Callable
from typing import Any

from k8s_scheduler.api.config.load import configuration_from_value
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.setup import Setup
from tests.as_made import as_made
from tests.builders import make_node, make_pod

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "rack"
KEYS = (ZONE, HOST, RACK)
NAMESPACES = ("default", "other")
APPS = ("x", "y")
NODES = tuple(f"n{i}" for i in range(6))
SERVICES = ("s0", "s1")
OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")
INDEX = "apps.kubernetes.io/pod-index"
FEATURE = "RestartAllContainersOnContainerExits"
CLAIMS = ("c0", "c1", "c2")
MIB = 1024 * 1024


# Nodes


def random_node(rng: random.Random, name: str) -> Raw:
    """Return a node as it may be when it comes."""
    node = make_node(name).label(**{HOST: name}).raw
    for change in rng.choices(NODE_CHANGES, k=rng.randint(1, 4)):
        change(rng, node)
    relabel(rng, node)
    return node


def relabel(rng: random.Random, node: Raw) -> None:
    """Move a node, or take it out of a topology."""
    labels = dict(node["metadata"]["labels"])
    for key, values in ((ZONE, ("z0", "z1", "z2", "")), (RACK, ("r0", "r1")), ("disk", ("a", "b"))):
        if rng.random() < 0.6:
            labels[key] = rng.choice(values)
        elif rng.random() < 0.3:
            labels.pop(key, None)
    if rng.random() < 0.2:
        # Into a domain that there has hardly ever been.
        labels[rng.choice((ZONE, RACK))] = f"new{rng.randint(0, 99)}"
    if rng.random() < 0.3:
        labels["gen"] = str(rng.randint(1, 4))
    if rng.random() < 0.08:
        labels.pop(HOST, None)
    else:
        labels[HOST] = node["metadata"]["name"]
    node["metadata"]["labels"] = labels


def retaint(rng: random.Random, node: Raw) -> None:
    """Taint a node, or clean it."""
    taints = []
    for key in ("k", "l"):
        if rng.random() < 0.35:
            effect = rng.choice(["NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"])
            taints.append({"key": key, "value": rng.choice(["", "v"]), "effect": effect})
    node["spec"]["taints"] = taints


def cordon(rng: random.Random, node: Raw) -> None:
    """Cordon a node, or not."""
    node["spec"]["unschedulable"] = rng.random() < 0.3


def resize(rng: random.Random, node: Raw) -> None:
    """Let a node offer something else."""
    offered = {
        "cpu": rng.choice(["1", "2", "4"]),
        "memory": rng.choice(["1Gi", "4Gi", "8Gi"]),
        "pods": rng.choice(["3", "8", "110"]),
        "ephemeral-storage": "10Gi",
    }
    if rng.random() < 0.5:
        offered["example.com/gpu"] = rng.choice(["0", "1", "4"])
    # Few nodes have these, or none.
    if offered.get("example.com/gpu") == "4":
        offered["example.com/rare"] = "1"
    if offered["pods"] == "3" and offered["cpu"] != "4":
        offered["example.com/odd"] = offered["cpu"]
    node["status"]["allocatable"] = offered


def pull(rng: random.Random, node: Raw) -> None:
    """Let a node have other images."""
    node["status"]["images"] = [
        {"names": [name], "sizeBytes": rng.choice([30, 300, 900]) * MIB}
        for name in ("i0:latest", "i1:v1")
        if rng.random() < 0.5
    ]


def declare(rng: random.Random, node: Raw) -> None:
    """Let a node have other features."""
    node["status"]["declaredFeatures"] = rng.choice([[], ["Other"], [FEATURE], [FEATURE, "Other"]])


NODE_CHANGES: tuple[Callable[[random.Random, Raw], None], ...] = (
    relabel,
    retaint,
    cordon,
    resize,
    pull,
    declare,
)


# Pods


def random_template(rng: random.Random, *, volumes: bool) -> Raw:
    """Return the pod of a workload; its replicas differ in name, uid, priority and index."""
    pod = make_pod("template").namespace(rng.choice(NAMESPACES)).label(app=rng.choice(APPS))
    amounts = {"cpu": rng.choice(["0", "100m", "500m", "1"])}
    if rng.random() < 0.5:
        amounts["memory"] = rng.choice(["100Mi", "1Gi"])
    if rng.random() < 0.2:
        amounts["example.com/gpu"] = "1"
    # A few ask for what few nodes have, or none.
    if amounts.get("memory") == "1Gi" and amounts["cpu"] in ("0", "1"):
        amounts["example.com/odd"] = "1"
    if "example.com/gpu" in amounts and amounts["cpu"] != "100m":
        amounts["example.com/rare"] = "1"
    pod.raw["spec"]["containers"] = [
        {"name": "c", "image": rng.choice(["", "i0", "i1:v1"]), "resources": {"requests": amounts}}
    ]
    if rng.random() < 0.4:
        owner = rng.choice(OWNERS)
        version = "v1" if owner == "ReplicationController" else "apps/v1"
        reference = {"apiVersion": version, "kind": owner, "name": "o", "uid": "o"}
        pod.raw["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    for demand in rng.choices(DEMANDS, k=rng.choice([0, 1, 1, 2, 2, 3])):
        demand(rng, pod.raw)
    if volumes:
        _want_volumes(rng, pod.raw)
    pod.raw["indexed"] = rng.random() < 0.35
    return pod.raw


def replica(template: Raw, name: str, number: int, *, scheduler: str, priority: int) -> Raw:
    """Return a pod of a workload."""
    pod = copy.deepcopy(template)
    if pod.pop("indexed"):
        pod["metadata"]["labels"][INDEX] = str(number % 3)
    pod["metadata"].update(name=name, uid=name)
    pod["spec"].update(schedulerName=scheduler, priority=priority)
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = name
    return as_made(pod, name, number)


def vary(rng: random.Random, pod: Raw, number: int) -> None:
    """Make a pod one that is like no other, but akin to many.

    In the claims that it names, if it names any; or in size, or in the nodes it wants.
    """
    volumes = pod["spec"].get("volumes", ())
    if any("persistentVolumeClaim" in volume for volume in volumes) and rng.random() < 0.8:
        others = [volume for volume in volumes if "persistentVolumeClaim" not in volume]
        names = rng.sample([*CLAIMS, "nothing"], k=rng.choice([1, 1, 2]))
        claims = [
            {"name": f"{name}-{number}", "persistentVolumeClaim": {"claimName": name}}
            for name in names
        ]
        pod["spec"]["volumes"] = [*others, *claims]
        return
    if rng.random() < 0.7:
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = f"{number % 900}m"
    if rng.random() < 0.3:
        pod["spec"]["overhead"] = {"memory": f"{number}Ki"}
    if rng.random() < 0.4:
        names = rng.sample([*NODES, "nobody"], k=rng.choice([1, 1, 2, 3]))
        field = {"key": "metadata.name", "operator": "In", "values": names}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        _affinity(pod)["nodeAffinity"] = {REQUIRED: terms}
    elif rng.random() < 0.3:
        rng.choice([_want_affinity, _prefer_labels])(rng, pod)


def _affinity(pod: Raw) -> Raw:
    found: Raw = pod["spec"].setdefault("affinity", {})
    return found


def _selector(rng: random.Random) -> Raw:
    """Return what picks pods: by one label, by several, by an index, or all."""
    kinds: list[Raw] = [
        {"matchLabels": {"app": rng.choice(APPS)}},
        {"matchLabels": {"app": rng.choice(APPS)}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
        {"matchExpressions": [{"key": INDEX, "operator": "NotIn", "values": ["0"]}]},
        {"matchLabels": {INDEX: "1"}},
        {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
        {"matchLabels": {"app": rng.choice(APPS), "version": "1"}},
        {},
    ]
    return rng.choice(kinds)


def _term(rng: random.Random) -> Raw:
    term: Raw = {"topologyKey": rng.choice(KEYS), "labelSelector": _selector(rng)}
    if rng.random() < 0.3:
        term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "red"}}])
    elif rng.random() < 0.2:
        term["namespaces"] = [rng.choice(NAMESPACES)]
    return term


def _want_company(rng: random.Random, pod: Raw) -> None:
    terms = [_term(rng) for _ in range(rng.choice([1, 1, 2]))]
    _affinity(pod).setdefault("podAffinity", {})[REQUIRED] = terms


def _want_distance(rng: random.Random, pod: Raw) -> None:
    terms = [_term(rng) for _ in range(rng.choice([1, 1, 2]))]
    _affinity(pod).setdefault("podAntiAffinity", {})[REQUIRED] = terms


def _prefer_company(rng: random.Random, pod: Raw) -> None:
    kind = rng.choice(["podAffinity", "podAntiAffinity"])
    wishes = [
        {"weight": rng.choice([1, 30, 100]), "podAffinityTerm": _term(rng)}
        for _ in range(rng.choice([1, 2]))
    ]
    _affinity(pod).setdefault(kind, {})[PREFERRED] = wishes


def _want_spreading(rng: random.Random, pod: Raw) -> None:
    constraints = [_constraint(rng) for _ in range(rng.choice([1, 1, 2]))]
    pod["spec"]["topologySpreadConstraints"] = constraints


def _constraint(rng: random.Random) -> Raw:
    constraint: Raw = {
        "maxSkew": rng.choice([1, 1, 2]),
        "topologyKey": rng.choice(KEYS),
        "whenUnsatisfiable": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": _selector(rng),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.3:
        constraint["minDomains"] = rng.choice([2, 3])
    if rng.random() < 0.2:
        constraint["matchLabelKeys"] = [rng.choice(["version", INDEX])]
    if rng.random() < 0.4:
        constraint["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    if rng.random() < 0.3:
        constraint["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
    return constraint


def _want_labels(rng: random.Random, pod: Raw) -> None:
    pod["spec"]["nodeSelector"] = rng.choice([{ZONE: "z0"}, {"disk": "a"}, {RACK: "r9"}])


def _want_affinity(rng: random.Random, pod: Raw) -> None:
    expressions: list[Raw] = [
        {"key": ZONE, "operator": "In", "values": ["z0", "z1"]},
        {"key": "disk", "operator": "NotIn", "values": ["a"]},
        {"key": "gen", "operator": "Gt", "values": ["1"]},
        {"key": RACK, "operator": "DoesNotExist"},
    ]
    term: Raw = {"matchExpressions": [rng.choice(expressions)]}
    if rng.random() < 0.2:
        name = {"key": "metadata.name", "operator": "NotIn", "values": [rng.choice(NODES)]}
        term["matchFields"] = [name]
    _affinity(pod).setdefault("nodeAffinity", {})[REQUIRED] = {"nodeSelectorTerms": [term]}


def _prefer_labels(rng: random.Random, pod: Raw) -> None:
    wishes = [
        {
            "weight": rng.choice([1, 50]),
            "preference": {
                "matchExpressions": [{"key": key, "operator": "In", "values": [value, "z1"]}]
            },
        }
        for key, value in rng.sample([(ZONE, "z0"), ("disk", "b"), ("gen", "3")], k=2)
    ]
    _affinity(pod).setdefault("nodeAffinity", {})[PREFERRED] = wishes


def _tolerate(rng: random.Random, pod: Raw) -> None:
    pod["spec"]["tolerations"] = [
        {"key": "k", "operator": "Exists", "effect": rng.choice(["", "PreferNoSchedule"])}
    ]


def _want_port(rng: random.Random, pod: Raw) -> None:
    ports = [{"hostPort": rng.choice([80, 81]), "hostIP": rng.choice(["", "10.0.0.1"])}]
    pod["spec"]["containers"][0]["ports"] = ports


def _want_feature(rng: random.Random, pod: Raw) -> None:
    pod["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]


def _want_disk(rng: random.Random, pod: Raw) -> None:
    disk = {"pdName": "disk", "readOnly": rng.random() < 0.3}
    pod["spec"]["volumes"] = [{"name": "d", "gcePersistentDisk": disk}]


def _want_volumes(rng: random.Random, pod: Raw) -> None:
    picked = rng.sample(CLAIMS, k=rng.choice([1, 1, 2]))
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in picked]
    pod["spec"]["volumes"] = [*pod["spec"].get("volumes", ()), *volumes]
    # Claims live in one namespace here, so that they are met.
    pod["metadata"]["namespace"] = "default"


DEMANDS: tuple[Callable[[random.Random, Raw], None], ...] = (
    _want_company,
    _want_company,
    _want_distance,
    _want_distance,
    _prefer_company,
    _prefer_company,
    _want_spreading,
    _want_spreading,
    _want_spreading,
    _want_labels,
    _want_affinity,
    _prefer_labels,
    _tolerate,
    _want_port,
    _want_feature,
    _want_disk,
)


# Profiles


def _without(profile: ResolvedProfile, *points: str) -> ResolvedProfile:
    kept = {point: uses for point, uses in profile.points.items() if point not in points}
    return dataclasses.replace(profile, points=kept)


def _args(plugin: str, **args: Any) -> Raw:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin}Args"}
    return {"name": plugin, "args": {**header, **args}}


_LISTED = [
    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
    {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "ScheduleAnyway"},
]
_ADDED = {
    REQUIRED: {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    },
    PREFERRED: [
        {
            "weight": 7,
            "preference": {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r1"]}]},
        }
    ],
}
_PROFILES: tuple[Raw, ...] = (
    {},
    {
        "plugins": {
            "score": {
                "disabled": [{"name": "PodTopologySpread"}, {"name": "ImageLocality"}],
                "enabled": [
                    {"name": "PodTopologySpread", "weight": 7},
                    {"name": "ImageLocality", "weight": 3},
                ],
            }
        },
        "pluginConfig": [
            _args(
                "NodeResourcesFit",
                scoringStrategy={
                    "type": "MostAllocated",
                    "resources": [
                        {"name": "cpu", "weight": 2},
                        {"name": "example.com/gpu", "weight": 1},
                    ],
                },
            ),
            _args("InterPodAffinity", hardPodAffinityWeight=40),
        ],
    },
    {
        "pluginConfig": [
            _args("PodTopologySpread", defaultingType="List", defaultConstraints=_LISTED),
            _args("NodeAffinity", addedAffinity=_ADDED),
            _args("InterPodAffinity", ignorePreferredTermsOfExistingPods=True),
        ]
    },
    {
        "plugins": {
            "filter": {
                "disabled": [{"name": "*"}],
                "enabled": [
                    {"name": name}
                    for name in ("InterPodAffinity", "NodeResourcesFit", "TaintToleration")
                ],
            }
        }
    },
    {
        "plugins": {
            "multiPoint": {"disabled": [{"name": "InterPodAffinity"}, {"name": "TaintToleration"}]},
            "filter": {"disabled": [{"name": "NodeUnschedulable"}]},
        }
    },
)
SCHEDULERS = tuple(f"scheduler-{number}" for number in range(len(_PROFILES)))


@functools.cache
def setup(
    schedulers: tuple[str, ...],
    *,
    preempts: bool,
    keeps_evaluations: bool,
    verified_share: float = 0.0,
) -> Setup:
    """Return what a core with these profiles is made from."""
    value = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {**_PROFILES[SCHEDULERS.index(name)], "schedulerName": name} for name in schedulers
        ],
    }
    found = configuration_from_value(value, known_plugins(), source="tests").profiles
    if not preempts:
        found = tuple(_without(profile, "postFilter") for profile in found)
    return Setup(profiles=found, keeps_evaluations=keeps_evaluations, verified_share=verified_share)
