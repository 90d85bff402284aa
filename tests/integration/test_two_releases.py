"""Two releases of different Leases that serve one schedulerName, on the real API server."""

import json

import pytest

from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, refusals, running, wait_bound

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
REFUSE = """
---
apiVersion: k8s-scheduler.io/v1alpha1
kind: SchedulerExtras
rivals:
  action: Refuse
  namespaces: [kube-system]
"""


# The shipped Role is for one Lease; the second release has its own, as its chart would bring it.
@pytest.fixture
def second(sandbox):
    """Return the name of another Lease that the shipped account may use as well."""
    name = f"{sandbox.namespace}-second"
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    rule |= {"resourceNames": [name], "verbs": ["get", "update", "watch"]}
    metadata = {"name": name, "namespace": "kube-system"}
    sandbox.client.create(
        f"{rbac}/roles",
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
    )
    account = {"kind": "ServiceAccount", "name": "k8s-scheduler", "namespace": "kube-system"}
    sandbox.client.create(
        f"{rbac}/rolebindings",
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [account],
        },
    )
    sandbox.remember(f"{rbac}/rolebindings/{name}")
    sandbox.remember(f"{rbac}/roles/{name}")
    sandbox.remember(f"{LEASES}/{name}")
    return name


def flags(lease=SCHEDULER):
    return (
        "--leader-elect=true",
        "--leader-elect-resource-namespace=kube-system",
        f"--leader-elect-resource-name={lease}",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=500ms",
    )


def leads(daemon):
    return daemon.get("/readyz")[1].strip().splitlines()[-1] == "role: leader"


def rivals(daemon):
    return daemon.metrics().get("k8s_scheduler_rivals", 0.0)


def said(sandbox, lease):
    """Return the notes of the events about a Lease."""
    return [
        event["note"]
        for event in sandbox.client.list(EVENTS)
        if event["reason"] == "SchedulerNameShared" and event["regarding"]["name"] == lease
    ]


def test_the_second_leads_and_both_warn_of_each_other(sandbox, second):
    bed = sandbox.bed
    with running(bed, flags=flags()) as first:
        eventually(lambda: leads(first), 15, "the first one leads")
        lease = sandbox.client.get(f"{LEASES}/{SCHEDULER}")
        note = json.loads(lease["metadata"]["annotations"]["k8s-scheduler.io/served-names"])
        assert note == {
            "by": lease["spec"]["holderIdentity"],
            "schedulerNames": [SCHEDULER],
        }
        with running(bed, flags=flags(second)) as other:
            eventually(lambda: leads(other), 15, "the second one leads as well")
            eventually(lambda: rivals(other) == 1, 10, "the second one knows of the first")
            eventually(lambda: said(sandbox, second), 10, "it says so in an Event")
            holder = lease["spec"]["holderIdentity"]
            (note,) = said(sandbox, second)
            assert note == (
                "Another Lease serves schedulerNames of ours, both decide about the same pods: "
                f"Lease kube-system/{SCHEDULER} (holder {holder}) serves {SCHEDULER}"
            )
            text = other.log.read_text()
            assert "Another Lease serves schedulerNames of ours" in text
            assert f"kube-system/{SCHEDULER}" in text
            assert other.get("/readyz")[0] == 200
            assert refusals(first) == refusals(other) == []


@pytest.mark.parametrize("gently", [True, False], ids=["given back", "run out"])
def test_who_refuses_leads_only_when_the_others_lease_is(sandbox, second, gently):
    bed = sandbox.bed
    sandbox.create_nodes([make_node("n1", cpu="100")])
    configuration = shipped_configuration() + REFUSE
    with running(bed, flags=flags()) as first:
        eventually(lambda: leads(first), 15, "the first one leads")
        with running(bed, flags=flags(second), configuration=configuration) as other:
            words = "Not leading: another Lease serves schedulerNames of ours"
            eventually(lambda: words in other.log.read_text(), 10, "the second one refuses")
            eventually(lambda: rivals(other) == 1, 10, "it has seen the other live")
            assert other.get("/readyz")[0] == 200
            assert not leads(other)
            sandbox.create_pods([make_pod("a", scheduler_name=SCHEDULER)])
            wait_bound(sandbox, 1)
            assert (
                other.metrics().get('k8s_scheduler_bind_attempts_total{result="success"}', 0) == 0
            )
            if gently:
                assert first.stop() == 0
            else:
                first.kill()
            eventually(lambda: leads(other), 20, "the second one leads")
            sandbox.create_pods([make_pod("b", scheduler_name=SCHEDULER)])
            wait_bound(sandbox, 2)


def test_without_an_election_it_looks_as_well(sandbox):
    bed = sandbox.bed
    configuration = shipped_configuration() + REFUSE
    with running(bed, flags=flags()) as first:
        eventually(lambda: leads(first), 15, "the first one leads")
        with running(bed, configuration=configuration) as other:
            eventually(lambda: rivals(other) == 1, 10, "it knows of the first")
            assert "Caches are synced, scheduling" not in other.log.read_text()
            assert first.stop() == 0
            words = "Caches are synced, scheduling"
            eventually(lambda: words in other.log.read_text(), 20, "it decides")
