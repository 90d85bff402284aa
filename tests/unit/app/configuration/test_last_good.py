"""The last good configuration is saved by who leads, and why it could not be is said."""

import asyncio
import json

import pytest

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.last_good import LastGoodKeeper
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import FakeTransport, Lost, status
from tests.unit.kube.write_fakes import running

NAME = ConfigMapName("m", "ns")
PATH = "/api/v1/namespaces/ns/configmaps/m"
EMPTY = Response(200, json.dumps({"metadata": {"uid": "u", "resourceVersion": "7"}}).encode())


class Keeping:
    """A keeper, and whether it leads."""

    def __init__(self):
        self.api = FakeTransport()
        self.metrics = Metrics()
        self.leading = True
        self.keeper = LastGoodKeeper(
            self.api,
            may_write=lambda: self.leading,
            call_timeout_seconds=3.0,
            metrics=self.metrics.config,
        )

    def methods(self):
        return [request.method for request in self.api.requests]

    def saved(self):
        return self.metrics.registry.get_sample_value("k8s_scheduler_config_last_good_saved")


@virtual_time
async def test_a_leader_saves_it_as_fast_as_any_of_its_writes_has_to_be():
    scene = Keeping()
    scene.api.script("GET", PATH, EMPTY)
    scene.api.script("PATCH", PATH, Response(200))
    scene.keeper.keep(NAME, "text")
    async with running(scene.keeper.run()):
        await settle()
    assert scene.methods() == ["GET", "PATCH"]
    assert scene.api.requests[1].timeout_seconds == 3.0
    assert scene.saved() == 1


@virtual_time
async def test_who_is_replaced_while_it_reads_does_not_write():
    scene = Keeping()

    def replaced(_request):
        scene.leading = False
        return EMPTY

    scene.api.script("GET", PATH, replaced)
    scene.keeper.keep(NAME, "text")
    async with running(scene.keeper.run()):
        await settle()
    assert scene.methods() == ["GET"]
    assert scene.saved() == 0


@virtual_time
async def test_it_replaces_nothing_but_what_was_read():
    """One that arrives late, after the next leader's, must not bring the old one back."""
    scene = Keeping()
    scene.api.script("GET", PATH, EMPTY)
    scene.api.script("PATCH", PATH, status(409, "Conflict"))
    scene.keeper.keep(NAME, "text")
    async with running(scene.keeper.run()):
        await settle()
        assert scene.api.requests[1].json()["metadata"]["resourceVersion"] == "7"
        assert scene.saved() == 0
        # What stands there now is looked at before the next try.
        scene.api.script("GET", PATH, EMPTY)
        scene.api.script("PATCH", PATH, Response(200))
        await asyncio.sleep(20)
    assert scene.methods() == ["GET", "PATCH"] * 2
    assert scene.saved() == 1


class TestDrain:
    """Whoever stops sees to its end what may still arrive, and begins nothing more."""

    @virtual_time
    async def test_a_patch_under_way_is_waited_for(self):
        scene, time = Keeping(), asyncio.get_running_loop().time
        scene.api.script("GET", PATH, EMPTY)
        scene.api.script("PATCH", PATH, Lost(after_seconds=2.0))
        scene.keeper.keep(NAME, "text")
        async with running(scene.keeper.run()):
            await settle()
            began = time()
            assert await scene.keeper.drain(30.0) == 0
            assert time() - began == pytest.approx(2.0)
            await asyncio.sleep(60)
        assert scene.methods() == ["GET", "PATCH"]

    @virtual_time
    async def test_but_not_for_ever(self):
        scene = Keeping()
        scene.api.script("GET", PATH, EMPTY)
        scene.api.script("PATCH", PATH, Lost(after_seconds=2.0))
        scene.keeper.keep(NAME, "text")
        async with running(scene.keeper.run()):
            await settle()
            assert await scene.keeper.drain(1.0) == 1

    @virtual_time
    async def test_what_was_only_read_by_then_is_not_written(self, caplog):
        scene = Keeping()
        scene.api.script("GET", PATH, EMPTY)
        scene.api.connecting_seconds = 1.0
        scene.keeper.keep(NAME, "text")
        async with running(scene.keeper.run()):
            await settle()
            assert await scene.keeper.drain(30.0) == 0
            await asyncio.sleep(60)
        assert scene.methods() == ["GET"]
        assert caplog.text == ""

    @virtual_time
    async def test_without_anything_to_save_nobody_waits(self):
        assert await Keeping().keeper.drain(30.0) == 0


def refused(verb):
    message = f'configmaps "m" is forbidden: User "u" cannot {verb} resource "configmaps" in ...'
    return status(403, "Forbidden", message)


async def keep_once(api):
    """Let it try once; the pause before the next try ends it."""

    async def sleep(_seconds):
        raise asyncio.CancelledError

    keeper = LastGoodKeeper(
        api,
        may_write=lambda: True,
        call_timeout_seconds=3.0,
        metrics=Metrics().config,
        sleep=sleep,
    )
    keeper.keep(NAME, "text")
    with pytest.raises(asyncio.CancelledError):
        await keeper.run()


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_a_right_that_is_missing_is_named(caplog, verb):
    api = FakeTransport()
    api.script("GET", PATH, refused("get") if verb == "get" else EMPTY)
    api.script("PATCH", PATH, refused("patch"))
    await keep_once(api)
    (record,) = caplog.records
    assert record.getMessage() == (
        "The last good configuration is not saved: "
        f"missing permission: {verb} configmaps in namespace ns"
    )
    assert record.fields["advice"] == "allow get and patch on it by a Role"


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (status(404, "NotFound"), "create it, empty"),
        (status(403, "Forbidden", "a webhook says no"), "it is tried again"),
    ],
    ids=["missing", "forbidden by somebody else"],
)
async def test_no_right_is_named_where_none_would_help(caplog, answer, advice):
    api = FakeTransport()
    api.script("GET", PATH, answer)
    await keep_once(api)
    (record,) = caplog.records
    assert record.getMessage() == "The last good configuration is not saved"
    assert record.fields["advice"] == advice
