"""Helpers of the tests that run the real daemon."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.bed import Bed
from testbed.client import Object
from testbed.daemon import Daemon
from testbed.options import API_SERVER, CONTROLLER_MANAGER
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import NODES

SCHEDULER = "k8s-scheduler"
_NOT_READY = "node.kubernetes.io/not-ready"
_numbers = itertools.count()


@contextmanager
def running(bed: Bed, **options) -> Iterator[Daemon]:
    """Run a daemon on the bed for as long as the body; its end must be clean.

    Every decision from a kept evaluation is made again from scratch.
    """
    flags = (*options.pop("flags", ("--leader-elect=false",)), "--verify-cache=1")
    daemon = Daemon(bed, name=f"k8s-scheduler-{next(_numbers)}", flags=flags, **options).start()
    try:
        yield daemon
    except BaseException as error:
        error.add_note(daemon.log_tail())
        if daemon.pid is not None:
            daemon.kill()
        raise
    if daemon.pid is not None:
        assert daemon.stop() == 0, daemon.log_tail()
    text = daemon.log.read_text()
    assert "Traceback" not in text, text[-3000:]
    # What the audit of parked pods says; it looks at one of them each second.
    assert "fits and was not woken" not in text, text[-3000:]
    assert "a kept evaluation was stale" not in text, text[-3000:]


@contextmanager
def api_server_away(bed: Bed, *, kill: bool) -> Iterator[None]:
    """Take the API server away for as long as the body, and bring it back.

    The controller manager is restarted with it: by itself it takes up to a minute to notice, and
    the next test would wait for its service account.
    """
    (bed.kill if kill else bed.stop)(API_SERVER)
    try:
        yield
    finally:
        bed.start(API_SERVER)
        bed.restart(CONTROLLER_MANAGER)


def refusals(daemon: Daemon) -> list[str]:
    """Return what the daemon said about rights that it does not have.

    The metric would not do: an event about a pod whose namespace is on its way out is a 403 too.
    """
    lines = daemon.log.read_text().splitlines()
    return [line for line in lines if "missing permission" in line]


def no_complaints(daemon: Daemon) -> None:
    """Assert that the rights did, and that no pod was parked that could have been placed."""
    assert refusals(daemon) == []
    assert daemon.metrics()["k8s_scheduler_parked_but_feasible_total"] == 0


def stand_up(sandbox: Sandbox, *nodes: Object) -> None:
    """Create nodes and wait until the controller has lifted the taint that new ones have."""
    sandbox.create_nodes(nodes)
    names = {node["metadata"]["name"] for node in nodes}

    def fresh() -> list[str]:
        return [
            node["metadata"]["name"]
            for node in sandbox.client.list(NODES)
            if node["metadata"]["name"] in names
            and any(t["key"] == _NOT_READY for t in node["spec"].get("taints") or ())
        ]

    eventually(lambda: not fresh(), 30, "the nodes are ready")


def node_of(sandbox: Sandbox, name: str) -> str | None:
    return sandbox.pods()[name]["spec"].get("nodeName")


def nominated(sandbox: Sandbox, name: str) -> str | None:
    """Return the node that the pod's status names."""
    return sandbox.pods()[name]["status"].get("nominatedNodeName")


def bound(sandbox: Sandbox) -> dict[str, str]:
    """Return pod -> node of all bound pods."""
    return {
        name: pod["spec"]["nodeName"]
        for name, pod in sandbox.pods().items()
        if pod["spec"].get("nodeName")
    }


def wait_bound(sandbox: Sandbox, count: int, timeout_seconds: float = 60.0) -> dict[str, str]:
    eventually(lambda: len(bound(sandbox)) >= count, timeout_seconds, f"{count} pods bound")
    return bound(sandbox)


def events(sandbox: Sandbox, reason: str) -> list[tuple[str, str]]:
    """Return (pod, note) of the events with this reason."""
    items = sandbox.client.list(f"/apis/events.k8s.io/v1/namespaces/{sandbox.namespace}/events")
    return [(e["regarding"]["name"], e["note"]) for e in items if e["reason"] == reason]


def condition(sandbox: Sandbox, name: str, kind: str = "PodScheduled") -> dict | None:
    """Return a condition of the pod."""
    for found in sandbox.pods()[name]["status"].get("conditions") or ():
        if found["type"] == kind:
            return found
    return None


def says(sandbox: Sandbox, name: str, key: str) -> str:
    """Return the reason or the message of the pod's PodScheduled condition; empty without one."""
    return str((condition(sandbox, name) or {}).get(key, ""))


def no_node_is_overfilled(sandbox: Sandbox, *, cpu_per_node: int, cpu_per_pod: int) -> None:
    load: dict[str, int] = {}
    for node in bound(sandbox).values():
        load[node] = load.get(node, 0) + cpu_per_pod
    assert max(load.values(), default=0) <= cpu_per_node, load
