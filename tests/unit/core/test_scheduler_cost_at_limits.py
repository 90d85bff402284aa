"""A pod at all limits at once costs about as much as pods at one limit each, together.

Limits bound counts; a cost that grows with the product of two counts would make a pod at both of
them far dearer than two pods at one each.
"""

import time
from itertools import count

import msgspec
import pytest

from k8s_scheduler.api.config.limits import PodLimits
from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_counts import pod_excess
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged, Schedule
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.unit.core.harness import only

NODES = 100
LIMITS = PodLimits()
KEYS = ("kubernetes.io/hostname", "zone", "rack")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def expression(key, *values, operator="NotIn"):
    return {"key": key, "operator": operator, "values": list(values)}


def terms(spec):
    spec["affinity"]["podAntiAffinity"] = {
        PREFERRED: [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "topologyKey": KEYS[i % 3],
                    "labelSelector": {
                        "matchExpressions": [expression("app", f"v{i}", operator="In")]
                    },
                },
            }
            for i in range(LIMITS.affinity_terms)
        ]
    }


def constraints(spec):
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 5,
            "topologyKey": KEYS[1 + i % 2],
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [expression("app", f"w{i}", operator="In")]},
        }
        for i in range(LIMITS.topology_spread_constraints)
    ]


def selectors(spec):
    names = [f"host-{i}" for i in range(LIMITS.node_selector_values - 1)]
    spec["affinity"]["nodeAffinity"] = {
        REQUIRED: {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        expression(KEYS[0], *names),
                        *(
                            expression(f"k{i}", operator="DoesNotExist")
                            for i in range(LIMITS.node_selector_expressions - 2)
                        ),
                    ]
                }
            ]
        }
    }


def tolerations(spec):
    spec["tolerations"] = [
        {"key": f"k{i}", "operator": "Exists"} for i in range(LIMITS.tolerations)
    ]


def ports(spec):
    spec["containers"][0]["ports"] = [{"hostPort": 1 + i} for i in range(LIMITS.host_ports)]


def containers(spec):
    spec["containers"] += [{"image": f"i{i}"} for i in range(LIMITS.containers - 1)]


def volumes(spec):
    spec["volumes"] = [{"gcePersistentDisk": {"pdName": f"d{i}"}} for i in range(LIMITS.volumes)]


AXES = (terms, constraints, selectors, tolerations, ports, containers, volumes)


@pytest.fixture(scope="module")
def core():
    found = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
    for i in range(NODES):
        labels = {KEYS[0]: f"n{i}", KEYS[1]: f"z{i % 3}", KEYS[2]: f"r{i % 9}"}
        raw = {
            "metadata": {"name": f"n{i}", "labels": labels},
            "spec": {"taints": [{"key": "t", "value": str(i % 7), "effect": "PreferNoSchedule"}]},
            "status": {"allocatable": {"cpu": "64", "pods": "110"}},
        }
        found.handle(NodeChanged(0.0, f"n{i}", msgspec.convert(raw, Node)))
    return found


numbers = count()


def cpu_seconds(core, axes):
    """Return what it costs to decide for a pod that is at some limits."""
    name = f"p{next(numbers)}"
    spec = {"affinity": {}, "containers": [{"image": "i"}]}
    for axis in axes:
        axis(spec)
    pod = msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Pod)
    assert pod_excess(pod, LIMITS) == ()
    core.handle(PodChanged(0.0, name, pod))
    started = time.process_time()
    out = core.handle(Schedule(0.0, 1))
    seconds = time.process_time() - started
    assert len(only(Bind, out)) == 1
    core.handle(PodChanged(0.0, name, None))
    return seconds


def test_limits_do_not_multiply(core):
    cpu_seconds(core, AXES)
    single = sum(cpu_seconds(core, (axis,)) for axis in AXES)
    together = min(cpu_seconds(core, AXES) for _ in range(2))
    assert together < 3 * single
