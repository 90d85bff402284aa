"""Random pods and nodes that meet each other: few labels, claims, ports and terms, much reuse."""

from random import Random
from typing import Any

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from tests.builders import make_node, make_pod

NAMESPACES = ("a", "b")
KEYS = ("app", "tier")
VALUES = ("x", "y", "z")
ZONES = ("z1", "z2")
CLAIMS = ("c1", "c2")
PORTS = (80, 81)
ADDRESSES = ("", "127.0.0.1", "10.0.0.1")
PROTOCOLS = ("TCP", "UDP")
RESOURCES = ("cpu", "memory", "example.com/gpu")


def random_labels(rng: Random) -> dict[str, str]:
    return {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.6}


def random_selector(rng: Random) -> dict[str, Any] | None:
    """Return a selector as the API has it; None, and one without conditions, are among them."""
    if rng.random() < 0.1:
        return None
    selector: dict[str, Any] = {}
    if rng.random() < 0.5:
        selector["matchLabels"] = {rng.choice(KEYS): rng.choice(VALUES)}
    for _ in range(rng.choice([0, 0, 1, 2])):
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        expression: dict[str, Any] = {"key": rng.choice((*KEYS, "nobody-has-it"))}
        expression["operator"] = operator
        if operator in ("In", "NotIn"):
            expression["values"] = rng.sample([*VALUES, "nowhere"], rng.randint(1, 2))
        selector.setdefault("matchExpressions", []).append(expression)
    return selector


def random_term(rng: Random) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": rng.choice(["zone", "host"])}
    selector = random_selector(rng)
    if selector is not None:
        term["labelSelector"] = selector
    if rng.random() < 0.3:
        term["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
    if rng.random() < 0.3:
        term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "red"}}])
    return term


def random_affinity(rng: Random) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    for name in ("podAffinity", "podAntiAffinity"):
        part: dict[str, Any] = {}
        if rng.random() < 0.4:
            part["requiredDuringSchedulingIgnoredDuringExecution"] = [
                random_term(rng) for _ in range(rng.randint(1, 2))
            ]
        if rng.random() < 0.3:
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 5), "podAffinityTerm": random_term(rng)}
            ]
        if part:
            affinity[name] = part
    return affinity


def random_volumes(rng: Random) -> list[dict[str, Any]]:
    choices: list[dict[str, Any]] = [
        *({"persistentVolumeClaim": {"claimName": claim}} for claim in CLAIMS),
        {"gcePersistentDisk": {"pdName": "disk"}},
        {"ephemeral": {}},
        {"configMap": {"name": "settings"}},
    ]
    picked = rng.choices(choices, k=rng.choice([0, 0, 1, 2]))
    return [{"name": f"v{i}", **volume} for i, volume in enumerate(picked)]


def random_pod(rng: Random, name: str, *, uid: str = "", node: str = "") -> Pod:
    """Return a pod; on a node if one is named."""
    pod = make_pod(name).namespace(rng.choice(NAMESPACES)).uid(uid or name)
    change_pod(rng, pod.raw)
    ports = [
        {
            "hostPort": rng.choice(PORTS),
            "hostIP": rng.choice(ADDRESSES),
            "protocol": rng.choice(PROTOCOLS),
        }
        for _ in range(rng.choice([0, 0, 1, 2]))
    ]
    for container in pod.raw["spec"]["containers"][:1]:
        container["ports"] = ports
    if node:
        pod.on(node)
    return pod.obj()


def change_pod(rng: Random, raw: dict[str, Any]) -> None:
    """Give a pod new facts; ports stay, as the API server has it."""
    ports = [container.get("ports") for container in raw["spec"]["containers"]]
    raw["metadata"]["labels"] = random_labels(rng)
    raw["metadata"].pop("deletionTimestamp", None)
    if rng.random() < 0.2:
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    raw["spec"]["priority"] = rng.choice([-1, 0, 5])
    raw["spec"]["affinity"] = random_affinity(rng)
    raw["spec"]["volumes"] = random_volumes(rng)
    raw["spec"]["containers"] = [
        {
            "name": "c0",
            "resources": {
                "requests": {
                    resource: str(rng.randint(0, 2)) for resource in RESOURCES if rng.random() < 0.6
                }
            },
        }
    ]
    if ports and ports[0]:
        raw["spec"]["containers"][0]["ports"] = ports[0]


def random_node(rng: Random, name: str) -> Node:
    node = make_node(name).label(host=name)
    if rng.random() < 0.8:
        node.label(zone=rng.choice(ZONES))
    node.offers(cpu=str(rng.randint(0, 8)), memory="8Gi", pods=str(rng.randint(0, 9)))
    if rng.random() < 0.3:
        node.raw["status"]["allocatable"]["example.com/gpu"] = str(rng.randint(0, 3))
    if rng.random() < 0.2:
        node.taint("k", effect=rng.choice(["NoSchedule", "PreferNoSchedule"]))
    if rng.random() < 0.2:
        node.cordoned()
    return node.obj()
