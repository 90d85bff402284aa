"""The kinds besides pods and nodes: each reaches the core, under the shipped rights."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import BUILT_IN, Kind
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import ObjectChanged
from k8s_scheduler.core.messages.recording import read_segment
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.resources import resource_of
from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.installation import install
from testbed.options import API_SERVER, BedOptions
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, running, wait_bound

DRIVER = "csi.example.com"
SECOND_DRIVER = "csi2.example.com"
GIBIBYTE = {"storage": "1Gi"}
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "pause:3.10"}]},
}


def by_labels(**labels: str) -> dict[str, Any]:
    return {"selector": {"matchLabels": labels}}


def relabelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"seen": value}}}


@dataclass(frozen=True)
class Case:
    """An object's content, an update of it, and what must be read before and after."""

    body: dict[str, Any]
    patch: dict[str, Any]
    reads: dict[str, Any]
    then_reads: dict[str, Any]
    subresource: str = ""


def relabelled_case(body: dict[str, Any], **reads: Any) -> Case:
    """Make a case of an object of which nothing but metadata can be updated."""
    return Case(body, relabelled("twice"), reads, {"metadata.labels.seen": "twice"})


CASES = {
    Kind.NAMESPACE: relabelled_case({}),
    Kind.SERVICE: Case(
        {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
        {"spec": {"selector": {"app": "b"}}},
        {"spec.selector": {"app": "a"}},
        {"spec.selector": {"app": "b"}},
    ),
    Kind.REPLICATION_CONTROLLER: relabelled_case(
        {"spec": {"replicas": 0, "selector": {"app": "a"}, "template": TEMPLATE}},
        **{"spec.selector": {"app": "a"}},
    ),
    Kind.REPLICA_SET: relabelled_case(
        {"spec": {"replicas": 0, **by_labels(app="a"), "template": TEMPLATE}},
        **{"spec.selector.matchLabels": {"app": "a"}},
    ),
    Kind.STATEFUL_SET: relabelled_case(
        {"spec": {"replicas": 0, **by_labels(app="a"), "serviceName": "s", "template": TEMPLATE}},
        **{"spec.selector.matchLabels": {"app": "a"}},
    ),
    Kind.POD_DISRUPTION_BUDGET: Case(
        {"spec": {"maxUnavailable": 1, **by_labels(app="a")}},
        {"spec": by_labels(app="b")},
        {"spec.selector.matchLabels": {"app": "a"}},
        {"spec.selector.matchLabels": {"app": "b"}},
    ),
    Kind.PERSISTENT_VOLUME: Case(
        {
            "spec": {
                "capacity": GIBIBYTE,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "of-the-volume",
                "csi": {"driver": DRIVER, "volumeHandle": "v1"},
            }
        },
        {"spec": {"capacity": {"storage": "2Gi"}}},
        {"spec.csi.volumeHandle": "v1", "spec.capacity": GIBIBYTE},
        {"spec.capacity": {"storage": "2Gi"}},
    ),
    Kind.PERSISTENT_VOLUME_CLAIM: relabelled_case(
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "of-the-claim",
                "resources": {"requests": GIBIBYTE},
            }
        },
        **{"spec.storageClassName": "of-the-claim", "spec.resources.requests": GIBIBYTE},
    ),
    Kind.STORAGE_CLASS: relabelled_case(
        {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"},
        provisioner=DRIVER,
        volumeBindingMode="WaitForFirstConsumer",
    ),
    Kind.CSI_NODE: Case(
        {"spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "allocatable": {"count": 3}}]}},
        {
            "spec": {
                "drivers": [
                    {"name": DRIVER, "nodeID": "n", "allocatable": {"count": 3}},
                    {"name": SECOND_DRIVER, "nodeID": "n"},
                ]
            }
        },
        {"spec.drivers.0.allocatable.count": 3},
        {"spec.drivers.1.name": SECOND_DRIVER},
    ),
    Kind.CSI_DRIVER: Case(
        {"spec": {"storageCapacity": False}},
        {"spec": {"storageCapacity": True}},
        {"spec.storageCapacity": False},
        {"spec.storageCapacity": True},
    ),
    Kind.CSI_STORAGE_CAPACITY: Case(
        {"storageClassName": "fast", "capacity": "5Gi"},
        {"capacity": "4Gi"},
        {"storageClassName": "fast", "capacity": "5Gi"},
        {"capacity": "4Gi"},
    ),
    Kind.VOLUME_ATTACHMENT: Case(
        {
            "spec": {
                "attacher": DRIVER,
                "nodeName": "nowhere",
                "source": {"persistentVolumeName": "v1"},
            }
        },
        {"status": {"attached": True}},
        {"spec.source.persistentVolumeName": "v1", "spec.attacher": DRIVER},
        {"status.attached": True},
        subresource="status",
    ),
    Kind.DEVICE_CLASS: Case(
        {"spec": {"extendedResourceName": "example.com/gpu"}},
        {"spec": {"extendedResourceName": "example.com/gpus"}},
        {"spec.extendedResourceName": "example.com/gpu"},
        {"spec.extendedResourceName": "example.com/gpus"},
    ),
}


def read_kinds() -> set[Kind]:
    """Return the kinds that the plugins of the default configuration read."""
    profiles = default_configuration(known_plugins()).profiles
    return set(Scheduler(Setup(profiles=profiles)).kinds)


class Stage:
    """One object of each kind on a server, all of one name."""

    def __init__(self, sandbox):
        self._sandbox = sandbox
        self.name = f"x-{sandbox.namespace}"

    def namespace(self, kind):
        return self._sandbox.namespace if resource_of(kind).namespaced else ""

    def create(self):
        for kind, case in CASES.items():
            resource = resource_of(kind)
            body = {
                "apiVersion": resource.api_version,
                "kind": kind.name,
                "metadata": {"name": self.name, "labels": {"seen": "once"}},
            } | case.body
            if resource.namespaced:
                self._sandbox.client.create(self.path(kind).rpartition("/")[0], body)
            else:
                self._sandbox.create_cluster_object(resource.list_path, body)

    def update(self):
        for kind, case in CASES.items():
            self._sandbox.client.patch(self.path(kind, case.subresource), case.patch)

    def delete(self):
        for kind in CASES:
            self._sandbox.delete(self.path(kind))

    def path(self, kind, subresource=""):
        namespace = self._sandbox.namespace
        return resource_of(kind).object_path(
            self.name, namespace=namespace, subresource=subresource
        )


def told(tape, name):
    """Return kind -> what the core was told of the objects of this name, in order."""
    found = defaultdict(list)
    for message in read_segment(tape.read_bytes()).messages:
        if isinstance(message, ObjectChanged) and message.name == name:
            found[message.kind].append(message)
    return found


def value_at(content, path):
    """Return the value at `a.b.0.c`; None where there is none."""
    for part in path.split("."):
        if isinstance(content, list):
            content = content[int(part)] if int(part) < len(content) else None
        else:
            content = (content or {}).get(part)
    return content


def shows(message, wanted):
    """Return whether an object, as its type reads it, holds these values."""
    if message.object is None:
        return False
    content = msgspec.to_builtins(message.read())
    return all(value_at(content, path) == value for path, value in wanted.items())


def refusals(daemon):
    return {
        name: value
        for name, value in daemon.metrics().items()
        if name.startswith("rest_client_requests_total") and 'code="403"' in name
    }


def test_every_kind_is_covered():
    assert set(CASES) == set(BUILT_IN)


def test_objects_of_every_kind_reach_the_core_as_they_come_change_and_go(sandbox, tmp_path):
    """One of each is there before the start, and the same ones change and go while it runs."""
    kinds = read_kinds()
    assert kinds
    stage, tape = Stage(sandbox), tmp_path / "tape"
    stage.create()
    with running(sandbox.bed, flags=("--leader-elect=false", f"--record={tape}")) as daemon:
        stage.update()
        eventually(
            lambda: all(
                any(shows(m, CASES[kind].then_reads) for m in told(tape, stage.name)[kind])
                for kind in kinds
            ),
            20,
            "every update is recorded",
            interval_seconds=0.5,
        )
        stage.delete()
        eventually(
            lambda: all(told(tape, stage.name)[kind][-1].object is None for kind in kinds),
            30,
            "every delete is recorded",
            interval_seconds=0.5,
        )
        assert refusals(daemon) == {}
    found = told(tape, stage.name)
    assert set(found) == kinds
    for kind in kinds:
        first, last = found[kind][0], found[kind][-1]
        assert shows(first, CASES[kind].reads), (kind, first)
        assert shows(first, {"metadata.name": stage.name, "metadata.labels.seen": "once"})
        assert {m.namespace for m in found[kind]} == {stage.namespace(kind)}
        assert last.object is None
        assert sum(m.object is None for m in found[kind]) == 1
    assert "missing permission" not in daemon.log.read_text()


def test_a_recording_with_other_kinds_replays_to_the_same_decisions(sandbox, tmp_path):
    stage, tape = Stage(sandbox), tmp_path / "tape"
    stage.create()
    sandbox.create_nodes([make_node(f"n{i}", cpu="4") for i in range(3)])
    with running(sandbox.bed, flags=("--leader-elect=false", f"--record={tape}")):
        for i in range(9):
            pod = make_pod(f"p{i}", cpu="1", scheduler_name=SCHEDULER)
            pod["metadata"]["labels"] = {"app": "b"}  # no owner here adopts it
            sandbox.create_pods([pod])
            if i == 4:
                stage.update()
        placed = wait_bound(sandbox, 9)
    segment = read_segment(tape.read_bytes())
    profiles = msgspec.convert(segment.header.profiles, tuple[ResolvedProfile, ...])
    core = Scheduler(Setup(profiles=profiles))
    decided = {}
    kinds = set()
    for message in segment.messages:
        if isinstance(message, ObjectChanged):
            kinds.add(message.kind)
        for instruction in core.handle(message):
            if type(instruction).__name__ == "Bind":
                decided[instruction.name] = instruction.node
    assert decided == placed
    assert kinds == set(core.kinds)


def test_a_right_that_is_missing_is_named_and_holds_up_every_decision(sandbox):
    bed = sandbox.bed
    name = resource_of(Kind.POD_DISRUPTION_BUDGET).full_name
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/k8s-scheduler"
    sandbox.create_nodes([make_node("n1")])
    install(bed)
    rules = bed.client.get(path)["rules"]
    kept = [rule for rule in rules if rule.get("apiGroups") != ["policy"]]
    assert len(kept) == len(rules) - 1
    bed.client.patch(path, {"rules": kept})
    try:
        eventually(
            lambda: not may_watch(bed, "poddisruptionbudgets", group="policy"), 10, "it may not"
        )
        daemon = Daemon(bed, name="without-a-right").start(wait=False)
        sandbox.create_pods([make_pod("p", scheduler_name=SCHEDULER)])
        eventually(
            lambda: (
                f"missing permission: watch {name}" in daemon.log.read_text()
                and name in readiness(daemon)[1]
            ),
            20,
            "the missing right is named",
        )
        assert readiness(daemon)[0] == 503
        assert daemon.get("/livez")[0] == 200
        assert "nodeName" not in sandbox.pods()["p"]["spec"]
        bed.client.patch(path, {"rules": rules})
        assert wait_bound(sandbox, 1) == {"p": "n1"}
        assert daemon.stop() == 0, daemon.log_tail()
    finally:
        bed.client.patch(path, {"rules": rules})


def readiness(daemon):
    """Return status and text of /readyz; nothing while it does not listen yet."""
    try:
        return daemon.get("/readyz")
    except OSError:
        return 0, ""


def may_watch(bed, plural, *, group):
    """Ask the API server what the scheduler's own account may do."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "system:serviceaccount:kube-system:k8s-scheduler",
            "resourceAttributes": {"verb": "watch", "resource": plural, "group": group},
        },
    }
    answer = bed.client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return answer["status"]["allowed"]


@pytest.fixture(scope="module")
def plain_bed():
    """A server that does not serve all that plugins read."""
    switched_off = ",".join(f"{group}=false" for group in ("resource.k8s.io/v1", "policy/v1"))
    flags = {API_SERVER: [f"--runtime-config={switched_off}"]}
    with Bed(BedOptions(components=(), extra_flags=flags)) as bed:
        yield bed


def test_a_kind_that_the_server_does_not_serve_is_taken_as_empty(plain_bed):
    kinds = {Kind.DEVICE_CLASS, Kind.POD_DISRUPTION_BUDGET} & read_kinds()
    resources = [resource_of(kind) for kind in sorted(kinds)]
    assert resources
    for resource in resources:
        assert plain_bed.client.request("GET", resource.list_path)[0] == 404
    with running(plain_bed) as daemon:
        assert daemon.get("/readyz")[0] == 200
        assert {
            name: value
            for name, value in daemon.metrics().items()
            if name.startswith("k8s_scheduler_reflector_absent") and value
        } == {f'k8s_scheduler_reflector_absent{{resource="{r.plural}"}}': 1 for r in resources}
    text = daemon.log.read_text()
    assert "Caches are synced, scheduling" in text
    said = [line for line in text.splitlines() if "does not serve this resource" in line]
    assert len(said) == len(resources)
    for resource in resources:
        (line,) = [line for line in said if f'resource="{resource.plural}"' in line]
        assert f'api_version="{resource.group}/v1"' in line
