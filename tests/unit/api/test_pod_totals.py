"""Sums over a pod's containers: requests, limits, and what an in-place resize makes of them.

Every expectation here was computed by kube-scheduler v1.37.1's own functions.
"""

import msgspec
import pytest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_totals import total_limits, total_requests
from k8s_scheduler.api.quantity import nano

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = INFEASIBLE | {"reason": "Deferred"}


def container(name, requests=None, limits=None, **more):
    return {"name": name, "resources": {"requests": requests, "limits": limits}, **more}


def pod(*containers, init=(), status=None, **spec):
    raw = {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
        "status": status or {},
    }
    return msgspec.convert(raw, Pod)


def nanos(**amounts):
    return {name: nano(quantity) for name, quantity in amounts.items()}


# Limits


def test_limits_are_summed_by_the_rule_of_requests():
    amounts = ({"cpu": "100m"}, {"cpu": "200m"}, {"cpu": "1"}, {"cpu": "50m"})
    sidecar = {"restartPolicy": "Always"}

    def made(part):
        main, first, plain, second = ({part: amount} for amount in amounts)
        return pod(
            container("c", **main),
            init=[
                container("i0", **first, **sidecar),
                container("i1", **plain),
                container("i2", **second, **sidecar),
            ],
        )

    # The plain init container runs beside the first sidecar: 1200m > 100m + 200m + 50m.
    assert total_limits(made("limits")) == nanos(cpu="1200m")
    assert total_requests(made("requests")) == nanos(cpu="1200m")
    assert total_requests(made("limits")) == total_limits(made("requests")) == {}


def test_overhead_is_added_to_limits_only_where_there_is_one():
    made = pod(
        container("c", requests={"cpu": "1"}, limits={"cpu": "2", "memory": "0"}),
        overhead={"cpu": "250m", "memory": "1Mi", "example.com/x": "1"},
    )
    assert total_limits(made) == nanos(cpu="2250m", memory="0")
    assert total_requests(made) == nanos(cpu="1250m", memory="1Mi") | {"example.com/x": nano("1")}


def test_pod_level_limits_replace_sums_of_what_can_be_set_there():
    made = pod(
        container("c", limits={"cpu": "2", "memory": "1Mi", "example.com/x": "1"}),
        resources={
            "requests": {"memory": "5Mi"},
            "limits": {"cpu": "1", "hugepages-2Mi": "2Mi", "example.com/x": "7"},
        },
    )
    assert total_limits(made) == nanos(cpu="1", memory="1Mi") | {
        "example.com/x": nano("1"),
        "hugepages-2Mi": nano("2Mi"),
    }


# What was really given


def status_of(name, actual=None, allocated=None):
    resources = {"resources": {"requests": {"cpu": actual}}} if actual else {}
    return {
        "name": name,
        **resources,
        "allocatedResources": {"cpu": allocated} if allocated else None,
    }


GROWING_AND_SHRINKING = {
    "containerStatuses": [status_of("a", "1", "1"), status_of("b", "2", "2")],
}


def test_the_largest_sum_counts_not_the_sum_of_the_largest():
    made = pod(
        container("a", {"cpu": "2"}), container("b", {"cpu": "1"}), status=GROWING_AND_SHRINKING
    )
    assert total_requests(made, from_status=True) == nanos(cpu="3")


@pytest.mark.parametrize(
    ("status", "condition", "cpu"),
    [
        # Wanted: 2.
        (status_of("a", "3", "1"), None, "3"),
        (status_of("a", "1", "3"), None, "3"),
        (status_of("a", None, "3"), None, "3"),
        (status_of("a", "3", None), None, "3"),
        (status_of("a", "1", "1500m"), DEFERRED, "2"),
        (status_of("a", "1", "1500m"), INFEASIBLE, "1500m"),
        (status_of("a", None, "1"), INFEASIBLE, "1"),
        (status_of("a", "1", None), INFEASIBLE, "1"),
        (status_of("b", "5", "5"), None, "2"),
    ],
)
def test_one_container(status, condition, cpu):
    conditions = [condition] if condition else []
    made = pod(
        container("a", {"cpu": "2"}),
        status={"containerStatuses": [status], "conditions": conditions},
    )
    assert total_requests(made, from_status=True) == nanos(cpu=cpu)
    assert total_requests(made) == nanos(cpu="2")


def test_an_infeasible_wish_without_a_status_counts_nothing():
    made = pod(container("a", {"cpu": "2"}), status={"conditions": [INFEASIBLE]})
    assert total_requests(made, from_status=True) == {}


@pytest.mark.parametrize("restart_policy", [None, "Always"])
def test_init_containers_have_statuses_that_count(restart_policy):
    made = pod(
        container("a", {"cpu": "1"}),
        init=[container("i", {"cpu": "1"}, restartPolicy=restart_policy)],
        status={"initContainerStatuses": [status_of("i", "4", "4")]},
    )
    cpu = "5" if restart_policy else "4"
    assert total_requests(made, from_status=True) == nanos(cpu=cpu)


def test_sums_made_on_the_node_go_before_those_of_containers():
    made = pod(
        container("a", {"cpu": "2"}),
        status={
            "containerStatuses": [status_of("a", "9", "9")],
            "allocatedResources": {"cpu": "3"},
            "resources": {"requests": {"cpu": "2"}},
        },
    )
    assert total_requests(made, from_status=True) == nanos(cpu="3")


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"resources": {"requests": {"cpu": "4"}}}, "4"),
        ({"resources": {}, "allocatedResources": {"cpu": "5"}}, "5"),
        ({"allocatedResources": {"cpu": "5"}}, "3"),
        ({"resources": {"requests": {"cpu": "2"}}, "conditions": [INFEASIBLE]}, "2"),
    ],
)
def test_requests_of_the_pod_as_a_whole_can_be_resized_too(status, cpu):
    made = pod(container("a", {"cpu": "1"}), resources={"requests": {"cpu": "3"}}, status=status)
    assert total_requests(made, from_status=True) == nanos(cpu=cpu)
    assert total_requests(made) == nanos(cpu="3")
