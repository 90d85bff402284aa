"""Late binding in a whole core: what is assumed, written and waited for, and what is undone."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind, kind_named
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.incoming import ObjectChanged
from k8s_scheduler.core.messages.outgoing import Bind, PatchCondition, PatchObject
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import claiming
from tests.unit.core.engine.sagas import SagaHarness, check_room, hold
from tests.unit.core.harness import only
from tests.unit.core.plugins.storage_bench import (
    HOST,
    LOCAL,
    claim,
    storage_class,
    volume,
)

SELECTED = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PV, PVC = Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM
CHECK = "binding volumes: failed to check binding"
PREFIX = 'running PreBind plugin "VolumeBinding": '


class Shop(SagaHarness):
    """A core, two nodes, and an API server's storage objects with their versions."""

    def __init__(self):
        super().__init__("One")
        self.version = 10
        for name in ("n1", "n2"):
            self.node(make_node(name).label(**{HOST: name}).obj())
        self.put(LOCAL)
        self.put(storage_class("dynamic", "csi.a"))

    @classmethod
    def over(cls, harness, other):
        """Return a restored core as a shop whose API server is as far as another one's."""
        shop = cls.__new__(cls)
        shop.__dict__.update(harness.__dict__, version=other.version)
        return shop

    def put(self, raw):
        """Let the API server have an object in a new version; return it."""
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        kind = kind_named(raw["kind"])
        found = msgspec.convert(raw, kind.type)
        metadata = found.metadata
        self.tell(ObjectChanged(self.now, kind, metadata.namespace, metadata.name, found))
        return found

    def claim(self, name, of, **more):
        return self.put(claim(name, of=of, **more))

    def local(self, name, node, **more):
        return self.put(volume(name, of="local", pin=[node], **more))

    def come(self, name, claim_name, **request):
        """Let a pod come that uses a claim; return what is written for it."""
        self.pod(claiming(make_pod(name).request(cpu="1"), claim_name).obj())
        self.out.clear()
        self.settle()
        return only(PatchObject, self.out)

    def provisioned(self, name, to="pv", node="n1"):
        """Let a claim be provisioned, as the provisioner and the controller do it."""
        self.put(volume(to, of="dynamic", pin=[node], phase="Bound"))
        marks = {SELECTED: node, BOUND: "yes"}
        self.claim(name, "dynamic", to=to, annotations=marks, phase="Bound")

    def bound(self, name, to):
        """Let the controller finish what was written into a local volume."""
        reference = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
        self.put(volume(to, of="local", pin=["n1"], phase="Bound", claimRef=reference))
        self.claim(name, "local", to=to, phase="Bound")

    def seen(self, kind, name):
        return inside(self.core).cache.objects.get(kind, "default" if kind is PVC else "", name)

    def assumed(self):
        return [
            name for _, _, name, _, a in inside(self.core).cache.objects.entries() if a is not None
        ]

    def fails_with(self, name, text):
        """The pod's attempt has just ended so, and nothing of it is left."""
        failures = [c for c in only(PatchCondition, self.out) if c.name == name]
        assert [(c.reason, c.message) for c in failures] == [("SchedulerError", PREFIX + text)]
        assert self.assumed() == []
        assert self.place(name) == "backoff"
        assert self.node_of(name) is None
        check_room(self.core)


@pytest.fixture
def shop():
    return Shop()


class TestProvisioning:
    @pytest.fixture
    def waiting(self, shop):
        """A pod whose claim is to be provisioned, with the write answered."""
        known = shop.claim("c", "dynamic")
        [self.write] = shop.come("a", "c")
        self.node, self.known = shop.node_of("a"), known
        shop.answer(self.write)
        shop.out.clear()
        return shop

    def test_the_claim_gets_its_node(self, waiting):
        assert (self.write.kind, self.write.object_namespace) == (PVC, "default")
        assert self.write.object_name == "c"
        assert self.write.patch == {
            "metadata": {
                "resourceVersion": self.known.metadata.resource_version,
                "annotations": {SELECTED: self.node},
            }
        }
        assert (self.write.uid, self.write.name, self.write.attempt) == ("uid-a", "a", 1)

    def test_it_is_assumed_meanwhile(self, waiting):
        assert waiting.seen(PVC, "c").metadata.annotations == {SELECTED: self.node}
        assert waiting.assumed() == ["c"]

    def test_binding_waits_for_the_bound_claim(self, waiting):
        waiting.claim("c", "dynamic", annotations={SELECTED: self.node})
        waiting.tick(100)
        assert waiting.phase("a") == "pre-binding"
        assert only(Bind, waiting.out) == []
        waiting.provisioned("c", node=self.node)
        assert [bind.node for bind in only(Bind, waiting.out)] == [self.node]
        assert waiting.assumed() == []

    def test_a_claim_bound_to_a_volume_that_is_not_known_yet(self, waiting):
        marks = {SELECTED: self.node, BOUND: "yes"}
        waiting.claim("c", "dynamic", to="pv", annotations=marks, phase="Bound")
        assert waiting.phase("a") == "pre-binding"
        waiting.put(volume("pv", of="dynamic", pin=[self.node], phase="Bound"))
        assert [bind.node for bind in only(Bind, waiting.out)] == [self.node]

    def test_provisioned_out_of_reach(self, waiting):
        other = "n2" if self.node == "n1" else "n1"
        waiting.put(volume("pv", of="dynamic", pin=[other], phase="Bound"))
        marks = {SELECTED: self.node, BOUND: "yes"}
        waiting.claim("c", "dynamic", to="pv", annotations=marks, phase="Bound")
        text = (
            f'binding volumes: pv "pv" node affinity doesn\'t match node "{self.node}": '
            "no matching NodeSelectorTerms"
        )
        waiting.fails_with("a", text)

    def test_the_provisioner_gives_up(self, waiting):
        waiting.claim("c", "dynamic", annotations={"other": "thing"})
        waiting.fails_with("a", 'binding volumes: provisioning failed for PVC "c"')

    def test_all_annotations_are_gone(self, waiting):
        waiting.claim("c", "dynamic")
        waiting.fails_with("a", 'binding volumes: selectedNode annotation reset for PVC "c"')

    def test_the_node_is_gone(self, waiting):
        waiting.drop_node(self.node)
        waiting.out.clear()
        waiting.tick(1)
        text = f'binding volumes: failed to get node "{self.node}": node "{self.node}" not found'
        waiting.fails_with("a", text)

    def test_the_claim_is_gone(self, waiting):
        waiting.drop_object(PVC, "c", namespace="default")
        text = 'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found'
        waiting.fails_with("a", f"binding volumes: {text}")

    def test_time_runs_out(self, waiting):
        waiting.tick(599)
        assert waiting.phase("a") == "pre-binding"
        waiting.tick(1)
        waiting.fails_with("a", "binding volumes: context deadline exceeded")

    def test_after_a_failure_it_is_tried_again_with_the_new_version(self, waiting):
        waiting.claim("c", "dynamic", annotations={"other": "thing"})
        newest = waiting.seen(PVC, "c").metadata.resource_version
        waiting.out.clear()
        waiting.tick(5)
        waiting.settle()
        [again] = only(PatchObject, waiting.out)
        assert again.patch["metadata"]["resourceVersion"] == newest
        assert again.attempt == 2

    def test_a_node_that_was_selected_already_is_not_written_again(self, shop):
        shop.claim("c", "dynamic", annotations={SELECTED: "n2"})
        assert shop.come("a", "c") == []
        assert shop.node_of("a") == "n2"
        assert shop.phase("a") == "pre-binding"
        shop.provisioned("c", node="n2")
        assert [bind.node for bind in only(Bind, shop.out)] == ["n2"]


class TestWrites:
    def test_one_that_fails_is_told_as_the_server_says_it(self, shop):
        shop.claim("c", "dynamic")
        [write] = shop.come("a", "c")
        shop.out.clear()
        shop.answer(write, done=False, message="the object has been modified")
        shop.fails_with("a", "the object has been modified")

    def test_a_change_by_somebody_else_while_it_waits_for_its_permit(self, shop):
        """Nothing is written over what is new; the next attempt goes by it."""
        shop["One"].line("permit", hold(60))
        shop.claim("c", "dynamic")
        assert shop.come("a", "c") == []
        shop.claim("c", "dynamic", annotations={"other": "thing"})
        assert shop.assumed() == []
        shop["One"].waiting.allow(PodUid("uid-a"), "One")
        shop["One"].lines.clear()
        shop.out.clear()
        shop.tick(1)
        assert only(Bind, shop.out) == []
        assert shop.place("a") == "backoff"
        shop.tick(5)
        shop.settle()
        [write] = only(PatchObject, shop.out)
        assert write.patch["metadata"]["resourceVersion"] == str(shop.version)


class TestStatic:
    """Local volumes that are there already."""

    def test_the_volume_gets_its_claim(self, shop):
        known_claim = shop.claim("c", "local")
        known = shop.local("v", "n1")
        [write] = shop.come("a", "c")
        assert (write.kind, write.object_namespace, write.object_name) == (PV, "", "v")
        assert write.patch == {
            "metadata": {
                "resourceVersion": known.metadata.resource_version,
                "annotations": {BY_CONTROLLER: "yes"},
            },
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": "default",
                    "name": "c",
                    "uid": "uid-c",
                    "resourceVersion": known_claim.metadata.resource_version,
                }
            },
        }

    def test_binding_waits_for_the_bound_claim(self, shop):
        shop.claim("c", "local")
        shop.local("v", "n1")
        [write] = shop.come("a", "c")
        assert shop.assumed() == ["v"]
        assert only(Bind, shop.answer(write)) == []
        shop.bound("c", "v")
        assert [bind.node for bind in only(Bind, shop.out)] == ["n1"]
        assert shop.assumed() == []

    def test_a_volume_that_is_kept_for_the_claim_is_not_marked(self, shop):
        """Somebody has reserved it by name; the uid alone is missing."""
        shop.claim("c", "local")
        shop.local("v", "n1", claimRef={"namespace": "default", "name": "c"})
        [write] = shop.come("a", "c")
        assert "annotations" not in write.patch["metadata"]
        assert write.patch["spec"]["claimRef"]["uid"] == "uid-c"

    def test_a_volume_that_is_the_claims_already_needs_no_write(self, shop):
        shop.claim("c", "local")
        shop.local("v", "n1", claimRef={"namespace": "default", "name": "c", "uid": "uid-c"})
        assert shop.come("a", "c") == []
        assert shop.assumed() == []
        assert shop.phase("a") == "pre-binding"
        shop.bound("c", "v")
        assert [bind.node for bind in only(Bind, shop.out)] == ["n1"]

    def test_who_comes_second_sees_the_volume_taken(self, shop):
        shop.claim("c", "local")
        shop.claim("d", "local")
        shop.local("v", "n1")
        assert len(shop.come("a", "c")) == 1
        assert shop.come("b", "d") == []
        assert shop.place("b") == "unschedulable"
        assert "didn't find available persistent volumes to bind" in shop.notes("b")[0]

    def test_two_volumes_are_for_two_pods(self, shop):
        for name in "cd":
            shop.claim(name, "local")
        shop.local("v", "n1")
        shop.local("w", "n2")
        [first] = shop.come("a", "c")
        [second] = shop.come("b", "d")
        assert {first.object_name, second.object_name} == {"v", "w"}

    def test_what_the_first_gives_back_wakes_the_second(self, shop):
        shop.claim("c", "local")
        shop.claim("d", "local")
        shop.local("v", "n1")
        [write] = shop.come("a", "c")
        shop.come("b", "d")
        shop.answer(write, done=False, message="no")
        assert shop.assumed() == []
        shop.out.clear()
        shop.settle()
        [second] = only(PatchObject, shop.out)
        assert (second.uid, second.object_name) == ("uid-b", "v")

    @pytest.mark.parametrize("gone", ["pod", "volume", "claim"])
    def test_something_is_deleted_meanwhile(self, shop, gone):
        shop.claim("c", "local")
        shop.local("v", "n1")
        [write] = shop.come("a", "c")
        shop.answer(write)
        shop.out.clear()
        if gone == "pod":
            shop.drop_pod(make_pod("a").obj())
            assert shop.assumed() == []
            assert shop.seen(PV, "v").spec.claim_ref is None
            assert shop.node_of("a") is None
        elif gone == "volume":
            shop.drop_object(PV, "v")
            shop.fails_with("a", f'{CHECK}: persistentvolumes "v" not found')
        else:
            shop.drop_object(PVC, "c", namespace="default")
            shop.fails_with("a", f'{CHECK}: persistentvolumeclaims "default/c" not found')
        check_room(shop.core)

    def test_the_volume_is_taken_from_the_claim_again(self, shop):
        shop.claim("c", "local")
        shop.local("v", "n1")
        [write] = shop.come("a", "c")
        shop.answer(write)
        shop.out.clear()
        shop.local("v", "n1")
        shop.fails_with("a", 'binding volumes: ClaimRef got reset for pv "v"')

    def test_several_claims_are_written_volumes_first(self, shop):
        shop.claim("c", "local")
        shop.claim("d", "dynamic")
        shop.local("v", "n1")
        pod = make_pod("a").request(cpu="1")
        pod.raw["spec"]["volumes"] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in "dc"
        ]
        shop.pod(pod.obj())
        first, second = only(PatchObject, shop.schedule())
        assert (first.kind, second.kind) == (PV, PVC)
        shop.answer(second)
        shop.answer(first)
        shop.bound("c", "v")
        assert shop.phase("a") == "pre-binding"
        shop.provisioned("d")
        assert [bind.node for bind in only(Bind, shop.out)] == ["n1"]

    def test_one_of_two_writes_fails(self, shop):
        """What was written is not undone on the server; what is assumed is."""
        shop.claim("c", "local")
        shop.claim("d", "dynamic")
        shop.local("v", "n1")
        pod = make_pod("a").request(cpu="1")
        pod.raw["spec"]["volumes"] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in "cd"
        ]
        shop.pod(pod.obj())
        first, second = only(PatchObject, shop.schedule())
        shop.answer(first)
        shop.out.clear()
        shop.answer(second, done=False, message="no")
        shop.fails_with("a", "no")


def test_a_version_that_is_known_already_does_not_end_what_is_assumed(shop):
    shop.claim("c", "local")
    known = shop.local("v", "n1")
    shop.come("a", "c")
    shop.tell(ObjectChanged(shop.now, PV, "", "v", known))
    assert shop.assumed() == ["v"]


@pytest.mark.parametrize("phase", ["waiting", "written", "answered"])
@pytest.mark.parametrize("kind", ["local", "dynamic"])
def test_a_checkpoint_in_the_middle(shop, kind, phase):
    if phase == "waiting":
        shop["One"].line("permit", hold(60))
    shop.claim("c", kind)
    if kind == "local":
        shop.local("v", "n1")
    written = shop.come("a", "c")
    if phase == "answered":
        shop.answer(written[0])
    twin = Shop.over(shop.twin(), shop)
    steps = []
    for core in (shop, twin):
        start = len(core.out)
        core["One"].waiting.allow(PodUid("uid-a"), "One")
        core.tick(1)
        for write in written or only(PatchObject, core.out[start:]):
            core.answer(write)
        if kind == "local":
            core.bound("c", "v")
        else:
            core.provisioned("c", node=core.node_of("a"))
        steps.append(core.out[start:])
    assert len(only(Bind, steps[0])) == 1
    assert steps[0] == steps[1]
    assert shop.core.checkpoint() == twin.core.checkpoint()
