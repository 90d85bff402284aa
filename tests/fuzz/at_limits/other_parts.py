"""What objects of other kinds can have thousands of, and how each looks when it is right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fuzz.at_limits.api_rules import Raw, expression, padded
from tests.fuzz.at_limits.parts import METADATA, Part, Words
from tests.fuzz.at_limits.pod_parts import HOST, OTHERS_APPS, ZONE


@dataclass(frozen=True, slots=True)
class OtherKind:
    """`make(name)` is a right one; each part is of that kind."""

    make: Callable[[str], Raw]
    parts: tuple[Part, ...]
    namespaced: bool = True


def _bare(_: str) -> Raw:
    return {"spec": {}}


def _csi_node(_: str) -> Raw:
    return {"spec": {"drivers": []}}


def _pairs(thing: Raw, words: Words, count: int) -> None:
    thing["spec"]["selector"] = {words.key("k", i): "v" for i in range(count)}


def _selector(thing: Raw, words: Words, count: int) -> None:
    """Everything has none of these labels, a template too."""
    keys = [words.key("k", i) for i in range(count)]
    found = [expression(key, "DoesNotExist") for key in keys]
    thing["spec"]["selector"] = {"matchExpressions": found}


def _selector_of_values(thing: Raw, words: Words, count: int) -> None:
    values = [*OTHERS_APPS, *(words.name("v", i) for i in range(count))]
    thing["spec"]["selector"] = {"matchExpressions": [expression("app", "In", *values)]}


def _service(_: str) -> Raw:
    return {"spec": {"ports": [{"port": 80}], "selector": {"app": "tenant"}}}


def _with_template(_: str) -> Raw:
    template = _template({"app": OTHERS_APPS[0]})
    return {"spec": {"selector": {"matchLabels": {"app": OTHERS_APPS[0]}}, "template": template}}


def _template(own: Raw) -> Raw:
    container = {"name": "c", "image": "app:v1"}
    return {"metadata": {"labels": own}, "spec": {"containers": [container]}}


def _controller(_: str) -> Raw:
    return {"spec": {"selector": {"app": "tenant"}, "template": _template({"app": "tenant"})}}


def _pairs_of_template(thing: Raw, words: Words, count: int) -> None:
    _pairs(thing, words, count)
    thing["spec"]["template"] = _template(dict(thing["spec"]["selector"]))


def _budget(_: str) -> Raw:
    return {
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "tenant"}}},
        "status": {"disruptionsAllowed": 1},
    }


def _disrupted(thing: Raw, words: Words, count: int) -> None:
    thing["status"]["disruptedPods"] = {
        words.name("p", i): "2026-01-01T00:00:00Z" for i in range(count)
    }


def _volume(name: str) -> Raw:
    return {
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
        "status": {"phase": "Available"},
    }


def _reach_by_terms(thing: Raw, words: Words, count: int) -> None:
    terms = [
        {"matchExpressions": [expression(HOST, "In", words.name("h", i))]} for i in range(count)
    ]
    thing["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}


def _reach_by_values(thing: Raw, words: Words, count: int) -> None:
    values = [words.name("h", i) for i in range(count)]
    terms = [{"matchExpressions": [expression(HOST, "In", *values)]}]
    thing["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}


def _claim(_: str) -> Raw:
    return {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def _storage_class(_: str) -> Raw:
    return {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}


def _topologies(thing: Raw, words: Words, count: int) -> None:
    thing["allowedTopologies"] = [
        {"matchLabelExpressions": [{"key": ZONE, "values": [words.name("z", i)]}]}
        for i in range(count)
    ]


def _drivers(thing: Raw, words: Words, count: int) -> None:
    thing["spec"]["drivers"] = [
        {
            "name": words.name("d", i),
            "nodeID": "n",
            "topologyKeys": [ZONE],
            "allocatable": {"count": 1 + i % 30},
        }
        for i in range(count)
    ]


def _topology_keys(thing: Raw, words: Words, count: int) -> None:
    keys = [words.key("k", i) for i in range(count)]
    thing["spec"]["drivers"] = [{"name": "csi.example.com", "nodeID": "n", "topologyKeys": keys}]


def _capacity(_: str) -> Raw:
    return {
        "storageClassName": "fast",
        "capacity": "100Gi",
        "nodeTopology": {"matchLabels": {ZONE: "zone-1"}},
    }


def _capacity_selector(thing: Raw, words: Words, count: int) -> None:
    keys = [words.key("k", i) for i in range(count)]
    thing["nodeTopology"] = {"matchExpressions": [expression(k, "DoesNotExist") for k in keys]}


def _attachment(name: str) -> Raw:
    source = {"persistentVolumeName": padded(name, 20)}
    return {
        "spec": {"attacher": "csi.example.com", "nodeName": "node-1", "source": source},
        "status": {"attached": True},
    }


_SELECTING = (
    Part("expressions", _selector),
    Part("values", _selector_of_values),
)
_NAMED = METADATA[:2]
OTHER_KINDS: Mapping[str, OtherKind] = {
    "Namespace": OtherKind(_bare, _NAMED, namespaced=False),
    "Service": OtherKind(_service, (Part("pairs", _pairs), *_NAMED)),
    "ReplicationController": OtherKind(_controller, (Part("pairs", _pairs_of_template), *_NAMED)),
    "ReplicaSet": OtherKind(_with_template, (*_SELECTING, *_NAMED)),
    "StatefulSet": OtherKind(_with_template, (*_SELECTING, *_NAMED)),
    "PodDisruptionBudget": OtherKind(
        _budget, (*_SELECTING, Part("disrupted pods", _disrupted), *_NAMED)
    ),
    "PersistentVolume": OtherKind(
        _volume,
        (Part("terms", _reach_by_terms), Part("values", _reach_by_values), *_NAMED),
        namespaced=False,
    ),
    "PersistentVolumeClaim": OtherKind(_claim, (*_SELECTING, *_NAMED)),
    "StorageClass": OtherKind(
        _storage_class, (Part("topologies", _topologies), *_NAMED), namespaced=False
    ),
    "CSINode": OtherKind(
        _csi_node,
        (Part("drivers", _drivers), Part("topology keys", _topology_keys), *_NAMED),
        namespaced=False,
    ),
    "CSIStorageCapacity": OtherKind(_capacity, (Part("expressions", _capacity_selector), *_NAMED)),
    "VolumeAttachment": OtherKind(_attachment, _NAMED, namespaced=False),
    "CSIDriver": OtherKind(_bare, _NAMED, namespaced=False),
}
