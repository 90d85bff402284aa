"""What pods take and nodes offer, as kube-scheduler counts it."""

import itertools

import msgspec
import pytest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import (
    _worked_out,
    allocatable,
    is_scalar,
    is_tracked,
    pod_requests,
)
from tests.builders import make_pod

MI = 1024 * 1024


def amounts(pod, **options):
    return dict(pod_requests(pod.obj(), **options).amounts)


def test_containers_add_up():
    pod = make_pod("p").request(cpu="100m", memory="1Mi").request(cpu="200m", unknown="1")
    assert amounts(pod) == {"cpu": 300, "memory": MI}


def test_extended_resources_count_and_unknown_names_do_not():
    pod = make_pod("p").request(**{"example.com__gpu": "2", "odd": "5", "hugepages_2Mi": "4Mi"})
    assert amounts(pod) == {"example.com/gpu": 2, "hugepages-2Mi": 4 * MI}


def test_init_containers_count_by_their_peak():
    pod = make_pod("p").request(cpu="100m").init(cpu="1").init(cpu="500m")
    assert amounts(pod) == {"cpu": 1000}


def test_sidecars_run_beside_everything_after_them():
    pod = (
        make_pod("p")
        .request(cpu="100m")
        .init(restartable=True, cpu="200m")
        .init(cpu="1")
        .init(restartable=True, cpu="50m")
    )
    # The plain init container runs beside the first sidecar: 1200m > 100m + 200m + 50m.
    assert amounts(pod) == {"cpu": 1200}


def test_pod_level_requests_replace_sums_and_overhead_comes_on_top():
    pod = make_pod("p").request(cpu="2", memory="1Mi").pod_level(cpu="1").overhead(cpu="250m")
    assert amounts(pod) == {"cpu": 1250, "memory": MI}


def test_defaults_count_for_scores_only():
    requests = pod_requests(make_pod("p").request().request(cpu="0").obj())
    assert requests.amounts == ()
    assert requests.non_zero_milli_cpu == 100
    assert requests.non_zero_memory_bytes == 2 * 200 * MI


def resized(**condition):
    raw = make_pod("p").request(cpu="2").raw
    raw["status"] = {
        "containerStatuses": [
            {
                "name": "c0",
                "resources": {"requests": {"cpu": "1"}},
                "allocatedResources": {"cpu": "1500m"},
            }
        ],
        "conditions": [condition] if condition else [],
    }
    return msgspec.convert(raw, Pod)


@pytest.mark.parametrize(
    ("condition", "from_status", "cpu"),
    [
        ({}, True, 2000),
        ({}, False, 2000),
        ({"type": "PodResizePending", "status": "True", "reason": "Infeasible"}, True, 1500),
        ({"type": "PodResizePending", "status": "True", "reason": "Deferred"}, True, 2000),
    ],
)
def test_a_resize_counts_the_largest_unless_it_is_infeasible(condition, from_status, cpu):
    assert pod_requests(resized(**condition), from_status=from_status).amount("cpu") == cpu


def test_allocatable_in_the_schedulers_units():
    offered = allocatable({"cpu": "1900m", "memory": "1Ki", "pods": "110", "odd": "1"})
    assert offered == {"cpu": 1900, "memory": 1024, "pods": 110}


@pytest.mark.parametrize(
    ("name", "tracked"),
    [
        ("cpu", True),
        ("ephemeral-storage", True),
        ("nvidia.com/gpu", True),
        ("hugepages-1Gi", True),
        ("attachable-volumes-csi-x", True),
        ("scheduling.kubernetes.io/x", True),
        ("requests.nvidia.com/gpu", False),
        ("storage", False),
        ("bad.com/", False),
    ],
)
def test_tracked_names(name, tracked):
    assert is_tracked(name) is tracked
    assert is_scalar(name) is (tracked and name not in ("cpu", "ephemeral-storage"))


REQUESTS = ({}, {"cpu": "100m"}, {"cpu": 1, "memory": "1Gi"}, {"example.com/gpu": "2"}, None)


@pytest.mark.parametrize("from_status", [False, True])
def test_what_is_kept_of_equal_requests_is_what_working_it_out_gives(from_status):
    seen = set()
    for first, second, extra in itertools.product(REQUESTS, REQUESTS, range(5)):
        lists = [
            {"name": n, "resources": {"requests": r}} for n, r in (("a", first), ("b", second))
        ]
        spec = {"containers": lists}
        status = {}
        if extra == 1:
            spec["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
        elif extra == 2:
            spec["overhead"] = {"cpu": "7m"}
        elif extra == 3:
            spec["resources"] = {"requests": {"cpu": "9"}}
        elif extra == 4:
            given = {"requests": {"cpu": "5"}}
            status["containerStatuses"] = [{"name": "a", "resources": given}]
        pod = msgspec.convert({"metadata": {}, "spec": spec, "status": status}, Pod)
        found = pod_requests(pod, from_status=from_status)
        assert found == _worked_out(pod, from_status=from_status)
        seen.add(found)
    assert len(seen) > 30
