"""The static pod that stands in for kube-scheduler: its manifest, its login, its Lease."""

import yaml

from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, node_of, running, stand_up
from tests.unit.shipped import MANIFESTS, read

FOLDER = MANIFESTS / "static-pod"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


def test_the_api_server_takes_the_manifest(sandbox):
    """A kubelet shows a static pod to the API server as it is."""
    (pod,) = read(FOLDER / "k8s-scheduler.yaml")
    pod["metadata"]["namespace"] = sandbox.namespace
    # Critical priority is for kube-system alone.
    del pod["spec"]["priorityClassName"]
    pod["spec"]["automountServiceAccountToken"] = False
    created = sandbox.client.create(f"{sandbox.path}/pods?dryRun=All", pod)
    assert created["spec"]["hostNetwork"] is True


def test_kube_schedulers_own_login_and_lease_are_enough(sandbox, tmp_path):
    """The built-in roles of system:kube-scheduler allow all that the daemon does."""
    (pod,) = read(FOLDER / "k8s-scheduler.yaml")
    configuration, extras = yaml.safe_load_all((FOLDER / "config.yaml").read_text())
    assert [p["schedulerName"] for p in configuration["profiles"]] == [
        "default-scheduler",
        SCHEDULER,
    ]
    # Other tests on this server have pods of default-scheduler that are nobody's.
    del configuration["profiles"][0]
    login = sandbox.bed.kubeconfig_for_certificate(
        tmp_path / "scheduler.conf", "system:kube-scheduler"
    )
    shown = pod["spec"]["containers"][0]["args"]
    flags = [f for f in shown if f.startswith(("--authentication", "--authorization"))]
    flags = [f.replace("/etc/kubernetes/scheduler.conf", str(login)) for f in flags]
    sandbox.remember(LEASE)
    stand_up(sandbox, make_node("static-1"))
    with running(
        sandbox.bed,
        configuration=yaml.safe_dump_all([configuration, extras]),
        kubeconfig=login,
        flags=flags,
    ) as daemon:
        eventually(lambda: sandbox.client.get(LEASE)["spec"].get("holderIdentity"), 10, "the Lease")
        sandbox.create_pods([make_pod("a", scheduler_name=SCHEDULER)])
        eventually(lambda: node_of(sandbox, "a"), 20, "a node")
        assert "missing permission" not in daemon.log.read_text()
