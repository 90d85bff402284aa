"""Helpers of the tests that run the real daemon."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.options import API_SERVER, CONTROLLER_MANAGER
from testbed.sandbox import Sandbox
from testbed.waiting import eventually

SCHEDULER = "k8s-scheduler"
_numbers = itertools.count()


@contextmanager
def running(bed: Bed, **options) -> Iterator[Daemon]:
    """Run a daemon on the bed for as long as the body; its end must be clean."""
    daemon = Daemon(bed, name=f"k8s-scheduler-{next(_numbers)}", **options).start()
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


def node_of(sandbox: Sandbox, name: str) -> str | None:
    return sandbox.pods()[name]["spec"].get("nodeName")


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


def condition(sandbox: Sandbox, name: str) -> dict | None:
    """Return the pod's PodScheduled condition."""
    for found in sandbox.pods()[name]["status"].get("conditions") or ():
        if found["type"] == "PodScheduled":
            return found
    return None


def no_node_is_overfilled(sandbox: Sandbox, *, cpu_per_node: int, cpu_per_pod: int) -> None:
    load: dict[str, int] = {}
    for node in bound(sandbox).values():
        load[node] = load.get(node, 0) + cpu_per_pod
    assert max(load.values(), default=0) <= cpu_per_node, load
