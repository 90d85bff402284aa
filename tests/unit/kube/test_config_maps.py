"""ConfigMaps by name: read, waited for, written."""

import json

import pytest

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.kube.config_maps import (
    one_config_map,
    read_config_map,
    read_patiently,
    write_config_map,
)
from k8s_scheduler.kube.errors import Forbidden, NotFound, NotSent, TransportError
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import MERGE_PATCH, Response
from k8s_scheduler.kube.watch.queries import watch_query
from tests.fakes.clock import FakeClock
from tests.fakes.transport import FakeTransport, status

NAME = ConfigMapName("m", "ns")
PATH = "/api/v1/namespaces/ns/configmaps/m"
FOUND = Response(200, json.dumps({"metadata": {"uid": "u"}, "data": {"k": "v"}}).encode())


def test_list_and_watch_name_the_one_that_rights_are_limited_to():
    resource = one_config_map(NAME)
    assert resource.list_path == "/api/v1/namespaces/ns/configmaps"
    query = watch_query(resource, "7", timeout_seconds=60)
    assert query["fieldSelector"] == "metadata.name=m"


async def test_it_is_read():
    api = FakeTransport()
    api.script("GET", PATH, FOUND)
    found = await read_config_map(api, NAME)
    assert (found.data, found.metadata.uid) == ({"k": "v"}, "u")


@pytest.mark.parametrize("body", [b"{garbage", b'{"x":' + b"[" * 9999], ids=["garbage", "deep"])
async def test_an_answer_that_makes_no_sense_is_no_answer(body):
    api = FakeTransport()
    api.script("GET", PATH, Response(200, body))
    with pytest.raises(TransportError, match="can't be read"):
        await read_config_map(api, NAME)


async def test_a_server_that_is_not_there_yet_is_waited_for():
    api, clock = FakeTransport(), FakeClock()
    api.script("GET", PATH, NotSent("refused"), status(503, "Busy"), status(429, "Slow"), FOUND)
    found = await read_patiently(api, NAME, patience_seconds=30, sleep=clock.sleep)
    assert found.data == {"k": "v"}
    assert len(clock.slept) == 3


async def test_but_not_for_ever():
    api, clock = FakeTransport(), FakeClock()
    api.script("GET", PATH, *[NotSent("refused")] * 100)
    with pytest.raises(NotSent):
        await read_patiently(api, NAME, patience_seconds=30, sleep=clock.sleep)
    assert 30 <= sum(clock.slept) < 40


@pytest.mark.parametrize(("code", "error"), [(404, NotFound), (403, Forbidden)])
async def test_what_will_not_pass_is_not_waited_for(code, error):
    api, clock = FakeTransport(), FakeClock()
    api.script("GET", PATH, status(code, "No"))
    with pytest.raises(error):
        await read_patiently(api, NAME, patience_seconds=30, sleep=clock.sleep)
    assert clock.slept == []


async def test_writing_changes_only_what_is_named():
    api = FakeTransport()
    api.script("PATCH", PATH, Response(200))
    caller = Caller(transport=api, timeout_seconds=4.0)
    await write_config_map(caller, NAME, {"k": "v"}, {"a": "b"}, version="7")
    (request,) = api.requests
    assert request.content_type == MERGE_PATCH
    assert request.json() == {
        "metadata": {"resourceVersion": "7", "annotations": {"a": "b"}},
        "data": {"k": "v"},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ns/m", ("ns", "m", "")),
        ("ns/m:a.yaml", ("ns", "m", "a.yaml")),
        ("m", ("", "m", "")),
        ("m:k", ("", "m", "k")),
    ],
)
def test_names_are_read_and_written_alike(text, expected):
    name = ConfigMapName.parse(text, with_key=True)
    assert (name.namespace, name.name, name.key) == expected
    assert str(name) == text


@pytest.mark.parametrize("text", ["", "/m", "ns/", "ns/m:", "a/b/c", "ns/M", "ns/m:a b"])
def test_what_cannot_be_a_name_is_refused(text):
    with pytest.raises(ValueError, match="cannot be"):
        ConfigMapName.parse(text, with_key=True)
