"""Harm by what pods ask for: constraints, terms, resources and everything else that is counted."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.as_made import Raw, as_made
from tests.bench.workloads import HOST, PREFERRED, REQUIRED
from tests.tenants.tenant import NAMESPACE, Deed, Harm, NodeIs, PodGoes, PodIs, Tried

SOFT, HARD = "ScheduleAnyway", "DoNotSchedule"
# A node that there is, where others evict no pod for theirs, and one that there is not.
HERE, NOWHERE = "node-60", "no-such-node"
_EVERYBODY = {"namespaceSelector": {}}


def pod(name: str, *, cpu: str = "1m", node: str = "", run: int = 0, **spec: Any) -> Raw:
    """Return a pod of the tenant, as the API server shows it."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    raw = {
        "metadata": {"name": name, "labels": {"app": "greedy"}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {},
    }
    made = as_made(raw, name, run, run=run)
    made["metadata"].update(uid=name, namespace=NAMESPACE)
    if node:
        made["spec"]["nodeName"] = node
    return made


def _parts(count: int, each: int | None) -> Iterator[tuple[str, range]]:
    """Yield what each pod has of so many things: all of them, or so many each."""
    each = each or count
    for number, first in enumerate(range(0, count, each)):
        yield f"greedy-{number}", range(first, min(first + each, count))


def constraints(action: str, *, each: int | None = None, node: str = "", labelled: int = 0) -> Harm:
    """Return pods that are to be spread over keys that no node has, or only a few."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(labelled):
            yield NodeIs(node_with({f"key-{i}": f"v{number}" for i in range(count)}, number))
        for name, numbers in _parts(count, each):
            wanted = [
                {
                    "maxSkew": 1,
                    "topologyKey": f"key-{i}",
                    "whenUnsatisfiable": action,
                    "labelSelector": {"matchLabels": {"app": "greedy"}},
                }
                for i in numbers
            ]
            yield PodIs(pod(name, node=node, topologySpreadConstraints=wanted))
        yield Tried()

    return harm


def node_with(labels: dict[str, str], number: int) -> Raw:
    """Return a node of the tenant's with labels of its own."""
    name = f"greedy-node-{number}"
    own = {HOST: name, "topology.kubernetes.io/zone": "zone-0"}
    return {
        "metadata": {"name": name, "uid": name, "labels": own | labels},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
    }


def terms(
    kind: str, side: str, *, each: int | None = None, node: str = "", key: str = HOST
) -> Harm:
    """Return pods with terms that pick pods of all namespaces."""

    def harm(count: int) -> Iterator[Deed]:
        for name, numbers in _parts(count, each):
            found = [
                {
                    "topologyKey": key.format(i),
                    "labelSelector": {
                        "matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]
                    },
                    **_EVERYBODY,
                }
                for i in numbers
            ]
            wishes = [{"weight": 1 + i % 100, "podAffinityTerm": t} for i, t in enumerate(found)]
            held = {REQUIRED: found} if kind == "hard" else {PREFERRED: wishes}
            yield PodIs(pod(name, node=node, affinity={side: held}))
        yield Tried()

    return harm


def resources(*, each: int | None = None, node: str = "") -> Harm:
    """Return pods that ask for resources of which no other object has heard."""

    def harm(count: int) -> Iterator[Deed]:
        for name, numbers in _parts(count, each):
            raw = pod(name, node=node)
            raw["spec"]["containers"][0]["resources"]["requests"] |= names(numbers)
            yield PodIs(raw)
        yield Tried()

    return harm


def names(numbers: range) -> dict[str, str]:
    """Return so many resources."""
    return {f"example.com/r{number}": "1" for number in numbers}


# Everything else that a pod can have much of.


def _tolerations(raw: Raw, numbers: range) -> None:
    raw["spec"]["tolerations"] += [
        {"key": f"example.com/t{i}", "value": "v" * 40, "effect": "NoSchedule"} for i in numbers
    ]


def _ports(raw: Raw, numbers: range) -> None:
    raw["spec"]["containers"][0]["ports"] = [
        {"hostPort": 1 + i % 60_000, "containerPort": 1 + i % 60_000, "protocol": "TCP"}
        for i in numbers
    ]


def _containers(raw: Raw, numbers: range) -> None:
    raw["spec"]["containers"] += [
        {"name": f"c{i}", "image": f"example.com/image:{i}"} for i in numbers
    ]


def _volumes(raw: Raw, numbers: range) -> None:
    raw["spec"]["volumes"] += [
        {"name": f"v{i}", "gcePersistentDisk": {"pdName": f"disk-{i}"}} for i in numbers
    ]


def _claims(raw: Raw, numbers: range) -> None:
    raw["spec"]["volumes"] += [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}} for i in numbers
    ]


def _labels(raw: Raw, numbers: range) -> None:
    raw["metadata"]["labels"] |= {f"label-{i}": "v" * 30 for i in numbers}


def _annotations(raw: Raw, numbers: range) -> None:
    raw["metadata"]["annotations"] = {f"example.com/a{i}": "v" * 200 for i in numbers}


def _node_terms(raw: Raw, numbers: range) -> None:
    found = [{"matchExpressions": [_expression(i)]} for i in numbers]
    raw["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": found}}}


def _preferred_node_terms(raw: Raw, numbers: range) -> None:
    found = [{"weight": 1, "preference": {"matchExpressions": [_expression(i)]}} for i in numbers]
    raw["spec"]["affinity"] = {"nodeAffinity": {PREFERRED: found}}


def _expressions(raw: Raw, numbers: range) -> None:
    found = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in numbers]
    affinity = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": found}]}}
    raw["spec"]["affinity"] = {"nodeAffinity": affinity}


def _node_names(raw: Raw, numbers: range) -> None:
    values = [f"{'x' * 50}-{i}" for i in numbers]
    found = {"key": HOST, "operator": "NotIn", "values": values}
    affinity = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [found]}]}}
    raw["spec"]["affinity"] = {"nodeAffinity": affinity}


def _resources(raw: Raw, numbers: range) -> None:
    raw["spec"]["containers"][0]["resources"]["requests"] |= names(numbers)


def _expression(number: int) -> Raw:
    return {"key": f"k{number}", "operator": "In", "values": ["v"]}


Much = Callable[[Raw, range], None]
MUCH: dict[str, Much] = {
    "tolerations": _tolerations,
    "host ports": _ports,
    "containers": _containers,
    "volumes": _volumes,
    "claims": _claims,
    "labels": _labels,
    "annotations": _annotations,
    "hard node terms": _node_terms,
    "soft node terms": _preferred_node_terms,
    "node expressions": _expressions,
    "node names": _node_names,
    "resources": _resources,
}


def much(what: str, *, each: int | None = None, node: str = "") -> Harm:
    """Return pods that have much of something."""

    def harm(count: int) -> Iterator[Deed]:
        for name, numbers in _parts(count, each):
            raw = pod(name, node=node)
            MUCH[what](raw, numbers)
            yield PodIs(raw)
        yield Tried()

    return harm


def come_and_go(what: str, each: int, *, node: str = "", times: int = 1) -> Harm:
    """Return pods, one at a time, that have much of something that no pod before had."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            raw = pod(f"greedy-{number}", node=node)
            MUCH[what](raw, range(number * each, (number + 1) * each))
            for again in range(times):
                one = copy.deepcopy(raw)
                one["metadata"].update(uid=f"greedy-{number}-{again}")
                yield PodIs(one)
                yield Tried()
                yield PodGoes(one["metadata"]["uid"])

    return harm


def odd_quantity(*, node: str = "") -> Harm:
    """Return pods of which nobody can say what they ask for."""

    def harm(count: int) -> Iterator[Deed]:
        for number in range(count):
            yield PodIs(pod(f"greedy-{number}", cpu=f"1e{2000 + number}", node=node))
        yield Tried()

    return harm
