"""Which pods could be placed and are not: judged by the reference rules, on the server's truth.

The rules are those of `tests/reference`, node by node and pod by pod, which share nothing with the
scheduler's. For volumes the simulation's own layout is enough: each has a zone, all are alike.
"""

from functools import lru_cache

import msgspec

from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from tests.fakes.transport import Json
from tests.reference import inter_pod_affinity, pod_topology_spread, scalar
from tests.simulation import documents as doc
from tests.simulation.server import CLAIMS, NODES, PODS, VOLUMES, ModelServer

# What the answer depends on.
WHAT_PODS_NEED = (PODS, NODES, CLAIMS, VOLUMES)
_pod = lru_cache(maxsize=4096)(msgspec.json.Decoder(Pod).decode)
_node = lru_cache(maxsize=1024)(msgspec.json.Decoder(Node).decode)


def forgotten_pods(server: ModelServer) -> list[str]:
    """Return the pending pods of ours that some node would take, as `name -> node`."""
    pending = [p for p in server.every(PODS) if is_pending(p)]
    if not pending:
        return []
    stored = {list_path: server._objects.get(list_path, {}) for list_path in (PODS, NODES)}
    pods = [(s.content, _pod(s.encoded)) for s in stored[PODS].values()]
    nodes = [(s.content, _node(s.encoded)) for s in stored[NODES].values()]
    layout = _on_nodes(pods, nodes, wanting=None)
    found = []
    for raw in pending:
        taking = _taking(raw, pods, layout, server)
        if taking:
            found.append(f"{raw['metadata']['name']} -> {taking}")
    return found


def is_pending(pod: Json) -> bool:
    """Return whether it is up to us to place a pod."""
    return (
        doc.is_ours(pod)
        and not doc.node_of(pod)
        and not doc.is_over(pod)
        and not pod["metadata"].get("deletionTimestamp")
        and not pod["spec"].get("schedulingGates")
    )


def _taking(
    raw: Json,
    pods: list[tuple[Json, Pod]],
    layout: "Layout",
    server: ModelServer,
) -> str:
    """Return a node that takes the pod; empty if there is none."""
    pod = next(p for content, p in pods if doc.uid_of(content) == doc.uid_of(raw))
    passing = _passing(raw, pod, layout, server)
    if passing:
        nodes = [(raw_node, node) for raw_node, node, _ in layout]
        promised = _on_nodes(pods, nodes, wanting=raw)
        both = [name for name in _passing(raw, pod, promised, server) if name in passing]
        passing = both
    return passing[0] if passing else ""


Layout = list[tuple[Json, Node, list[Pod]]]


def _on_nodes(
    pods: list[tuple[Json, Pod]], nodes: list[tuple[Json, Node]], *, wanting: Json | None
) -> Layout:
    """Return the nodes with their pods; with those that are promised room before `wanting`."""
    layout = []
    for raw_node, node in nodes:
        name = raw_node["metadata"]["name"]
        there = [
            p for content, p in pods if doc.node_of(content) == name and not doc.is_over(content)
        ]
        if wanting is not None:
            there += [
                p
                for content, p in pods
                if is_pending(content)
                and content["status"].get("nominatedNodeName") == name
                and doc.uid_of(content) != doc.uid_of(wanting)
                and doc.priority_of(content) >= doc.priority_of(wanting)
            ]
        layout.append((raw_node, node, there))
    return layout


def _passing(raw: Json, pod: Pod, layout: Layout, server: ModelServer) -> list[str]:
    cluster = [(node, there) for _, node, there in layout]
    spread = pod_topology_spread.Filter(pod, pod_topology_spread.World(cluster))
    affinity = inter_pod_affinity.Required(pod, cluster, {})
    return [
        node.metadata.name
        for raw_node, node, there in layout
        if scalar.rejection(pod, node, there) is None
        and spread.rejection(node) is None
        and affinity.rejection(node) is None
        and _volume_reaches(raw, raw_node, server)
    ]


def _volume_reaches(pod: Json, node: Json, server: ModelServer) -> bool:
    for volume in pod["spec"].get("volumes", ()):
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = next(c for c in server.every(CLAIMS) if c["metadata"]["name"] == name)
        bound = claim["spec"].get("volumeName")
        usable = [
            v
            for v in server.every(VOLUMES)
            if (v["metadata"]["name"] == bound if bound else _is_for(v, name))
        ]
        zone = node["metadata"]["labels"][doc.ZONE]
        if not any(zone == _zone_of(v) for v in usable):
            return False
    return True


def _is_for(volume: Json, claim: str) -> bool:
    reference = volume["spec"].get("claimRef")
    return reference is None or bool(reference["name"] == claim)


def _zone_of(volume: Json) -> str:
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return str(term["matchExpressions"][0]["values"][0])
