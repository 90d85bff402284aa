"""What comes out of the bytes of lists and watches."""

import json

import msgspec
import pytest

from k8s_scheduler.api.custom_objects import CustomObject
from k8s_scheduler.api.kinds import custom_kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.errors import Gone, ServerError
from k8s_scheduler.kube.resources import NODES, PODS, Resource, resource_of
from k8s_scheduler.kube.watch import decoding
from k8s_scheduler.kube.watch.big_lists import split_big_list
from k8s_scheduler.kube.watch.decoding import (
    Bookmark,
    ObjectDecoder,
    Undecodable,
    WatchEvent,
    read_list,
)
from k8s_scheduler.kube.watch.reflector_log import REMEMBERED, UndecodableLog
from k8s_scheduler.kube.watch.streams import StreamError
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.harness import bad_pod, pod
from tests.fakes.transport import encode, status_object
from tests.fakes.watch import gone_event, line

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Bare(msgspec.Struct, frozen=True):
    """A kind without a status: an ERROR event decodes as one of these, wrongly."""

    metadata: ObjectMeta


BARE = Resource(
    group="x.io", version="v1", plural="bares", kind="Bare", namespaced=False, type=_Bare
)


class TestEvents:
    """One line of a watch."""

    @pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
    def test_a_change_is_decoded_to_its_type(self, kind: str) -> None:
        decoded = ObjectDecoder(PODS).event(line({"type": kind, "object": pod("p", node="n")}))
        assert isinstance(decoded, WatchEvent)
        assert decoded.type == kind
        assert isinstance(decoded.object, Pod)
        assert decoded.object.spec.node_name == "n"

    def test_a_manifest_that_was_applied_is_not_kept(self) -> None:
        """It holds what containers get in their environment, and would be part of recordings."""
        content = pod("p")
        content["metadata"]["annotations"] = {APPLIED: '{"env":[{"value":"hunter22"}]}', "a": "b"}
        event = ObjectDecoder(PODS).event(line({"type": "ADDED", "object": content}))
        assert isinstance(event, WatchEvent)
        item = ObjectDecoder(PODS).object(encode(content))
        assert isinstance(item, Pod)
        for found in (event.object, item):
            assert found.metadata.annotations == {APPLIED: ""}

    def test_of_annotations_only_those_that_are_read_are_kept(self) -> None:
        content = pod("p")
        content["metadata"]["annotations"] = {
            "a": "b" * 1000,
            "kubernetes.io/config.mirror": "x",
            "volume.kubernetes.io/selected-node": "n",
        }
        item = ObjectDecoder(PODS).object(encode(content))
        assert isinstance(item, Pod)
        assert item.metadata.annotations == {
            "kubernetes.io/config.mirror": "x",
            "volume.kubernetes.io/selected-node": "n",
        }

    def test_fields_that_are_not_read_may_be_anything(self) -> None:
        content = pod("p") | {"kind": 5, "apiVersion": None, "extra": [1, {"a": None}]}
        content["metadata"]["managedFields"] = "odd"
        decoded = ObjectDecoder(PODS).event(line({"type": "ADDED", "object": content}))
        assert isinstance(decoded, WatchEvent)

    @pytest.mark.parametrize("resource", [PODS, NODES, BARE], ids=lambda r: r.plural)
    def test_a_bookmark_says_where_the_stream_is(self, resource: Resource[_Bare]) -> None:
        content = {"metadata": {"resourceVersion": "7", "creationTimestamp": None}, "spec": None}
        decoded = ObjectDecoder(resource).event(line({"type": "BOOKMARK", "object": content}))
        assert decoded == Bookmark("7", initial_events_end=False)

    def test_the_bookmark_after_initial_events_is_recognised(self) -> None:
        annotations = {"k8s.io/initial-events-end": "true"}
        content = {"metadata": {"resourceVersion": "7", "annotations": annotations}}
        decoded = ObjectDecoder(PODS).event(line({"type": "BOOKMARK", "object": content}))
        assert decoded == Bookmark("7", initial_events_end=True)

    @pytest.mark.parametrize("resource", [PODS, NODES, BARE], ids=lambda r: r.plural)
    def test_an_error_event_is_the_error_it_carries(self, resource: Resource[_Bare]) -> None:
        decoded = ObjectDecoder(resource).event(line(gone_event("too old")))
        assert isinstance(decoded, Gone)
        assert decoded.message == "too old"
        failed = line({"type": "ERROR", "object": status_object(500, "InternalError")})
        assert isinstance(ObjectDecoder(resource).event(failed), ServerError)

    def test_an_unreadable_object_is_named_as_far_as_it_can_be(self) -> None:
        content = bad_pod("p")
        content["metadata"] |= {"uid": "u", "resourceVersion": "5"}
        decoded = ObjectDecoder(PODS).event(line({"type": "DELETED", "object": content}))
        assert isinstance(decoded, Undecodable)
        assert (decoded.type, decoded.key, decoded.uid) == ("DELETED", "a/p", "u")
        assert decoded.resource_version == "5"
        assert "$.object.spec.priority" in decoded.problem

    @pytest.mark.parametrize(
        "content",
        [{}, {"metadata": None}, {"metadata": {"name": 5}}, {"metadata": {}}, 7],
        ids=str,
    )
    def test_an_object_without_a_name_has_no_key(self, content: object) -> None:
        decoded = ObjectDecoder(PODS).event(line({"type": "ADDED", "object": content}))
        assert isinstance(decoded, Undecodable)
        assert decoded.key == ""

    @pytest.mark.parametrize(
        "data",
        [
            b"<html>",
            b"{",
            b"{}",
            b"[]",
            b'{"type":"RENAMED","object":{"metadata":{"name":"p"}}}',
            b'{"type":"ERROR"}',
            b'{"type":"BOOKMARK","object":5}',
            encode(status_object(500, "InternalError")),
        ],
        ids=repr,
    )
    def test_what_is_no_event_breaks_the_stream(self, data: bytes) -> None:
        with pytest.raises(StreamError) as caught:
            ObjectDecoder(PODS).event(data)
        assert caught.value.reason == "malformed"

    def test_nesting_beyond_measure_breaks_the_stream(self) -> None:
        deep = b"[" * 100_000
        with pytest.raises(StreamError):
            ObjectDecoder(PODS).event(b'{"type":"ADDED","object":{"x":' + deep)


class TestLists:
    """Lists are taken apart item by item."""

    @pytest.fixture(params=["small", "big"])
    def any_size(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.param == "big":
            monkeypatch.setattr(decoding, "BIG_LIST_BYTES", 0)

    @pytest.mark.usefixtures("any_size")
    def test_one_bad_item_spoils_no_other(self) -> None:
        body = {
            "kind": "PodList",
            "metadata": {"resourceVersion": "9", "continue": "token"},
            "items": [pod("p"), bad_pod("bad"), pod("ü"), 5],
        }
        page = read_list(encode(body))
        decoder = ObjectDecoder(PODS)
        items = [decoder.object(raw) for raw in page.items]
        keys = [i.key if isinstance(i, Undecodable) else i.metadata.name for i in items]
        assert keys == ["p", "a/bad", "ü", ""]
        assert page.metadata.resource_version == "9"
        assert page.metadata.continue_ == "token"

    @pytest.mark.usefixtures("any_size")
    @pytest.mark.parametrize("items", [[], None], ids=["empty", "null"])
    def test_a_list_may_hold_nothing(self, items: list[object] | None) -> None:
        page = read_list(encode({"metadata": {"resourceVersion": "9"}, "items": items}))
        decoder = ObjectDecoder(PODS)
        readable = [raw for raw in page.items if not isinstance(decoder.object(raw), Undecodable)]
        assert readable == []
        assert page.metadata.resource_version == "9"

    @pytest.mark.usefixtures("any_size")
    @pytest.mark.parametrize(
        "body",
        [
            b"<html>",
            b"",
            b"[1]",
            b'{"items":[{}',
            b'{"items":[{} {}]}',
            b'{"metadata":5,"items":[]}',
        ],
        ids=repr,
    )
    def test_what_is_no_list_is_a_broken_answer(self, body: bytes) -> None:
        with pytest.raises(StreamError):
            list(read_list(body).items)

    @pytest.mark.usefixtures("any_size")
    def test_nesting_beyond_measure_is_a_broken_answer(self) -> None:
        with pytest.raises(StreamError):
            list(read_list(b'{"items":[' + b"[" * 100_000).items)

    def test_a_big_list_is_walked_with_any_spacing(self) -> None:
        body = json.dumps({"a": {"b": "]},{"}, "items": [1, {"x": "}"}], "z": []}, indent=2)
        pairs = [(member, json.loads(value)) for member, value in split_big_list(body.encode())]
        assert pairs == [
            ("a", {"b": "]},{"}),
            ("items", 1),
            ("items", {"x": "}"}),
            ("z", []),
        ]


def test_the_memory_of_named_objects_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    log = UndecodableLog("pods", Metrics().kube)
    for index in range(REMEMBERED + 1):
        log.report(Undecodable("ADDED", "bad", key=f"a/{index}"))
    log.report(Undecodable("ADDED", "bad", key=f"a/{REMEMBERED}"))
    assert len(caplog.records) == REMEMBERED + 1
    log.report(Undecodable("ADDED", "bad", key="a/0"))
    assert len(caplog.records) == REMEMBERED + 2
    assert len(log._named) == REMEMBERED


class TestCustomResources:
    """Declared paths, and nothing else, of what the API server sends."""

    RANK = "metadata.annotations.rank"
    DECODER = ObjectDecoder(
        resource_of(custom_kind("G", "gs.x.io", version="v1", paths=["spec.size", RANK]))
    )
    CONTENT = {  # noqa: RUF012  read only
        "apiVersion": "x.io/v1",
        "kind": "G",
        "metadata": {"name": "g", "namespace": "a", "annotations": {"rank": "1", APPLIED: "x"}},
        "spec": {"size": 3, "other": [1]},
        "status": {"running": 2},
    }

    @pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
    def test_a_change_has_the_declared_paths(self, kind: str) -> None:
        event = self.DECODER.event(line({"type": kind, "object": self.CONTENT}))
        assert isinstance(event, WatchEvent)
        assert event.type == kind
        assert isinstance(event.object, CustomObject)
        assert event.object.content == {"spec.size": 3, self.RANK: "1"}
        assert event.object.metadata.annotations is None
        assert self.DECODER.object(encode(self.CONTENT)) == event.object

    def test_a_bookmark_says_that_the_first_events_are_over(self) -> None:
        annotations = {"k8s.io/initial-events-end": "true"}
        content = {"metadata": {"resourceVersion": "7", "annotations": annotations}}
        found = self.DECODER.event(line({"type": "BOOKMARK", "object": content}))
        assert found == Bookmark("7", initial_events_end=True)

    def test_an_error_event_is_the_error_it_carries(self) -> None:
        assert isinstance(self.DECODER.event(line(gone_event())), Gone)

    def test_what_cannot_be_read_is_identified(self) -> None:
        content = self.CONTENT | {"metadata": {"name": "g", "namespace": "a", "labels": 5}}
        found = self.DECODER.object(encode(content))
        assert isinstance(found, Undecodable)
        assert found.key == "a/g"
