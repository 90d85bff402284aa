"""Killed again and again at random moments: a new process goes on from the API server alone.

Preemptions, late binding of volumes, a permit and plain pods all at once, on nodes that hold just
what is wanted in the end.
"""

import random
import sys
import time
from collections import Counter

import pytest

from testbed.daemon import Daemon
from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import HOSTNAME_LABEL, make_node
from tests.integration import doorkeeper
from tests.integration.daemons import SCHEDULER, nominated, running, stand_up
from tests.integration.situations import PRIORITY_CLASSES, priority_class, waiting
from tests.integration.volume_situations import (
    BY_HAND,
    VOLUMES,
    claim_body,
    storage_class,
    volume_body,
)

NODES = ("a", "b", "c")
DEATHS = 5
WAITING = 'scheduler_goroutines{operation="binding"}'
WITH_A_DOORKEEPER = """
    plugins:
      permit:
        enabled:
          - name: Doorkeeper
"""


@pytest.fixture
def classes(kwok_sandbox):
    for name, value in (("crash-low", 10), ("crash-high", 1000)):
        kwok_sandbox.create_cluster_object(PRIORITY_CLASSES, priority_class(name, value).body)


def pod(name, cpu, priority, **more):
    found = waiting(requests={"cpu": cpu}, priorityClassName=priority, **more)
    found["metadata"]["name"] = name
    found["spec"]["schedulerName"] = SCHEDULER
    return found


def labelled(found, **labels):
    found["metadata"].setdefault("labels", {}).update(labels)
    return found


def mortal(bed):
    """Return a daemon with a plugin that makes pods wait for a permit."""
    return Daemon(
        bed,
        name="mortal",
        configuration=shipped_configuration().rstrip() + WITH_A_DOORKEEPER,
        flags=("--leader-elect=false",),
        program=(sys.executable, doorkeeper.__file__),
    )


def make_volumes(sandbox):
    """Make a volume for each node, and a claim for each; return the names of the claims."""
    late = storage_class(sandbox.namespace, BY_HAND)
    sandbox.create_cluster_object(late.collection, late.body)
    claims = []
    for node in NODES:
        name = f"{sandbox.namespace}-{node}"
        body = volume_body(name, class_name=sandbox.namespace, only_on=node)
        sandbox.create_cluster_object(VOLUMES, body)
        claims.append(f"claim-{node}")
        path = f"{sandbox.path}/persistentvolumeclaims"
        sandbox.client.create(path, claim_body(claims[-1], sandbox.namespace))
    return claims


def using(claim):
    return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]


def node_names(sandbox):
    return {n: p["spec"].get("nodeName") for n, p in sandbox.pods().items()}


def test_a_new_process_goes_on_where_the_last_one_was_killed(kwok_sandbox, classes):
    sandbox = kwok_sandbox
    bed, rng = sandbox.bed, random.Random(20)
    stand_up(sandbox, *(make_node(name, cpu="4500m") for name in NODES))
    # Three low ones on each node; the high ones need two of them to leave, the rest fits beside.
    with running(bed):
        sandbox.create_pods([pod(f"low-{i}", "1", "crash-low") for i in range(9)])
        eventually(lambda: all(node_names(sandbox).values()), 60, "the low ones are bound")
    claims = make_volumes(sandbox)
    high = [pod(f"high-{n}", "3", "crash-high", nodeSelector={HOSTNAME_LABEL: n}) for n in NODES]
    stored = [
        pod(f"stored-{i}", "100m", "crash-high", volumes=using(c)) for i, c in enumerate(claims)
    ]
    small = [pod(f"small-{i}", "100m", "crash-low") for i in range(6)]
    at_the_door = labelled(pod("waits", "100m", "crash-low"), door="600")
    sandbox.create_pods([*high, *stored, *small, at_the_door])
    wanted = {p["metadata"]["name"] for p in (*high, *stored, *small)}
    daemon = mortal(bed)
    for _ in range(DEATHS):
        daemon.start(wait=False)
        time.sleep(rng.uniform(0.8, 2.5))
        daemon.kill()
    daemon.start()
    eventually(lambda: all(node_names(sandbox).get(name) for name in wanted), 120, "all are bound")
    # The one at the door waits again, with its node named, until somebody lets it in.
    eventually(lambda: daemon.metrics()[WAITING] == 1, 30, "it waits at the door")
    eventually(lambda: nominated(sandbox, "waits"), 30, "its status names a node")
    sandbox.create_pods([labelled(pod("opens", "0", "crash-low"), says="allow")])
    eventually(lambda: node_names(sandbox)["waits"], 30, "it is let in")
    assert daemon.stop() == 0
    found = sandbox.pods()
    # High ones are where they were asked to be, volumes where they can be reached.
    for node in NODES:
        assert found[f"high-{node}"]["spec"]["nodeName"] == node
        assert found[f"high-{node}"]["status"].get("nominatedNodeName", "") in ("", node)
    for i, _ in enumerate(claims):
        claim = sandbox.client.get(f"{sandbox.path}/persistentvolumeclaims/{claims[i]}")
        node = found[f"stored-{i}"]["spec"]["nodeName"]
        assert claim["spec"]["volumeName"] == f"{sandbox.namespace}-{node}"
    # Two had to leave for each high one, and no more; nobody was bound twice, or one too many.
    stayed = [name for name in found if name.startswith("low-") and not _leaves(found[name])]
    assert len(stayed) == 3
    load = Counter()
    for each in found.values():
        if not _leaves(each) and each["spec"].get("nodeName"):
            load[each["spec"]["nodeName"]] += _milli(each)
    assert max(load.values()) <= 4500, load
    bindings = Counter(
        entry.target_uid
        for entry in bed.audit_entries()
        if entry.namespace == sandbox.namespace and entry.is_successful_binding
    )
    assert set(bindings.values()) == {1}


def _leaves(found):
    return "deletionTimestamp" in found["metadata"]


def _milli(found):
    cpu = found["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
