"""What an Event says of a refused configuration, and about which object."""

import json
from pathlib import Path

import pytest

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.app.configuration.events import ConfigEvents, mounted_config_map, note_of
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.kube.http.protocol import Response
from tests.fakes.transport import FakeTransport, status

POD = "/api/v1/namespaces/ns/pods/me"
MAP = "/api/v1/namespaces/ns/configmaps/m"
FILE = "/etc/kubernetes/k8s-scheduler/config.yaml"


def refusal(*errors):
    return RefusedOffer("a" * 64, "f", 0.0, errors)


def pod(*mounts, **volumes):
    return {
        "metadata": {"uid": "u"},
        "spec": {
            "containers": [{"volumeMounts": [{"mountPath": p, "name": n} for p, n in mounts]}],
            "volumes": [{"name": name} | source for name, source in volumes.items()],
        },
    }


class TestNote:
    def test_all_errors_are_named_where_there_is_room(self):
        note = note_of(refusal("one", "two"), in_force="b" * 64)
        assert note == (
            "Configuration aaaaaaaaaaaa is refused, bbbbbbbbbbbb stays in force. 2 errors: one; two"
        )

    def test_whole_errors_and_a_hint_where_there_is_not(self):
        errors = [f"error number {i} is quite long, as errors tend to be" for i in range(50)]
        note = note_of(refusal(*errors), in_force="b")
        assert len(note.encode()) <= 1024
        shown = sum(error in note for error in errors)
        assert 10 < shown < 50
        assert note.endswith(
            f" ... and {50 - shown} more; all of them are in the scheduler's log and at /configz"
        )

    def test_one_endless_error_is_cut_between_characters(self):
        note = note_of(refusal("ä" * 5000), in_force="b")
        assert 1000 < len(note.encode()) <= 1024
        assert "/configz" in note


class TestMounts:
    @pytest.mark.parametrize(
        ("found", "expected"),
        [
            (pod(("/etc/kubernetes/k8s-scheduler", "c"), c={"configMap": {"name": "m"}}), "m"),
            (
                pod(
                    ("/etc", "e"),
                    ("/etc/kubernetes/k8s-scheduler", "c"),
                    e={"configMap": {"name": "other"}},
                    c={"configMap": {"name": "m"}},
                ),
                "m",
            ),
            (pod(("/etc/kubernetes/k8s-scheduler", "c"), c={"emptyDir": {}}), None),
            (pod(("/elsewhere", "c"), c={"configMap": {"name": "m"}}), None),
            (pod(), None),
        ],
        ids=["its directory", "the nearest one", "something else", "elsewhere", "nothing"],
    )
    def test_the_config_map_that_a_file_comes_from(self, found, expected):
        assert mounted_config_map(found, Path(FILE)) == expected

    @pytest.mark.parametrize("words", ["args", "command"])
    def test_another_container_may_have_something_else_there(self, words):
        place = "/etc/kubernetes/k8s-scheduler"
        sidecar, ours = (
            {"volumeMounts": [{"name": name, "mountPath": place}]} for name in ("other", "c")
        )
        ours[words] = ["run", f"--config={FILE}"]
        volumes = [{"name": n, "configMap": {"name": f"map-{n}"}} for n in ("other", "c")]
        for containers in ([sidecar, ours], [ours, sidecar]):
            found = {"spec": {"containers": containers, "volumes": volumes}}
            assert mounted_config_map(found, Path(FILE)) == "map-c"


class Recorder:
    def __init__(self):
        self.notes = []

    def record(self, note, *, is_own):
        assert is_own
        self.notes.append(note)


class TestRegarding:
    async def told(self, *, offer=None, pod_answer=None, map_answer=None, is_in_pod=True):
        api, recorder = FakeTransport(), Recorder()
        for path, answer in ((POD, pod_answer), (MAP, map_answer)):
            good = Response(200, json.dumps(answer).encode())
            words = f'cannot get resource "{path.split("/")[-2]}"'
            bad = status(403, "Forbidden", words)
            api.script("GET", path, good if answer is not None else bad)
        events = ConfigEvents(
            api, recorder, file=Path(FILE), pod=OwnPod(api, "ns", "me") if is_in_pod else None
        )
        await events.refused(refusal("no"), offer, in_force="b")
        return [(n.regarding.kind, n.regarding.name, n.regarding.uid) for n in recorder.notes]

    async def test_a_watched_config_map_is_known(self):
        offer = Offer("s", regarding=ObjectReference(kind="ConfigMap", name="own", namespace="ns"))
        assert await self.told(offer=offer, is_in_pod=False) == [("ConfigMap", "own", "")]

    async def test_of_a_mounted_one_the_pod_knows_the_name(self):
        found = pod(("/etc/kubernetes/k8s-scheduler", "c"), c={"configMap": {"name": "m"}})
        assert await self.told(pod_answer=found) == [("ConfigMap", "m", "")]

    async def test_and_its_uid_where_that_may_be_read(self):
        found = pod(("/etc/kubernetes/k8s-scheduler", "c"), c={"configMap": {"name": "m"}})
        answer = {"metadata": {"uid": "map-uid"}}
        assert await self.told(pod_answer=found, map_answer=answer) == [
            ("ConfigMap", "m", "map-uid")
        ]

    async def test_a_right_to_read_it_that_is_missing_is_named(self, caplog):
        caplog.set_level("INFO")
        found = pod(("/etc/kubernetes/k8s-scheduler", "c"), c={"configMap": {"name": "m"}})
        await self.told(pod_answer=found)
        assert "uid: missing permission: get configmaps in namespace ns" in caplog.text

    async def test_else_it_is_about_the_pod(self):
        assert await self.told(pod_answer=pod()) == [("Pod", "me", "u")]

    async def test_a_pod_that_cannot_be_read_is_logged(self, caplog):
        assert await self.told() == []
        assert "Cannot tell which ConfigMap is meant" in caplog.text

    async def test_so_is_one_that_is_nested_beyond_all_measure(self, caplog):
        api, recorder = FakeTransport(), Recorder()
        api.script("GET", POD, Response(200, b'{"x":' + b"[" * 9999))
        events = ConfigEvents(api, recorder, file=Path(FILE), pod=OwnPod(api, "ns", "me"))
        await events.refused(refusal("no"), None, in_force="b")
        assert recorder.notes == []
        assert "Cannot tell which ConfigMap is meant" in caplog.text

    async def test_without_a_pod_there_is_nobody_to_tell_it_of(self):
        assert await self.told(is_in_pod=False) == []
