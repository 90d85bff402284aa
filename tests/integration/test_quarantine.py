"""A pod that a leader was trying when it was killed: found by the next one, and tried last."""

import json
import sys
from pathlib import Path

from testbed.daemon import Daemon
from testbed.takeover.load import large_nodes
from testbed.takeover.replicas import Times, start_replica, wait_for_leader
from testbed.waiting import eventually
from testbed.workload import make_pod
from tests.integration.daemons import SCHEDULER, bound, events

TIMES = Times(lease_seconds=6.0, renew_seconds=4.5, retry_seconds=0.5)
PROGRAM = Path(__file__).with_name("endless_program.py")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/k8s-scheduler"
NOTE = "k8s-scheduler.io/pods-being-tried"


def marked(sandbox):
    annotations = sandbox.client.get(LEASE)["metadata"].get("annotations") or {}
    return json.loads(annotations.get(NOTE, "{}"))


def binding_order(sandbox):
    return [
        entry.name
        for entry in sandbox.bed.audit_entries()
        if entry.namespace == sandbox.namespace
        and entry.subresource == "binding"
        and entry.status == 201
    ]


def test_what_the_killed_leader_was_trying_is_tried_last_by_the_next(sandbox):
    large_nodes(sandbox, 3)
    first = Daemon(
        sandbox.bed,
        name="endless",
        program=(sys.executable, str(PROGRAM)),
        flags=TIMES.flags(),
    ).start()
    second = None
    try:
        wait_for_leader(first)
        deadly = make_pod("deadly", scheduler_name=SCHEDULER, labels={"endless": "yes"})
        sandbox.create_pods([deadly])
        uid = sandbox.pods()["deadly"]["metadata"]["uid"]
        # Its event loop stands still: only a thread can have written that.
        eventually(lambda: uid in marked(sandbox), 20, "the pod being tried is marked")
        assert marked(sandbox)[uid]["pod"] == f"{sandbox.namespace}/deadly"
        first.kill()
        others = [f"other-{i}" for i in range(3)]
        sandbox.create_pods([make_pod(name, scheduler_name=SCHEDULER) for name in others])
        second = start_replica(sandbox.bed, TIMES)
        eventually(lambda: "deadly" in bound(sandbox), 60, "the pod is bound after all")
        assert binding_order(sandbox)[-1] == "deadly"
        assert sorted(binding_order(sandbox)) == sorted([*others, "deadly"])
        eventually(lambda: events(sandbox, "Quarantined"), 10, "its users are told")
        ((name, note),) = events(sandbox, "Quarantined")
        assert (name, "ended once while it tried this pod" in note) == ("deadly", True)
        eventually(lambda: not marked(sandbox), 10, "the mark is removed")
        assert second.stop() == 0
        assert "Traceback" not in second.log.read_text(), second.log_tail()
    finally:
        for daemon in (first, second):
            if daemon is not None and daemon.pid is not None:
                daemon.kill()
