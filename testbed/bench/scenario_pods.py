"""The pods of the workloads: scheduler_perf's templates, and the shapes of a mixed cluster.

All live in one namespace: where scheduler_perf keeps the pods in place apart in a namespace of
their own and names both in its terms, a term here looks at its own namespace, which holds them all.
Limits equal requests, as there. Nothing may set a priority but a PriorityClass: admission is on.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from testbed.client import Object
from testbed.workload import HOSTNAME_LABEL, ZONE_LABEL, make_pod

BENCH_SCHEDULER = "bench-scheduler"
NAMESPACE = "default"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# By name: the values of scheduler_perf's high priorities.
PRIORITIES: Mapping[str, int] = {"bench-high": 10, "bench-preemptor": 9_999_999}
SHAPES = 50
# The apps of the workload `deployment`.
DEPLOYMENTS = tuple(f"web-{number}" for number in range(10))
# How the names of objects begin that come and go while pods are placed.
CHURN = "churn-"

_JOB, _JOB_UID = "bench", "5d3c1f0e-7c1b-4d7e-9a54-0f4f6f6d2c11"
_TEMPLATE_HASH = "6d4cf56db6"

# Makes a pod of a name; the number tells it from its like where that matters.
MakePod: TypeAlias = Callable[[str, int], Object]


def plain_pod(
    name: str,
    *,
    cpu: str = "100m",
    labels: Mapping[str, str] | None = None,
    priority_class: str | None = None,
) -> Object:
    """Return a pod that asks for nothing but resources, and goes at once when it is deleted."""
    pod = make_pod(
        name,
        namespace=NAMESPACE,
        cpu=cpu,
        memory="500Mi",
        scheduler_name=BENCH_SCHEDULER,
        labels=labels,
        priority_class=priority_class,
    )
    # Without a kubelet nobody would end it after a grace period.
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    _belong_to_job(pod)
    container = pod["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80}]
    container["resources"]["limits"] = dict(container["resources"]["requests"])
    return pod


def _belong_to_job(pod: Object) -> None:
    """Make it one of a Job's pods: labels and owner as the Job controller sets them.

    scheduler_perf's pods belong to nothing, but pods of a real cluster do. A Job, because the
    default spread constraints leave its pods alone: what is asked of schedulers is what
    scheduler_perf asks. (`deployment` and a part of `mixed` have pods of ReplicaSets.)
    """
    metadata = pod["metadata"]
    metadata["labels"] |= {
        "batch.kubernetes.io/controller-uid": _JOB_UID,
        "batch.kubernetes.io/job-name": _JOB,
        "controller-uid": _JOB_UID,
        "job-name": _JOB,
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": _JOB, "uid": _JOB_UID}
    metadata["ownerReferences"] = [owner | {"controller": True, "blockOwnerDeletion": True}]


def spread_pod(
    name: str, labels: Mapping[str, str], *, key: str, action: str, max_skew: int
) -> Object:
    """Return a pod to be spread among its like."""
    pod = plain_pod(name, labels=labels)
    constraint = {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": action}
    pod["spec"]["topologySpreadConstraints"] = [constraint | _selector(labels)]
    return pod


def related_pod(
    name: str, labels: Mapping[str, str], *, side: str, key: str, weight: int | None = None
) -> Object:
    """Return a pod with a term on its like: required, or preferred with a weight."""
    pod = plain_pod(name, labels=labels)
    term: dict[str, Any] = {"topologyKey": key} | _selector(labels)
    if weight is None:
        pod["spec"]["affinity"] = {side: {REQUIRED: [term]}}
    else:
        pod["spec"]["affinity"] = {side: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}
    return pod


def owned_pod(name: str, labels: Mapping[str, str], *, owner: str) -> Object:
    """Return a pod of a ReplicaSet: the default constraints spread it."""
    pod = plain_pod(name, labels=labels)
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner}
    pod["metadata"]["ownerReferences"] = [
        # Nothing looks the uid up: the controllers that would are not there.
        reference | {"uid": f"replica-set-{owner}", "controller": True, "blockOwnerDeletion": True}
    ]
    pod["metadata"]["labels"] = {**labels, "pod-template-hash": _TEMPLATE_HASH}
    return pod


# scheduler_perf's templates


def default_pod(name: str, _: int) -> Object:
    """Return the pod that most cases use."""
    return plain_pod(name)


def zone_spread(name: str, _: int) -> Object:
    """Return a pod of TopologySpreading."""
    return spread_pod(name, {"color": "blue"}, key=ZONE_LABEL, action="DoNotSchedule", max_skew=5)


def host_spread(name: str, _: int) -> Object:
    """Return a pod of PreferredTopologySpreading, but over hosts instead of zones."""
    return spread_pod(
        name, {"color": "blue"}, key=HOSTNAME_LABEL, action="ScheduleAnyway", max_skew=5
    )


def alone(name: str, _: int) -> Object:
    """Return a pod of SchedulingPodAntiAffinity: one on a node."""
    return related_pod(name, {"color": "green"}, side="podAntiAffinity", key=HOSTNAME_LABEL)


def together(name: str, _: int) -> Object:
    """Return a pod of SchedulingPodAffinity: in a zone with its like."""
    return related_pod(name, {"color": "blue"}, side="podAffinity", key=ZONE_LABEL)


def rather_alone(name: str, _: int) -> Object:
    """Return a pod of SchedulingPreferredPodAntiAffinity."""
    return related_pod(
        name, {"color": "yellow"}, side="podAntiAffinity", key=HOSTNAME_LABEL, weight=1
    )


def low_priority(name: str, _: int) -> Object:
    """Return a pod to be preempted; four of them leave a tenth of a node."""
    return plain_pod(name, cpu="900m")


def preemptor(name: str, _: int) -> Object:
    """Return a pod that needs nearly a whole node, and may have it."""
    return plain_pod(name, cpu="3970m", priority_class="bench-preemptor")


def too_large(name: str, _: int) -> Object:
    """Return a pod that no node is large enough for, before all others in the queue."""
    return plain_pod(name, cpu="9", priority_class="bench-high")


def with_claim(name: str, number: int) -> Object:
    """Return a pod with a claim of its own."""
    pod = plain_pod(name)
    pod["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(number)}}
    ]
    return pod


def claim_name(number: int) -> str:
    """Return the name of the claim of the pod with this number."""
    return f"claim-{number}"


def replica(name: str, number: int) -> Object:
    """Return one of the replicas of some Deployments, which the default constraints spread."""
    app = DEPLOYMENTS[number % len(DEPLOYMENTS)]
    return owned_pod(name, {"app": app}, owner=app)


# A mixed cluster


def _app(shape: int) -> dict[str, str]:
    return {"app": app_name(shape)}


def app_name(shape: int) -> str:
    """Return the app that all pods of a shape belong to."""
    return f"app-{shape}"


# What the shapes ask for, in turn.
_TURNS: tuple[Callable[[str, int], Object], ...] = (
    lambda name, shape: plain_pod(name, labels=_app(shape)),
    lambda name, shape: spread_pod(
        name, _app(shape), key=ZONE_LABEL, action="DoNotSchedule", max_skew=1
    ),
    lambda name, shape: spread_pod(
        name, _app(shape), key=HOSTNAME_LABEL, action="ScheduleAnyway", max_skew=1
    ),
    lambda name, shape: related_pod(name, _app(shape), side="podAntiAffinity", key=HOSTNAME_LABEL),
    lambda name, shape: related_pod(name, _app(shape), side="podAffinity", key=ZONE_LABEL),
    lambda name, shape: related_pod(
        name, _app(shape), side="podAntiAffinity", key=HOSTNAME_LABEL, weight=100
    ),
    lambda name, shape: owned_pod(name, _app(shape), owner=app_name(shape)),
)
_OWNED_TURN = len(_TURNS) - 1
# The apps whose pods have a ReplicaSet.
OWNED_APPS = tuple(app_name(shape) for shape in range(SHAPES) if shape % len(_TURNS) == _OWNED_TURN)


def mixed(name: str, number: int) -> Object:
    """Return a pod of one of the shapes, which take turns."""
    shape = number % SHAPES
    return _TURNS[shape % len(_TURNS)](name, shape)


def _selector(labels: Mapping[str, str]) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": dict(labels)}}
