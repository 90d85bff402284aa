"""Late binding of volumes on a real API server; its own controllers finish what is begun here."""

import pytest

from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import HOSTNAME_LABEL, make_node
from tests.integration.daemons import (
    SCHEDULER,
    bound,
    events,
    no_complaints,
    node_of,
    nominated,
    running,
    says,
    stand_up,
    wait_bound,
)
from tests.integration.volume_situations import (
    BY_HAND,
    DRIVER,
    VOLUMES,
    claim_body,
    storage_class,
    using,
    volume_body,
)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
WHILE_BINDING = 'running PreBind plugin "VolumeBinding": binding volumes'
SHORT_OF_TIME = """
    pluginConfig:
      - name: VolumeBinding
        args:
          bindTimeoutSeconds: 1
"""


@pytest.fixture(scope="module")
def daemon(control_plane):
    with running(control_plane) as daemon:
        yield daemon
        no_complaints(daemon)


class Storage:
    """Classes, volumes and claims of one test, and the one who makes volumes when asked."""

    def __init__(self, sandbox, *, provisioner):
        self._sandbox = sandbox
        self._claims = f"{sandbox.path}/persistentvolumeclaims"
        # Classes and volumes are the cluster's; the namespace makes their names the test's own.
        self.class_name = sandbox.namespace
        thing = storage_class(self.class_name, provisioner)
        sandbox.create_cluster_object(thing.collection, thing.body)

    def make_claims(self, *names):
        for name in names:
            self._sandbox.client.create(self._claims, claim_body(name, self.class_name))

    def make_volume(self, name, node, **spec):
        body = volume_body(
            f"{self._sandbox.namespace}-{name}", class_name=self.class_name, only_on=node, **spec
        )
        if "local" in spec:
            del body["spec"]["csi"]
        self._sandbox.create_cluster_object(VOLUMES, body)

    def claim(self, name):
        return self._sandbox.client.get(f"{self._claims}/{name}")

    def annotation(self, name, key):
        return self.claim(name)["metadata"].get("annotations", {}).get(key)

    def selected_node(self, name):
        return self.annotation(name, SELECTED_NODE)

    def is_bound(self, name):
        return self.claim(name)["status"]["phase"] == "Bound"

    def provision(self, name):
        """Make the volume that a claim asks for, where it is asked for; the controller binds it."""
        claim = self.claim(name)
        node = claim["metadata"]["annotations"][SELECTED_NODE]
        metadata = claim["metadata"]
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | {
            key: metadata[key] for key in ("namespace", "name", "uid")
        }
        self.make_volume(f"for-{name}", node, claimRef=reference)

    def give_up(self, name):
        """Say that no volume can be made there, as provisioners do once they were called."""
        eventually(lambda: self.annotation(name, PROVISIONER), 20, "the provisioner is called")
        self._sandbox.client.patch(
            f"{self._claims}/{name}", {"metadata": {"annotations": {SELECTED_NODE: None}}}
        )


def local_disk(node):
    return {"local": {"path": f"/mnt/{node}"}}


def pod(name, *claims, node=None):
    found = using(*claims)
    found["metadata"]["name"] = name
    found["spec"]["schedulerName"] = SCHEDULER
    if node:
        found["spec"]["nodeSelector"] = {HOSTNAME_LABEL: node}
    return found


def failures(sandbox):
    return [note for _, note in events(sandbox, "FailedScheduling")]


def test_a_volume_is_made_where_the_pod_goes_and_the_pod_waits_for_it(sandbox, daemon):
    storage = Storage(sandbox, provisioner=DRIVER)
    storage.make_claims("data")
    stand_up(sandbox, make_node("n1"), make_node("n2", cpu="16"))
    sandbox.create_pods([pod("p", "data", node="n2")])
    eventually(lambda: storage.selected_node("data") == "n2", 20, "the node is told")
    # Another pod goes all its way while this one waits.
    sandbox.create_pods([pod("other", node="n1")])
    eventually(lambda: node_of(sandbox, "other") == "n1", 20, "the other one is bound")
    assert node_of(sandbox, "p") is None
    # Whoever plans with pending pods can see where it will go.
    eventually(lambda: nominated(sandbox, "p") == "n2", 20, "it says so")
    storage.provision("data")
    eventually(lambda: node_of(sandbox, "p") == "n2", 30, "the pod follows its volume")
    assert not nominated(sandbox, "p")
    eventually(lambda: storage.is_bound("data"), 20, "the claim is bound")
    assert failures(sandbox) == []


def test_a_pod_is_tried_again_when_no_volume_could_be_made(sandbox, daemon):
    storage = Storage(sandbox, provisioner=DRIVER)
    storage.make_claims("data")
    stand_up(sandbox, make_node("n1"))
    sandbox.create_pods([pod("p", "data")])
    eventually(lambda: storage.selected_node("data") == "n1", 20, "the node is told")
    storage.give_up("data")
    text = f'{WHILE_BINDING}: provisioning failed for PVC "data"'
    eventually(lambda: text in failures(sandbox), 20, "the failure is told")
    eventually(lambda: says(sandbox, "p", "reason") == "SchedulerError", 20, "the condition")
    eventually(lambda: storage.selected_node("data") == "n1", 30, "the node is told again")
    storage.provision("data")
    eventually(lambda: node_of(sandbox, "p") == "n1", 30, "the pod is bound")


def test_local_volumes_are_bound_where_there_are_enough(sandbox, daemon):
    storage = Storage(sandbox, provisioner=BY_HAND)
    storage.make_volume("n1-a", "n1", **local_disk("n1"))
    for name in ("n2-a", "n2-b"):
        storage.make_volume(name, "n2", **local_disk("n2"))
    storage.make_claims("data", "log")
    stand_up(sandbox, make_node("n1"), make_node("n2"))
    sandbox.create_pods([pod("p", "data", "log")])
    eventually(lambda: node_of(sandbox, "p") == "n2", 30, "the pod is bound")
    eventually(lambda: storage.is_bound("data"), 20, "the claim is bound")
    eventually(lambda: storage.is_bound("log"), 20, "the other claim is bound")
    volumes = {storage.claim(name)["spec"]["volumeName"] for name in ("data", "log")}
    assert volumes == {f"{sandbox.namespace}-n2-a", f"{sandbox.namespace}-n2-b"}


def test_a_local_volume_is_promised_once(sandbox, daemon):
    """Both pods would like the larger node; its one volume goes to one of them."""
    storage = Storage(sandbox, provisioner=BY_HAND)
    for node in ("n1", "n2"):
        storage.make_volume(node, node, **local_disk(node))
    storage.make_claims("data-0", "data-1", "data-2")
    stand_up(sandbox, make_node("n1", cpu="32"), make_node("n2"))
    sandbox.create_pods([pod(f"p{i}", f"data-{i}") for i in range(3)])
    placed = wait_bound(sandbox, 2)
    assert sorted(placed.values()) == ["n1", "n2"]
    (left,) = {"p0", "p1", "p2"} - set(placed)
    text = (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    eventually(lambda: (left, text) in events(sandbox, "FailedScheduling"), 20, "the third waits")
    # A volume more, and it goes there.
    storage.make_volume("n2-more", "n2", **local_disk("n2"))
    eventually(lambda: bound(sandbox).get(left) == "n2", 30, "the third is bound")


def test_a_pod_that_is_deleted_while_it_waits_for_its_volume_gives_its_room_back(sandbox, daemon):
    storage = Storage(sandbox, provisioner=DRIVER)
    storage.make_claims("data")
    stand_up(sandbox, make_node("n1", pods=1))
    sandbox.create_pods([pod("p", "data")])
    eventually(lambda: storage.selected_node("data") == "n1", 20, "the node is told")
    sandbox.create_pods([pod("other")])
    eventually(lambda: failures(sandbox), 20, "its room is kept")
    sandbox.delete(f"{sandbox.path}/pods/p")
    eventually(lambda: node_of(sandbox, "other") == "n1", 20, "the other one has the room")


def test_a_pod_does_not_wait_for_its_volume_for_ever(sandbox):
    storage = Storage(sandbox, provisioner=DRIVER)
    storage.make_claims("data")
    stand_up(sandbox, make_node("n1"))
    configuration = shipped_configuration().rstrip() + SHORT_OF_TIME
    with running(sandbox.bed, configuration=configuration) as daemon:
        sandbox.create_pods([pod("p", "data")])
        text = f"{WHILE_BINDING}: context deadline exceeded"
        eventually(lambda: text in failures(sandbox), 20, "the failure is told")
        assert node_of(sandbox, "p") is None
        # What was asked for still stands, so whoever makes the volume late has not worked in vain.
        assert storage.selected_node("data") == "n1"
        eventually(lambda: not nominated(sandbox, "p"), 20, "it has no node any more")
        storage.provision("data")
        eventually(lambda: node_of(sandbox, "p") == "n1", 30, "the pod is bound")
        no_complaints(daemon)
