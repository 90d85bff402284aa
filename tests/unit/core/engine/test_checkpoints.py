"""A core restored from what was recorded is the core that was recorded."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import BUILT_IN, Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.core.messages import recording
from k8s_scheduler.core.messages.incoming import (
    BindResult,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    Restore,
    Schedule,
    Tick,
)
from k8s_scheduler.core.messages.recording import (
    Header,
    checkpoint_frames,
    frame,
    read_segment,
)
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, FullHarness, away, claiming, near, promised, zoned

HEADER = Header(version="1", started=7.0, profiles=[], queue={})

# By kind: an object with everything that is read of it.
OBJECTS = {
    Kind.NAMESPACE: {"metadata": {"name": "a", "labels": {"team": "red"}}},
    Kind.SERVICE: {"metadata": {"name": "a"}, "spec": {"selector": {"app": "x"}}},
    Kind.REPLICATION_CONTROLLER: {"metadata": {"name": "a"}, "spec": {"selector": {"app": "x"}}},
    Kind.REPLICA_SET: {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
    },
    Kind.STATEFUL_SET: {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
    },
    Kind.POD_DISRUPTION_BUDGET: {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    },
    Kind.PERSISTENT_VOLUME: {
        "metadata": {"name": "a", "labels": {"topology.kubernetes.io/zone": "z"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "s",
            "csi": {"driver": "d", "volumeHandle": "h"},
            "claimRef": {"namespace": "n", "name": "c", "uid": "u"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                    ]
                }
            },
        },
        "status": {"phase": "Available"},
    },
    Kind.PERSISTENT_VOLUME_CLAIM: {
        "metadata": {"name": "a", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "a", "storageClassName": "", "accessModes": ["ReadWriteOncePod"]},
        "status": {"phase": "Bound"},
    },
    Kind.STORAGE_CLASS: {
        "metadata": {"name": "a"},
        "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["z"]}]}],
    },
    Kind.CSI_NODE: {
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "d", "nodeID": "x", "allocatable": {"count": 3}}]},
    },
    Kind.CSI_DRIVER: {"metadata": {"name": "a"}, "spec": {"storageCapacity": True}},
    Kind.CSI_STORAGE_CAPACITY: {
        "metadata": {"name": "a"},
        "storageClassName": "s",
        "capacity": "1Gi",
        "nodeTopology": {"matchLabels": {"zone": "z"}},
    },
    Kind.VOLUME_ATTACHMENT: {
        "metadata": {"name": "a"},
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "a"}},
        "status": {"attached": True},
    },
    Kind.DEVICE_CLASS: {"metadata": {"name": "a"}, "spec": {"extendedResourceName": "x/gpu"}},
}


def recorded(core, *messages):
    """Return what a segment with the core's checkpoint and these messages reads as."""
    data = recording.MAGIC + frame(HEADER) + b"".join(checkpoint_frames(core.checkpoint()))
    segment = read_segment(data + b"".join(map(frame, messages)))
    return list(segment.messages)


def test_a_recording_of_format_3_has_kinds_without_their_group(monkeypatch):
    core = Scheduler(FULL)
    messages = [ObjectChanged(1.0, kind, "", "a", named(kind, "", "a")) for kind in BUILT_IN]
    for message in messages:
        core.handle(message)
    now = recorded(core, *messages)
    older = msgspec.msgpack.Encoder(enc_hook=lambda kind: kind.name)
    monkeypatch.setattr(recording, "_encoder", older)
    monkeypatch.setattr(recording, "MAGIC", b"k8s-scheduler recording 3\n")
    assert recorded(core, *messages) == now


def restored(core):
    (restore,) = recorded(core)
    assert isinstance(restore, Restore)
    twin = Scheduler(FULL)
    assert twin.handle(restore) == []
    return twin


@pytest.mark.parametrize("kind", BUILT_IN)
def test_objects_of_every_kind_survive_a_recording(kind):
    found = msgspec.convert(OBJECTS[kind], kind.type)
    assert msgspec.to_builtins(found) == OBJECTS[kind]
    messages = [
        ObjectChanged(8.0, kind, "n", "a", found),
        ObjectChanged(9.0, kind, "n", "a", None),
    ]
    _, *read = recorded(Scheduler(FULL), *messages)
    assert [(m.now, m.kind, m.namespace, m.name, m.read()) for m in read] == [
        (8.0, kind, "n", "a", found),
        (9.0, kind, "n", "a", None),
    ]


def test_messages_of_every_type_survive_a_recording():
    messages = [
        PodChanged(1.0, PodUid("u"), make_pod("p").request(cpu="1").label(a="b").obj()),
        PodChanged(2.0, PodUid("u"), None),
        NodeChanged(3.0, NodeName("n"), zoned("n").taint("k").obj()),
        NodeChanged(4.0, NodeName("n"), None),
        Schedule(5.0, 3),
        Tick(6.0),
        BindResult(7.0, PodUid("u"), 2, NodeName("n"), bound=False, message="no"),
    ]
    _, *read = recorded(Scheduler(FULL), *messages)
    assert read == messages


def test_objects_are_in_checkpoints_in_an_order_that_does_not_depend_on_history():
    forwards, backwards = Scheduler(FULL), Scheduler(FULL)
    messages = [
        ObjectChanged(1.0, kind, space, name, named(kind, space, name))
        for kind in BUILT_IN
        for space in ("a", "b")
        for name in ("x", "y")
    ]
    for message in messages:
        forwards.handle(message)
    for message in reversed(messages):
        backwards.handle(message)
    assert len(forwards.checkpoint().objects) == len(messages)
    assert forwards.checkpoint().objects == backwards.checkpoint().objects


def named(kind, namespace, name):
    raw = dict(OBJECTS[kind])
    raw["metadata"] = {**raw["metadata"], "namespace": namespace, "name": name}
    return msgspec.convert(raw, kind.type)


def lived():
    """Return a core that has seen everything a checkpoint holds."""
    h = FullHarness()
    for kind, raw in OBJECTS.items():
        h.tell(ObjectChanged(h.now, kind, "", "a", msgspec.convert(raw, kind.type)))
    for name, zone in (("n1", "z1"), ("n2", "z2"), ("n3", "z2")):
        h.node(zoned(name, zone, cpu="2").obj())
    h.drop_node("n2")
    h.pod(make_pod("ghost").label(app="x").on("n3").obj())
    h.drop_node("n3")
    h.pod(claiming(make_pod("user"), "a").label(app="x").on("n1").obj())
    h.pod(make_pod("free").obj())
    h.schedule()
    h.pod(away(make_pod("parked"), app="x").obj())
    h.pod(promised(make_pod("vip").request(cpu="9").priority(3), "n1").obj())
    h.pod(make_pod("gated").gate("g").obj())
    h.schedule()
    h.pod(make_pod("active").obj())
    h.object(Kind.NAMESPACE, "default", metadata={"labels": {"team": "red"}})
    h.node(zoned("n4", "z1").obj())
    return h


SAMPLES = [
    make_pod("plain"),
    make_pod("large").request(cpu="3"),
    make_pod("vip2").request(cpu="2").priority(9),
    near(make_pod("near"), app="x"),
    away(make_pod("away"), app="x"),
    claiming(make_pod("claiming"), "a"),
    promised(make_pod("promised").request(cpu="1"), "n4"),
]


def test_a_restored_core_judges_as_the_original():
    h = lived()
    twin = restored(h.core)
    assert twin.checkpoint() == h.core.checkpoint()
    for sample in SAMPLES:
        assert twin.judge(sample.obj()) == h.core.judge(sample.obj())


def test_a_restored_core_goes_on_as_the_original():
    h = lived()
    twin = restored(h.core)
    said = []
    for message in (
        Schedule(1001.0, 100),
        Tick(1020.0),
        NodeChanged(1021.0, NodeName("n5"), zoned("n5", "z3", cpu="16").obj()),
        Schedule(1022.0, 100),
        NodeChanged(1023.0, NodeName("n3"), zoned("n3", "z2").obj()),
        Schedule(1024.0, 100),
        Tick(1060.0),
        Schedule(1061.0, 100),
    ):
        out = h.core.handle(message)
        assert twin.handle(message) == out
        said += out
    assert {"parked", "vip", "active"} <= {instruction.name for instruction in said}
    assert twin.checkpoint() == h.core.checkpoint()


def test_promises_are_as_they_were():
    """A promise ended when the pod was placed; the binding failed, and the pod says it still."""
    h = FullHarness()
    h.node(zoned("n").obj())
    h.pod(promised(make_pod("vip").request(cpu="3").priority(5), "n").obj())
    (bind,) = h.binds()
    h.result(bind, bound=False, message="no")
    twin = restored(h.core)
    small = make_pod("small").request(cpu="2").obj()
    assert twin.judge(small).feasible == h.core.judge(small).feasible


def test_a_promise_to_a_pod_on_its_way_out_is_as_it_was():
    """A pod that is being deleted is dropped from the queue, but not gone yet."""
    h = FullHarness()
    h.node(zoned("n").obj())
    h.pod(promised(make_pod("vip").request(cpu="3").priority(5).deleting(), "n").obj())
    h.schedule()
    twin = restored(h.core)
    small = make_pod("small").request(cpu="2").obj()
    assert twin.judge(small).feasible == h.core.judge(small).feasible


def test_where_sampling_goes_on_is_kept():
    h = FullHarness()
    inside(h.core).cycle.sampling.next_start = 17
    assert restored(h.core)._cycle.sampling.next_start == 17


def test_large_checkpoints_come_in_bounded_frames():
    h = FullHarness()
    for number in range(600):
        h.node(make_node(f"n{number}").obj())
        h.pod(make_pod(f"p{number}").on(f"n{number}").obj())
        metadata = {"name": f"o{number}", "namespace": "a"}
        h.object(Kind.SERVICE, f"o{number}", namespace="a", metadata=metadata)
    frames = list(checkpoint_frames(h.core.checkpoint()))
    assert len(frames) == 3 + 3 + 3 + 3 + 1
    assert restored(h.core).checkpoint() == h.core.checkpoint()


def test_only_an_empty_core_can_be_restored():
    h = FullHarness()
    h.node(zoned("n").obj())
    with pytest.raises(ValueError, match="empty"):
        h.tell(Restore(1.0, h.core.checkpoint()))
