"""Why the last good configuration could not be kept is said, down to the right that is missing."""

import asyncio
import json

import pytest

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.last_good import LastGoodKeeper
from k8s_scheduler.kube.http import Response
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.transport import FakeTransport, status

WHERE = ConfigMapName("kept", "ns")
PATH = "/api/v1/namespaces/ns/configmaps/kept"
EMPTY = Response(200, json.dumps({"metadata": {"name": "kept"}}).encode())


def refused(verb):
    message = f'configmaps "kept" is forbidden: User "u" cannot {verb} resource "configmaps" in ...'
    return status(403, "Forbidden", message)


async def keep_once(api):
    """Let it try once; the pause before the next try ends it."""

    async def sleep(_seconds):
        raise asyncio.CancelledError

    keeper = LastGoodKeeper(api, may_write=lambda: True, metrics=Metrics().config, sleep=sleep)
    keeper.keep(WHERE, "text")
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
