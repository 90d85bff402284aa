"""Pods that the kubelet would not run are told from pods that were deleted."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.errors import CredentialsError, NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.rejections import TRIES, Rejections
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.clock import FakeClock, settle
from tests.fakes.transport import FakeTransport, status

PATH = "/api/v1/namespaces/a/pods/p"


def pod(scheduler: str = "ours", **changes) -> Pod:
    """Return a pod that was bound and is not started."""
    raw = {
        "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "spec": {"nodeName": "n", "schedulerName": scheduler},
        "status": {"phase": "Pending"},
    }
    return msgspec.convert({key: part | changes.get(key, {}) for key, part in raw.items()}, Pod)


def disrupted(reason: str, said: str = "True") -> dict[str, str]:
    """Return the condition of a pod that has to go."""
    return {"type": "DisruptionTarget", "status": said, "reason": reason}


def answer(reason: str = "OutOfcpu", *, uid: str = "u", phase: str = "Failed") -> Response:
    """Return what the server has of it."""
    said = {"phase": phase, "reason": reason, "message": "Pod was rejected: no room"}
    return Response(200, msgspec.json.encode({"metadata": {"uid": uid}, "status": said}))


class Scene:
    def __init__(self, *, may_look: bool = True) -> None:
        self.api = FakeTransport()
        self.may_look = may_look
        self.clock = FakeClock()
        self.metrics = Metrics()
        self.rejections = Rejections(
            Caller(
                transport=self.api,
                may_write=lambda: self.may_look,
                timeout_seconds=4.0,
                timing=self.clock.timing(uniform=lambda: 0.0),
            ),
            metrics=self.metrics.kube,
            is_ours={"ours"}.__contains__,
        )

    def counted(self) -> dict[tuple[str, str], float]:
        return {
            (s.labels["reason"], s.labels["scheduler"]): s.value
            for family in self.metrics.registry.collect()
            for s in family.samples
            if s.name == "k8s_scheduler_pods_rejected_total"
        }


@asynccontextmanager
async def watching(*answers, **options) -> AsyncIterator[Scene]:
    scene = Scene(**options)
    scene.api.script("GET", PATH, *answers)
    task = asyncio.create_task(scene.rejections.run())
    try:
        yield scene
    finally:
        await settle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("OutOfcpu", "OutOfcpu"),
        ("OutOfmemory", "OutOfmemory"),
        ("OutOfpods", "OutOfpods"),
        ("NodeAffinity", "NodeAffinity"),
        ("OutOfexample.com/gpu", "OutOfother"),
        ("SomethingNew", "other"),
    ],
)
async def test_a_rejected_pod_is_counted_by_the_kubelets_reason(reason, label):
    async with watching(answer(reason)) as scene:
        scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {(label, "ours"): 1}


async def test_pods_of_others_are_told_apart(caplog):
    with caplog.at_level(logging.WARNING):
        async with watching(answer()) as scene:
            scene.rejections.pod_changed(pod("somebody"), None)
    assert scene.counted() == {("OutOfcpu", "others"): 1}
    (record,) = caplog.records
    assert record.fields == {
        "pod": "a/p",
        "node": "n",
        "scheduler": "somebody",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: no room",
    }


@pytest.mark.parametrize(
    "found",
    [
        status(404, "NotFound"),
        answer(uid="another"),
        answer(phase="Running"),
        answer(reason=""),
    ],
    ids=["deleted", "a namesake", "alive", "failed by itself"],
)
async def test_what_is_no_rejection_is_not_counted(found):
    async with watching(found) as scene:
        scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {}
    assert len(scene.api.requests) == 1


@pytest.mark.parametrize(
    "left",
    [
        pod(status={"startTime": "2026-01-01T00:00:00Z"}),
        pod(status={"phase": "Running"}),
        pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod(spec={"nodeName": ""}),
        pod(status={"conditions": [disrupted("PreemptionByScheduler")]}),
    ],
    ids=["started", "running", "being deleted", "never bound", "preempted"],
)
async def test_pods_that_end_as_usual_are_not_read(left):
    async with watching() as scene:
        scene.rejections.pod_changed(left, None)
        scene.rejections.pod_changed(None, pod())
        scene.rejections.pod_changed(pod(), pod())
    assert scene.api.requests == []


@pytest.mark.parametrize(
    "condition",
    [disrupted("EvictionByEvictionAPI"), disrupted("PreemptionByScheduler", "False")],
    ids=["another reason", "not any more"],
)
async def test_other_disruptions_say_nothing_of_the_kubelet(condition):
    async with watching(answer()) as scene:
        scene.rejections.pod_changed(pod(status={"conditions": [condition]}), None)
    assert scene.counted() == {("OutOfcpu", "ours"): 1}


async def test_a_standby_asks_nothing():
    async with watching(may_look=False) as scene:
        scene.rejections.pod_changed(pod(), None)
    assert scene.api.requests == []


@pytest.mark.parametrize(
    "trouble",
    [
        status(403, "Forbidden"),
        Response(200),
        Response(200, b'{"x":' + b"[" * 9999),
    ],
    ids=["forbidden", "empty", "deep"],
)
async def test_trouble_with_one_pod_does_not_end_it(trouble, caplog):
    async with watching(trouble, answer()) as scene:
        scene.rejections.pod_changed(pod(), None)
        scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {("OutOfcpu", "ours"): 1}
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        NotSent("refused"),
        OutcomeUnknown("reset"),
        CredentialsError("no token"),
        status(408, "Timeout"),
        status(429, "TooManyRequests"),
        status(503, "ServiceUnavailable"),
    ],
    ids=["refused", "reset", "no token", "408", "429", "503"],
)
async def test_a_bad_moment_of_the_server_hides_no_rejection(trouble, caplog):
    async with watching(trouble, trouble, answer()) as scene:
        scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {("OutOfcpu", "ours"): 1}
    assert scene.clock.slept == [0.2, 0.4]
    assert caplog.messages == ["A pod was rejected by its kubelet"]


async def test_a_server_that_asks_for_time_gets_it():
    busy = status(429, "TooManyRequests", Retry_After="7")
    async with watching(busy, answer()) as scene:
        scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {("OutOfcpu", "ours"): 1}
    assert scene.clock.slept == [7.0]


async def test_trouble_that_lasts_is_told_once_and_does_not_end_it(caplog):
    async with watching(*[NotSent("refused")] * 2 * TRIES, answer()) as scene:
        for _ in range(3):
            scene.rejections.pod_changed(pod(), None)
    assert scene.counted() == {("OutOfcpu", "ours"): 1}
    assert caplog.messages == [
        "can't see why a pod ended: refused",
        "A pod was rejected by its kubelet",
    ]


async def test_who_leads_no_longer_asks_no_more(caplog):
    async with watching(NotSent("refused"), answer()) as scene:
        scene.rejections.pod_changed(pod(), None)
        scene.may_look = False
    assert len(scene.api.requests) == 1
    assert caplog.messages == []


async def test_a_flood_keeps_the_latest():
    scene = Scene()
    for i in range(1500):
        scene.rejections.pod_changed(pod(metadata={"uid": str(i)}), None)
    assert scene.rejections._line.qsize() == 1000
    assert scene.rejections._line.get_nowait().metadata.uid == "500"
