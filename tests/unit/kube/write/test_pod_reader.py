"""Reading single pods: what is made of each answer."""

import asyncio
from typing import Any

import pytest

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.pod_reader import PodReader, ReadOutcome, ReadRequest
from tests.fakes.clock import settle, virtual_time
from tests.fakes.transport import FakeTransport, Late, status
from tests.fakes.transport import encode as json
from tests.unit.kube.write_fakes import loop_timing, running

POD = "/api/v1/namespaces/a/pods/p"
REQUEST = ReadRequest(PodUid("u"), "a", "p", 3)


def answer(uid: str = "u", *, node: str = "n1", phase: str = "Running") -> Any:
    metadata = {"namespace": "a", "name": "p", "uid": uid, "resourceVersion": "5"}
    body = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
    response = status(200, "OK")
    return type(response)(200, json(body))


async def read(*answers: Any, requests: int = 1) -> tuple[list[ReadOutcome], FakeTransport]:
    api, outcomes = FakeTransport(), []
    api.script("GET", POD, *answers)
    reader = PodReader(
        Caller(transport=api, timeout_seconds=4.0, timing=loop_timing()), on_read=outcomes.append
    )
    async with running(reader.run()):
        for _ in range(requests):
            reader.submit(REQUEST)
        await asyncio.sleep(30.0)
        await settle()
    return outcomes, api


@virtual_time
async def test_the_pod_comes_back_with_its_attempt() -> None:
    (outcome,), _ = await read(answer())
    assert (outcome.uid, outcome.attempt) == ("u", 3)
    assert outcome.pod is not None
    assert outcome.pod.spec.node_name == "n1"


@pytest.mark.parametrize(
    "answered",
    [
        status(404, "NotFound"),
        answer("another"),
        answer(phase="Succeeded"),
        answer(phase="Failed"),
    ],
    ids=["gone", "replaced", "succeeded", "failed"],
)
@virtual_time
async def test_what_takes_no_room_any_more_is_gone(answered: Any) -> None:
    assert (await read(answered))[0] == [ReadOutcome(PodUid("u"), 3, None)]


@pytest.mark.parametrize(
    "answered",
    [
        NotSent("refused"),
        status(500, "x"),
        status(429, "x"),
        Response(200, b"{"),
        # A proxy with no server behind it knows nothing of pods.
        Response(404, b"default backend - 404"),
        Response(404, b'{"message":"no Route matched with those values"}'),
    ],
    ids=["not sent", "failure", "throttled", "garbage", "a proxy's 404", "another proxy's 404"],
)
@virtual_time
async def test_without_an_answer_nothing_is_said(
    answered: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await read(answered))[0] == []
    assert len(caplog.records) == 1


@virtual_time
async def test_a_missing_right_is_named(caplog: pytest.LogCaptureFixture) -> None:
    text = 'User "u" cannot get resource "pods" in API group ""'
    assert (await read(status(403, "Forbidden", text)))[0] == []
    assert "missing permission: get pods in namespace a" in caplog.text


@virtual_time
async def test_a_pod_is_read_once_at_a_time() -> None:
    outcomes, api = await read(Late(5.0), requests=3)
    assert len(api.asked("GET", POD)) == 1
    assert len(outcomes) == 1
