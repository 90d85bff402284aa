"""The daemon through a proxy that spoils requests: nothing lost, nothing twice, and it says so."""

import itertools
import re
from contextlib import contextmanager

import pytest

from k8s_scheduler.core.messages.incoming import BindResult
from k8s_scheduler.core.messages.recording import read_segment
from testbed.installation import install
from testbed.proxy.certificates import new_identity
from testbed.proxy.faults import Fault, RequestClass, Rule
from testbed.proxy.server import FaultProxy
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, bound, no_node_is_overfilled, running, wait_bound

BINDING = frozenset({RequestClass.BINDING})
WATCH = frozenset({RequestClass.WATCH})


@pytest.fixture
def proxy(sandbox):
    install(sandbox.bed)
    with FaultProxy(sandbox.bed, seed=1) as standing:
        yield standing


def bindings_by_uid(sandbox):
    """Return uid -> how many Bindings the API server has carried out."""
    counts = {}
    for entry in sandbox.bed.audit_entries():
        if entry.namespace == sandbox.namespace and entry.is_successful_binding:
            counts[entry.target_uid] = counts.get(entry.target_uid, 0) + 1
    return counts


def recorded_results(tape):
    return [m for m in read_segment(tape.read_bytes()).messages if isinstance(m, BindResult)]


@contextmanager
def running_through(sandbox, proxy, folder):
    """Run a daemon whose only way to the API server is the proxy; yield it, and where it logs in.

    Whatever the faults were: every Binding was carried out once, and the daemon knows of it.
    """
    tape, login = folder / "tape", folder / "login"
    flags = ("--leader-elect=false", f"--record={tape}")
    with running(sandbox.bed, flags=flags, kubeconfig=proxy.log_in(login)) as daemon:
        yield daemon, login
    pods = {pod["metadata"]["uid"]: pod for pod in sandbox.pods().values()}
    counts = bindings_by_uid(sandbox)
    assert set(counts) == set(pods)
    assert set(counts.values()) == {1}
    on_nodes = {uid: pod["spec"]["nodeName"] for uid, pod in pods.items()}
    known = [m for m in read_segment(tape.read_bytes()).messages if isinstance(m, BindResult)]
    assert {m.uid: m.node for m in known if m.bound} == on_nodes
    assert len([m for m in known if m.bound]) == len(pods)


def arrive(sandbox, prefix, count):
    pods = [make_pod(f"{prefix}-{i}", cpu="1", scheduler_name=SCHEDULER) for i in range(count)]
    return sandbox.create_pods(pods)


UNKNOWNS = 'k8s_scheduler_bind_attempts_total{result="unknown"}'
UNKNOWN = "has an unknown outcome, reading the pod"
# What happens to the Bindings of some pods, and what an operator reads about it. An answer that
# is late, or whose body can't be read, is an answer: the status says all that a bind asks.
BIND_FAULTS = {
    Fault.LATENCY: "",
    Fault.SLOW: "",
    Fault.TRUNCATED: "",
    Fault.GARBAGE: "",
    Fault.CONFLICT: "failed (conflict)",
    Fault.THROTTLED: "API server asks to slow down, bind of pod",
    Fault.EXPIRED: "was refused: Unauthorized",
    Fault.INTERNAL: UNKNOWN,
    Fault.UNAVAILABLE: UNKNOWN,
    Fault.TIMEOUT_AFTER: UNKNOWN,
    Fault.RESET: UNKNOWN,
    Fault.RESET_AFTER: UNKNOWN,
    Fault.CUT: UNKNOWN,
    Fault.SILENCE: UNKNOWN,
    Fault.SILENCE_AFTER: UNKNOWN,
}


def test_bindings_that_meet_faults_are_carried_out_once(sandbox, proxy, tmp_path):
    sandbox.create_nodes([make_node(f"n{i}", cpu="60") for i in range(4)])
    with running_through(sandbox, proxy, tmp_path) as (daemon, _):
        made = 0
        for fault, line in BIND_FAULTS.items():
            # Longer than a write may take, where it is to be given up.
            seconds = 5.0 if "silence" in fault else 0.3
            proxy.set_rules([Rule(fault=fault, classes=BINDING, limit=3, seconds=seconds)])
            made += len(arrive(sandbox, f"f{made}", 8))
            wait_bound(sandbox, made, timeout_seconds=30)
            assert proxy.journal.counts()[fault] == 3, fault
            assert line in daemon.log.read_text(), fault
        least = 3 * list(BIND_FAULTS.values()).count(UNKNOWN)
        eventually(lambda: daemon.metrics()[UNKNOWNS] >= least, 10, "silence is noticed")
    no_node_is_overfilled(sandbox, cpu_per_node=60, cpu_per_pod=1)


def test_504_after_the_write_unreserves_nobody_who_is_bound(sandbox, proxy, tmp_path):
    """One in twenty Bindings is carried out and answered with 504."""
    sandbox.create_nodes([make_node(f"n{i}", cpu="40") for i in range(10)])
    with running_through(sandbox, proxy, tmp_path):
        proxy.set_rules([Rule(fault=Fault.TIMEOUT_AFTER, probability=0.05, classes=BINDING)])
        arrive(sandbox, "p", 400)
        wait_bound(sandbox, 400, timeout_seconds=60)
    struck = [entry for entry in proxy.journal.faults() if entry.upstream_status == 201]
    assert len(struck) >= 10
    # Every one of them was in fact bound, and the core was never told anything else.
    results = recorded_results(tmp_path / "tape")
    assert [result for result in results if not result.bound] == []
    no_node_is_overfilled(sandbox, cpu_per_node=40, cpu_per_pod=1)


# Each kind's watch meets another fault when it is made anew; with the reason that the log gives.
# Only pods, nodes and namespaces change in this test: theirs are the faults that need an event.
WATCH_FAULTS = {
    "pods": (Fault.CUT, "connection_lost"),
    "nodes": (Fault.GARBAGE, "malformed"),
    "namespaces": (Fault.TRUNCATED, "malformed"),
    "services": (Fault.TIMEOUT_AFTER, "504"),
    "replicasets": (Fault.THROTTLED, "429"),
    "statefulsets": (Fault.INTERNAL, "500"),
    "storageclasses": (Fault.UNAVAILABLE, "503"),
    "csinodes": (Fault.CONFLICT, "409"),
    "csidrivers": (Fault.EXPIRED, "401"),
    "persistentvolumes": (Fault.RESET, "connection_lost"),
    "volumeattachments": (Fault.SILENCE, "connection_lost"),
    "persistentvolumeclaims": (Fault.LATENCY, ""),
    "replicationcontrollers": (Fault.RESET_AFTER, "connection_lost"),
}


def test_watches_that_meet_faults_lose_nothing(sandbox, proxy, tmp_path):
    sandbox.create_nodes([make_node("n1", cpu="60"), make_node("n2", cpu="60")])
    # A GET is sent a second time by itself when its connection is lost.
    rules = [
        Rule(fault=fault, classes=WATCH, within=f"/{kind}?", limit=2, seconds=0.5)
        for kind, (fault, _) in WATCH_FAULTS.items()
    ]
    with running_through(sandbox, proxy, tmp_path) as (daemon, _):
        proxy.set_rules(rules)
        proxy.drop_connections()
        arrive(sandbox, "p", 8)
        wanted = {str(fault) for fault, _ in WATCH_FAULTS.values()}
        times = itertools.count()

        def all_struck():
            for path in ("/api/v1/nodes/n1", sandbox.path):
                labels = {"changed": f"{next(times)}-times"}
                sandbox.client.patch(path, {"metadata": {"labels": labels}})
            assert wanted - set(proxy.journal.counts()) == set()
            return True

        eventually(all_struck, 40, "all faults have struck", interval_seconds=0.3)
        wait_bound(sandbox, 8)
        for kind, (fault, reason) in WATCH_FAULTS.items():
            line = re.compile(f'resource="{kind}".*reason="{reason}"' if reason else "")
            eventually(
                lambda line=line: line.search(daemon.log.read_text()), 20, f"{fault} of {kind}"
            )
        proxy.set_rules([Rule(fault=Fault.SLOW, classes=WATCH, seconds=0.2)])
        arrive(sandbox, "q", 4)
        wait_bound(sandbox, 12)


def test_connections_that_are_accepted_and_never_answered(sandbox, proxy, tmp_path):
    sandbox.create_nodes([make_node("n1", cpu="60")])
    with running_through(sandbox, proxy, tmp_path):
        connections = frozenset({RequestClass.CONNECTION})
        proxy.set_rules([Rule(fault=Fault.HALF_OPEN, classes=connections, limit=6, seconds=30)])
        proxy.drop_connections()
        arrive(sandbox, "p", 5)
        wait_bound(sandbox, 5, timeout_seconds=60)
        assert proxy.journal.counts()[Fault.HALF_OPEN] == 6


def test_a_token_that_expired_and_a_certificate_that_changed(sandbox, proxy, tmp_path):
    """Both are said, and both are over when the kubeconfig is right again."""
    sandbox.create_nodes([make_node("n1", cpu="60")])
    with running_through(sandbox, proxy, tmp_path) as (daemon, login):
        proxy.expire(login)
        proxy.drop_connections()
        arrive(sandbox, "expired", 3)
        eventually(
            lambda: "API server does not accept the credentials" in daemon.log.read_text(),
            20,
            "it says that its token is refused",
        )
        assert bound(sandbox) == {}
        proxy.log_in(login)
        wait_bound(sandbox, 3)
        proxy.rotate(new_identity(tmp_path / "new"))
        arrive(sandbox, "rotated", 3)
        eventually(
            lambda: "the server's certificate is not trusted" in daemon.log.read_text(),
            20,
            "it says that it does not trust the certificate",
        )
        assert len(bound(sandbox)) == 3
        proxy.log_in(login)
        wait_bound(sandbox, 6)
    assert {str(fault) for fault in (Fault.EXPIRED, Fault.ROTATED)} <= set(proxy.journal.counts())
