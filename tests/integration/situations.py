"""Pods that fit nowhere, by situation: nodes, resources, affinity, spreading, ports, gates.

One cluster serves them all, so most texts mix several reasons and what preemption has to add.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.client import Object
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_node, make_pod
from tests.integration.worlds import Thing, World

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GPU = "example.com/gpu"
PLENTY = "64"


def cluster() -> list[Object]:
    """Return the nodes: no two are alike."""
    return [
        make_node("plain", cpu="4", memory="8Gi", zone="east", labels={"disk": "ssd", "rank": "7"}),
        make_node("tainted", zone="east", taints=[taint("team", "red", "NoSchedule")]),
        make_node("leaving", zone="west", taints=[taint("drain", "", "NoExecute")]),
        make_node("cordoned", zone="west", unschedulable=True),
        make_node("small", cpu="1", memory="1Gi", zone="west"),
        make_node("crowded", pods=2, zone="east", labels={"disk": "ssd"}),
        make_node("adrift", extended_resources={GPU: "2", "hugepages-2Mi": "64Mi"}),
    ]


def taint(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def residents() -> list[Object]:
    """Return the pods that are on nodes."""
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    guard = resident("guard", "plain", labels={"app": "guard"})
    guard["spec"]["affinity"] = {"podAntiAffinity": required(term(ZONE_LABEL, app="noisy"))}
    return [
        guard,
        resident("crowd-1", "crowded", labels={"app": "db"}),
        resident("crowd-2", "crowded", ports=ports),
        resident("web-1", "plain", labels={"app": "web"}, ports=ports),
        resident("web-2", "plain", labels={"app": "web"}),
        resident("web-3", "small", labels={"app": "web"}, ports=ports),
        resident("gpu-1", "adrift", requests={GPU: "1"}, ports=ports),
    ]


def resident(
    name: str,
    node: str,
    *,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    **more: Any,
) -> Object:
    pod = waiting(labels=labels, requests=requests, **more)
    pod["metadata"]["name"] = name
    pod["spec"]["nodeName"] = node
    return pod


def waiting(
    *,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    ports: Sequence[Object] = (),
    **spec: Any,
) -> Object:
    """Return a pod; `requests` are added to 100m of cpu, what else is named goes into its spec."""
    pod = make_pod("named-by-its-situation", labels=labels)
    (container,) = pod["spec"]["containers"]
    asked = container["resources"]["requests"] | dict(requests or {})
    container["resources"]["requests"] = asked
    # Anything but cpu, memory and local storage can't be overcommitted.
    container["resources"]["limits"] = {
        name: amount for name, amount in asked.items() if "/" in name or name.startswith("huge")
    }
    if ports:
        container["ports"] = list(ports)
    pod["spec"] |= spec
    return pod


def required(*terms: Object) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def term(key: str, **labels: str) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def node_affinity(*terms: Object) -> Object:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def fields(*names: str) -> list[Object]:
    return [expression("metadata.name", "In", name) for name in names]


def spread(key: str, *, skew: int = 1, **more: Any) -> Object:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    } | more


EVERYWHERE = [{"operator": "Exists"}]
PLAIN_ONLY = {HOSTNAME_LABEL: "plain"}


def _resources() -> dict[str, Object]:
    overhead = waiting(runtimeClassName="heavy")
    first = waiting()
    first["spec"]["initContainers"] = [
        {"name": "i", "image": "pause:3.10", "resources": {"requests": {"cpu": PLENTY}}}
    ]
    beside = waiting(requests={"cpu": "1"})
    beside["spec"]["initContainers"] = [
        {
            "name": "i",
            "image": "pause:3.10",
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "7500m"}},
        }
    ]
    return {
        "too-much-cpu": waiting(requests={"cpu": PLENTY}),
        "too-much-memory": waiting(requests={"memory": "1Ti"}),
        "local-storage-that-no-node-has": waiting(requests={"ephemeral-storage": "1Gi"}),
        "more-devices-than-are-left": waiting(requests={GPU: "2"}),
        "more-devices-than-a-node-has": waiting(requests={GPU: "3"}),
        "a-device-that-nobody-has": waiting(requests={"example.com/tpu": "1"}),
        "huge-pages": waiting(requests={"hugepages-2Mi": "128Mi"}),
        "several-resources": waiting(
            requests={"cpu": PLENTY, "memory": "1Ti", GPU: "3", "ephemeral-storage": "1Gi"}
        ),
        "overhead": overhead,
        "a-greedy-init-container": first,
        "a-greedy-sidecar": beside,
        "too-many-pods": waiting(nodeSelector={HOSTNAME_LABEL: "crowded"}),
        "tolerates-all-and-is-too-large": waiting(requests={"cpu": PLENTY}, tolerations=EVERYWHERE),
    }


def restarting_all() -> Object:
    """Return a pod for which a node has to declare a feature."""
    pod = waiting()
    pod["spec"]["containers"][0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [
            {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
        ],
    }
    return pod


def _nodes() -> dict[str, Object]:
    red = {"key": "team", "operator": "Equal", "value": "red", "effect": "NoSchedule"}
    blue = red | {"value": "blue"}
    return {
        "a-selector-nobody-matches": waiting(nodeSelector={"disk": "tape"}),
        "affinity-nobody-matches": waiting(
            affinity=node_affinity(
                {"matchExpressions": [expression("disk", "In", "tape", "drum")]},
                {"matchExpressions": [expression("rank", "Gt", "7")]},
            )
        ),
        "affinity-and-resources": waiting(
            requests={"cpu": PLENTY},
            affinity=node_affinity({"matchExpressions": [expression("disk", "Exists")]}),
        ),
        "bound-to-a-node-by-name-that-is-too-small": waiting(
            requests={"cpu": "2"}, affinity=node_affinity({"matchFields": fields("small")})
        ),
        "bound-to-a-node-that-is-not-there": waiting(
            affinity=node_affinity({"matchFields": fields("ghost")})
        ),
        "names-that-conflict": waiting(
            affinity=node_affinity({"matchFields": fields("plain", "small")})
        ),
        "an-untolerated-taint": waiting(nodeSelector={HOSTNAME_LABEL: "tainted"}),
        "a-toleration-of-another-value": waiting(
            nodeSelector={HOSTNAME_LABEL: "tainted"}, tolerations=[blue]
        ),
        "one-taint-tolerated-and-too-large": waiting(requests={"cpu": PLENTY}, tolerations=[red]),
        "an-untolerated-taint-of-eviction": waiting(nodeSelector={HOSTNAME_LABEL: "leaving"}),
        "cordoned": waiting(nodeSelector={HOSTNAME_LABEL: "cordoned"}),
        "a-feature-that-no-node-declares": restarting_all(),
        "ports-in-use": waiting(ports=[{"containerPort": 80, "hostPort": 8080}]),
        "ports-in-use-on-an-address": waiting(
            ports=[{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"}]
        ),
    }


def _company() -> dict[str, Object]:
    return {
        "affinity-to-nobody": waiting(
            affinity={"podAffinity": required(term(ZONE_LABEL, app="nobody"))}
        ),
        "affinity-to-a-crowded-node": waiting(
            affinity={"podAffinity": required(term(HOSTNAME_LABEL, app="db"))}
        ),
        "anti-affinity": waiting(
            affinity={
                "podAntiAffinity": required(term(ZONE_LABEL, app="web"), term(HOSTNAME_LABEL))
            }
        ),
        "anti-affinity-of-others": waiting(
            labels={"app": "noisy"}, nodeSelector={ZONE_LABEL: "east"}
        ),
        "affinity-and-anti-affinity": waiting(
            labels={"app": "noisy"},
            affinity={
                "podAffinity": required(term(ZONE_LABEL, app="web")),
                "podAntiAffinity": required(term(ZONE_LABEL, app="web")),
            },
        ),
        "spreading": waiting(
            labels={"app": "web"},
            nodeSelector={ZONE_LABEL: "east"},
            topologySpreadConstraints=[
                spread(HOSTNAME_LABEL),
                spread(ZONE_LABEL, nodeAffinityPolicy="Ignore"),
            ],
        ),
        "spreading-over-too-few-domains": waiting(
            labels={"app": "web"}, topologySpreadConstraints=[spread(ZONE_LABEL, minDomains=5)]
        ),
        "spreading-over-a-label-nobody-has": waiting(
            labels={"app": "web"}, topologySpreadConstraints=[spread("rack")]
        ),
        "spreading-over-tainted-nodes": waiting(
            labels={"app": "web"},
            topologySpreadConstraints=[
                spread(HOSTNAME_LABEL, nodeTaintsPolicy="Honor", nodeAffinityPolicy="Ignore")
            ],
            nodeSelector=PLAIN_ONLY,
        ),
    }


def _importance() -> dict[str, Object]:
    never = waiting(requests={"cpu": PLENTY}, priorityClassName="high-and-polite")
    return {
        "never-preempts": never,
        "important-and-too-large": waiting(requests={"cpu": PLENTY}, priorityClassName="high"),
        "important-and-nobody-below": waiting(
            requests={"cpu": "7950m"},
            priorityClassName="low",
            nodeSelector={HOSTNAME_LABEL: "adrift"},
        ),
        "important-and-selecting-nobody": waiting(
            priorityClassName="high", nodeSelector={"disk": "tape"}
        ),
        "gated": waiting(schedulingGates=[{"name": "example.com/wait"}]),
    }


def priority_class(name: str, value: int, **more: Any) -> Thing:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return Thing(PRIORITY_CLASSES, kind | {"metadata": {"name": name}, "value": value} | more)


def runtime_class(name: str, cpu: str) -> Thing:
    return Thing(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": name,
            "overhead": {"podFixed": {"cpu": cpu}},
        },
    )


def of_nodes_and_pods() -> World:
    """Return the world of everything but volumes and evictions."""
    return World(
        nodes=cluster(),
        residents=residents(),
        things=[
            priority_class("low", -10),
            priority_class("high", 1000),
            priority_class("high-and-polite", 1000, preemptionPolicy="Never"),
            runtime_class("heavy", "64"),
        ],
        waiting=_resources() | _nodes() | _company() | _importance(),
        silent=["gated"],
    )


def without_nodes() -> World:
    """Return a world without a node."""
    return World(
        nodes=[],
        waiting={
            "no-nodes": waiting(),
            "no-nodes-by-name": waiting(affinity=node_affinity({"matchFields": fields("ghost")})),
        },
    )
