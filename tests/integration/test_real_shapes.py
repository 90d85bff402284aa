"""Pods as the real controllers and the real admission make them: one owner's are of one shape.

A pod of a real cluster has much that none of its siblings has: a volume for its token under a
random name, a hostname, a label with its index, a Job of its own. What scheduling does not read
must not tell pods apart. Where pods of one owner do differ in what it reads, the table says in
what and why.
"""

import copy
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.framework.shapes import ShapeKey, shape_of
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged, Schedule
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.kube.watch.decoding import ObjectDecoder
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import make_node
from tests.inside import inside

Raw = dict[str, Any]
REPLICAS = 3
OWNER = "owner"
SIDECAR: Raw = {
    "name": "proxy",
    "image": "proxy:v2",
    "restartPolicy": "Always",
    "resources": {"requests": {"cpu": "10m"}},
    "ports": [{"containerPort": 15001}],
}


def template(owner: str, *, sidecar: bool, restart: str = "Always") -> Raw:
    """Return a pod's template; no node has what it asks for."""
    requests = {"cpu": "100m", "memory": "64Mi", "example.com/device": "1"}
    container: Raw = {
        "name": "c",
        "image": "app:v1",
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": requests, "limits": {"example.com/device": "1"}},
        "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
    }
    spec: Raw = {
        "restartPolicy": restart,
        "containers": [container],
        "volumes": [{"name": "settings", "configMap": {"name": "settings", "optional": True}}],
    }
    if sidecar:
        spec["initContainers"] = [copy.deepcopy(SIDECAR)]
    return {"metadata": {"labels": {OWNER: owner}}, "spec": spec}


def replicated(owner: str, pod: Raw, **more: Any) -> Raw:
    return {
        "replicas": REPLICAS,
        "selector": {"matchLabels": {OWNER: owner}},
        "template": pod,
        **more,
    }


def job(pod: Raw, **more: Any) -> Raw:
    return {"parallelism": REPLICAS, "completions": REPLICAS, "template": pod, **more}


@dataclass(frozen=True)
class Owner:
    """A controller, and what its pods differ in.

    `labels` are those in which they differ: they share all the same, unless a selector asks for
    one. `splits` is the field of the spec that has to split them; what plugins that do not ask for
    it say of one serves the others all the same: they are of one partial shape.
    """

    api: str
    collection: str
    kind: str
    labels: frozenset[str] = frozenset()
    splits: str = ""


_OF_SET = frozenset({"apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"})
_OF_JOB = frozenset(
    {
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
    }
)
OWNERS = {
    "deployment": Owner("apps/v1", "deployments", "Deployment"),
    "replicaset": Owner("apps/v1", "replicasets", "ReplicaSet"),
    "job": Owner("batch/v1", "jobs", "Job"),
    "indexed-job": Owner(
        "batch/v1", "jobs", "Job", frozenset({"batch.kubernetes.io/job-completion-index"})
    ),
    "statefulset": Owner("apps/v1", "statefulsets", "StatefulSet", _OF_SET),
    # Each has a claim of its own. Which nodes can have a claim's volume is that claim's alone.
    "statefulset-claims": Owner("apps/v1", "statefulsets", "StatefulSet", _OF_SET, "volumes"),
    # Each is for one node, which it names.
    "daemonset": Owner("apps/v1", "daemonsets", "DaemonSet", splits="affinity"),
    # Each run has a Job of its own.
    "cronjob": Owner("batch/v1", "jobs", "Job", _OF_JOB),
}
CASES = [(name, sidecar) for name in OWNERS for sidecar in (False, True)]


def owner_name(name: str, sidecar: bool) -> str:
    return f"{name}-sidecar" if sidecar else name


def specs(name: str, owner: str, *, sidecar: bool) -> list[Raw]:
    """Return the specs of the objects to be made for a case."""
    pod = template(owner, sidecar=sidecar)
    once = template(owner, sidecar=sidecar, restart="Never")
    match name:
        case "deployment" | "replicaset":
            return [replicated(owner, pod)]
        case "job":
            return [job(once)]
        case "indexed-job":
            return [job(once, completionMode="Indexed")]
        case "cronjob":
            return [job(once) | {"parallelism": 1, "completions": 1} for _ in range(REPLICAS)]
        case "daemonset":
            return [{"selector": {"matchLabels": {OWNER: owner}}, "template": pod}]
    more: Raw = {"serviceName": owner, "podManagementPolicy": "Parallel"}
    if name == "statefulset-claims":
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "none",
            },
        }
        more["volumeClaimTemplates"] = [claim]
    return [replicated(owner, pod, **more)]


def create(sandbox: Sandbox, name: str, *, sidecar: bool) -> None:
    """Create the owner, or a CronJob and what `kubectl create job --from` makes of it."""
    found, owner = OWNERS[name], owner_name(name, sidecar)
    path = f"/apis/{found.api}/namespaces/{sandbox.namespace}"
    made = specs(name, owner, sidecar=sidecar)
    metadata: Raw = {"name": owner}
    if name == "cronjob":
        schedule = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": made[0]}}
        body = {"apiVersion": found.api, "kind": "CronJob", "metadata": metadata, "spec": schedule}
        parent = sandbox.client.create(f"{path}/cronjobs", body)
        metadata = {
            "generateName": f"{owner}-",
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [
                {
                    "apiVersion": found.api,
                    "kind": "CronJob",
                    "name": owner,
                    "uid": parent["metadata"]["uid"],
                    "controller": True,
                }
            ],
        }
    for spec in made:
        body = {"apiVersion": found.api, "kind": found.kind, "metadata": metadata, "spec": spec}
        sandbox.client.create(f"{path}/{found.collection}", body)


@pytest.fixture(scope="module")
def made(control_plane) -> dict[str, list[Raw]]:
    """The pods that the controllers made, by owner, as the API server has them."""
    with Sandbox(control_plane) as sandbox:
        sandbox.create_nodes(
            [make_node(f"{sandbox.namespace}-{number}") for number in range(REPLICAS)]
        )
        for name, sidecar in CASES:
            create(sandbox, name, sidecar=sidecar)

        def all_made() -> dict[str, list[Raw]]:
            by_owner: dict[str, list[Raw]] = defaultdict(list)
            for pod in sandbox.pods().values():
                by_owner[pod["metadata"]["labels"][OWNER]].append(pod)
            counts = {owner: len(pods) for owner, pods in by_owner.items()}
            for name, sidecar in CASES:
                # Nodes of other tests get a pod of a DaemonSet as well.
                assert counts.get(owner_name(name, sidecar), 0) >= REPLICAS, counts
            return by_owner

        return eventually(all_made, 30, "the controllers made all pods", interval_seconds=0.2)


def decoded(pods: list[Raw]) -> list[Pod]:
    """Return pods as the daemon reads them."""
    decoder = ObjectDecoder(PODS)
    found = [decoder.object(msgspec.json.encode(pod)) for pod in pods]
    assert all(isinstance(pod, Pod) for pod in found)
    return found


def differing_labels(pods: list[Pod]) -> frozenset[str]:
    keys = {key for pod in pods for key in pod.metadata.labels or {}}
    return frozenset(
        key for key in keys if len({(pod.metadata.labels or {}).get(key) for pod in pods}) > 1
    )


def without(pod: Pod, field: str) -> ShapeKey:
    return shape_of(
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **{field: None}))
    )


def test_the_pods_are_those_of_a_real_cluster(made):
    for pods in made.values():
        tokens = {v["name"] for pod in pods for v in pod["spec"]["volumes"] if "projected" in v}
        # Each has one, and each another.
        assert len(tokens) == len(pods)
        assert all(token.startswith("kube-api-access-") for token in tokens)
        assert all(pod["spec"]["tolerations"] for pod in pods)
        assert all(pod["metadata"]["ownerReferences"] for pod in pods)


@pytest.mark.parametrize(("name", "sidecar"), CASES, ids=[owner_name(*case) for case in CASES])
class TestPodsOfOneOwner:
    """What tells pods of one owner apart, and what does not."""

    def test_differ_in_what_the_table_says_alone(self, made, name, sidecar):
        owner = OWNERS[name]
        pods = decoded(made[owner_name(name, sidecar)])
        assert differing_labels(pods) == owner.labels
        if owner.splits:
            assert len({shape_of(pod).spec for pod in pods}) == len(pods)
            assert len({without(pod, owner.splits).spec for pod in pods}) == 1
            assert len({shape_of(pod).partial for pod in pods}) == 1
        else:
            assert len({shape_of(pod).spec for pod in pods}) == 1

    def test_are_parked_as_one_unless_their_specs_differ(self, made, name, sidecar):
        pods = decoded(made[owner_name(name, sidecar)])
        core = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
        nodes = {f"node-{number}": make_node(f"node-{number}") for number in range(REPLICAS)}

        def tell(node: str) -> None:
            core.handle(NodeChanged(1.0, NodeName(node), msgspec.convert(nodes[node], Node)))

        for node in nodes:
            tell(node)
        for pod in pods:
            core.handle(PodChanged(1.0, PodUid(pod.metadata.uid), pod))
        core.handle(Schedule(1.0, len(pods)))
        assert len(inside(core).queue.parked) == len(pods)
        # Something happens that may help them, and does not.
        nodes["node-0"]["status"]["allocatable"]["example.com/device"] = "0"
        nodes["node-0"]["status"]["allocatable"]["cpu"] = "64"
        tell("node-0")
        core.handle(Schedule(2.0, len(pods)))
        assert len(inside(core).queue.parked) == len(pods)
        assert len(inside(core).queue.parked.groups()) == (len(pods) if OWNERS[name].splits else 1)
