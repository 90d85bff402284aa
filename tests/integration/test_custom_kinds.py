"""A custom resource that the configuration names: watched under its rights, read at its paths."""

import subprocess
import sys

import pytest
import yaml

from k8s_scheduler.core.messages.incoming import ObjectChanged
from k8s_scheduler.core.messages.recording import read_segment
from testbed.installation import create_objects, log_in, shipped_configuration, wait_granted
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.fakes import queue_keeper
from tests.integration.daemons import SCHEDULER, no_complaints, node_of, running, says, stand_up

GROUP = "tests.example.com"
FULL_NAME = f"queues.{GROUP}"
ACCOUNT = "queue-keeper"
PROGRAM = (sys.executable, queue_keeper.__file__)
CONFIGURATION = f"""
    plugins:
      multiPoint:
        enabled:
          - name: QueueKeeper
    pluginConfig:
      - name: QueueKeeper
        args: {{objects: Queue, resource: {FULL_NAME}, version: v1beta1, path: spec.open}}
"""
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": FULL_NAME},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "queues", "singular": "queue", "kind": "Queue"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
UPDATES = 30


@pytest.fixture
def queues(sandbox):
    """The path of the sandbox's queues; the resource goes with the sandbox."""
    collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    sandbox.create_cluster_object(collection, DEFINITION)
    path = f"/apis/{GROUP}/v1beta1/namespaces/{sandbox.namespace}/queues"
    eventually(lambda: sandbox.client.request("GET", path)[0] == 200, 30, "queues are served")
    return path


@pytest.fixture
def account(sandbox, tmp_path):
    """A kubeconfig with the rights that `rbac` prints for the configuration, and no others."""
    file = tmp_path / "config.yaml"
    file.write_text(shipped_configuration().rstrip() + CONFIGURATION)
    command = (*PROGRAM, "rbac", f"--config={file}", f"--name={ACCOUNT}")
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rights = list(yaml.safe_load_all(printed))
    create_objects(sandbox.bed, rights)
    wait_granted(sandbox.bed, rights)
    for plural in ("clusterroles", "clusterrolebindings"):
        sandbox.remember(f"/apis/rbac.authorization.k8s.io/v1/{plural}/{ACCOUNT}")
    return log_in(sandbox.bed, tmp_path / "kubeconfig", account=ACCOUNT)


def told(tape):
    """Return what the core was told of objects of the custom kind: their content, in order."""
    return [
        message.object and message.read().content
        for message in read_segment(tape.read_bytes()).messages
        if isinstance(message, ObjectChanged) and message.kind == f"{GROUP}/Queue"
    ]


def test_only_the_declared_path_of_a_custom_resource_reaches_decisions(
    sandbox, queues, account, tmp_path
):
    tape = tmp_path / "tape"
    body = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    sandbox.client.create(queues, body | {"spec": {"open": False, "size": 3}})
    stand_up(sandbox, make_node("n1"))
    with running(
        sandbox.bed,
        configuration=shipped_configuration().rstrip() + CONFIGURATION,
        program=PROGRAM,
        kubeconfig=account,
        flags=("--leader-elect=false", f"--record={tape}"),
    ) as daemon:
        sandbox.create_pods([make_pod("p", labels={"queue": "q"}, scheduler_name=SCHEDULER)])
        eventually(
            lambda: "the queue is closed" in says(sandbox, "p", "message"), 20, "it is told why"
        )
        for count in range(UPDATES):
            sandbox.client.patch(f"{queues}/q/status", {"status": {"running": count}})
            sandbox.client.patch(f"{queues}/q", {"spec": {"size": count}})
        assert node_of(sandbox, "p") is None
        sandbox.client.patch(f"{queues}/q", {"spec": {"open": True}})
        eventually(lambda: node_of(sandbox, "p") == "n1", 20, "the open queue lets it through")
        sandbox.client.delete(f"{queues}/q")
        eventually(lambda: told(tape)[-1] is None, 20, "the delete is recorded")
        events = {
            name: value
            for name, value in daemon.metrics().items()
            if name.startswith("k8s_scheduler_reflector_events_total") and FULL_NAME in name
        }
        no_complaints(daemon)
    # All updates came by the watch, and none but the last one went any further.
    assert sum(value for name, value in events.items() if "MODIFIED" in name) >= UPDATES
    assert told(tape) == [{"spec.open": False}, {"spec.open": True}, None]
