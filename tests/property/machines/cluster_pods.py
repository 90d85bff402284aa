"""Pods and nodes with few facts, each of which some column or index holds."""

from typing import Any

from hypothesis import strategies as st

from tests.builders import make_node, make_pod

NODES = ("n0", "n1", "n2", "n3")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Raw = dict[str, Any]

_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
_AFFINITY = {"podAntiAffinity": {REQUIRED: [_TERM]}}
_CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
_DISK = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}

# What the API server lets change in a pod that is there.
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.sampled_from([{}, {"app": "x"}, {"app": "y"}]),
        "terminating": st.just(value=True),
        "cpu": st.sampled_from(["1", "2", "500m"]),
        "version": st.integers(1, 9),
    },
)


@st.composite
def pods(draw: st.DrawFn) -> Raw:
    """Draw a pod on no node, named and known as nobody yet."""
    raw = make_pod("p").raw
    raw["metadata"]["labels"] = draw(st.sampled_from([{}, {"app": "x"}, {"app": "y"}]))
    raw["metadata"]["namespace"] = draw(st.sampled_from("ab"))
    raw["spec"]["priority"] = draw(st.sampled_from([0, 0, 7]))
    requests = draw(
        st.sampled_from(
            [{}, {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "example.com/gpu": "1"}]
        )
    )
    container: Raw = {"name": "c0", "resources": {"requests": requests}}
    if draw(st.booleans()):
        container["ports"] = [{"hostPort": draw(st.sampled_from([80, 81]))}]
    raw["spec"]["containers"] = [container]
    if draw(st.sampled_from([False, False, True])):
        raw["spec"]["affinity"] = _AFFINITY
    raw["spec"]["volumes"] = draw(st.sampled_from([[], [], [_CLAIM], [_CLAIM, _DISK]]))
    return raw


def change(raw: Raw, changes: Raw) -> None:
    """Let a pod have new facts; `cpu` is a resize, as a node's agent tells of it."""
    if "labels" in changes:
        raw["metadata"]["labels"] = changes["labels"]
    if "terminating" in changes:
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if "cpu" in changes:
        raw["status"]["containerStatuses"] = [
            {"name": "c0", "resources": {"requests": {"cpu": changes["cpu"]}}}
        ]
        raw["spec"]["containers"][0]["resources"]["requests"]["cpu"] = changes["cpu"]
    if "version" in changes:
        raw["metadata"]["resourceVersion"] = str(changes["version"])


@st.composite
def nodes(draw: st.DrawFn) -> Raw:
    """Draw a node under one of few names."""
    name = draw(st.sampled_from(NODES))
    node = make_node(name).label(host=name)
    if draw(st.booleans()):
        node.label(zone=draw(st.sampled_from(["z1", "z2"])))
    offered = {"cpu": draw(st.sampled_from(["2", "4"])), "memory": "8Gi", "pods": "9"}
    if draw(st.sampled_from([False, False, True])):
        offered["example.com/gpu"] = "2"
    node.raw["status"]["allocatable"] = offered
    if draw(st.sampled_from([False, False, True])):
        node.taint("k", effect=draw(st.sampled_from(["NoSchedule", "PreferNoSchedule"])))
    if draw(st.sampled_from([False, False, True])):
        node.cordoned()
    if draw(st.sampled_from([False, False, True])):
        node.raw["status"]["declaredFeatures"] = ["F"]
    node.raw["status"]["images"] = draw(
        st.sampled_from([[], [{"names": ["i"], "sizeBytes": 5}], [{"names": ["i", "j"]}]])
    )
    raw: Raw = node.raw
    return raw
