"""A server that does not have a resource: it counts as empty, and is asked for again."""

import asyncio

import pytest

from k8s_scheduler.api.kinds import BUILT_IN, Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.kube.errors import OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.resources import PODS, Resource, resource_of
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle, virtual_time
from tests.fakes.harness import PODS_PATH, pod, watched
from tests.fakes.transport import WATCH, FakeStream, Request, status

CLASSES = resource_of(Kind.DEVICE_CLASS)
CORE = [PODS, *(resource_of(kind) for kind in BUILT_IN if not kind.group)]
ABSENT = "k8s_scheduler_reflector_absent"
FAILURES = "k8s_scheduler_reflector_failures_total"
SAID = "API server does not serve this resource; taken as empty until it does"
# A group that is not there at all, and a resource that its group does not have.
ANSWERS = [
    Response(404, b"404 page not found\n"),
    status(404, "NotFound", "the server could not find the requested resource"),
]


class Server(FakeApi):
    """A server that lacks device classes for as long as it has an answer for who asks for them."""

    absent: Response | None = None

    def open(self, request: Request) -> FakeStream:
        if self.absent is not None and request.path == CLASSES.list_path:
            return FakeStream(self.absent.status, body=self.absent.body)
        return super().open(request)

    def answer(self, request: Request) -> Response:
        if self.absent is not None and request.path == CLASSES.list_path:
            return self.absent
        return super().answer(request)


def said(caplog: pytest.LogCaptureFixture, text: str) -> list[dict[str, object]]:
    return [r.__dict__["fields"] for r in caplog.records if r.message == text]


@pytest.mark.parametrize("answer", ANSWERS, ids=["no such group", "no such resource"])
def test_it_is_synced_and_empty_at_once(answer: Response) -> None:
    @virtual_time
    async def case() -> None:
        api = Server()
        api.absent = answer
        async with watched(api, CLASSES, wait=False) as running:
            await settle()
            assert running.informer.synced.is_set()
            assert asyncio.get_running_loop().time() == 0
            assert running.informer.is_absent
            assert not running.informer.store
            assert running.count(ABSENT, resource="deviceclasses") == 1
            assert running.count(FAILURES, resource="deviceclasses", reason="404") == 1

    case()


def test_it_is_said_once_and_asked_for_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @virtual_time
    async def case() -> None:
        api = Server()
        api.absent = ANSWERS[0]
        async with watched(api, CLASSES):
            await asyncio.sleep(3600)
            assert 100 < len(api.asked(WATCH)) < 150

    case()
    (fields,) = said(caplog, SAID)
    assert fields["resource"] == "deviceclasses"
    assert fields["api_version"] == "resource.k8s.io/v1"
    assert len(caplog.records) == 1


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "paged"])
def test_it_is_listed_and_watched_once_the_server_has_it(
    caplog: pytest.LogCaptureFixture, *, streaming: bool
) -> None:
    @virtual_time
    async def case() -> None:
        api = Server(streaming_lists=streaming)
        api.absent = ANSWERS[0]
        async with watched(api, CLASSES) as running:
            await asyncio.sleep(100)
            api.absent = None
            api.create(CLASSES.list_path, {"metadata": {"name": "gpu"}})
            await asyncio.sleep(31)
            api.create(CLASSES.list_path, {"metadata": {"name": "fpga"}})
            await settle()
            assert running.told() == ["add gpu", "add fpga"]
            assert not running.informer.is_absent
            assert running.count(ABSENT, resource="deviceclasses") == 0

    caplog.set_level("INFO")
    case()
    assert len(said(caplog, "list and watch work again")) == 1


@virtual_time
async def test_what_was_known_stays_when_the_server_no_longer_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As when a load balancer turns to a server that is not upgraded yet."""
    api = Server()
    api.create(CLASSES.list_path, {"metadata": {"name": "gpu"}})
    async with watched(api, CLASSES) as running:
        api.absent = ANSWERS[0]
        api.break_watches(OutcomeUnknown("reset"))
        await asyncio.sleep(100)
        assert running.informer.is_absent
        assert set(running.informer.store) == {"gpu"}
        api.absent = None
        api.delete(CLASSES.object_path("gpu"))
        await asyncio.sleep(31)
        # A list, and not a watch from where it was: what happened meanwhile is not missed.
        assert running.told() == ["add gpu", "delete gpu"]
    assert len(said(caplog, SAID)) == 1


@virtual_time
async def test_it_is_said_again_when_it_is_gone_again(caplog: pytest.LogCaptureFixture) -> None:
    api = Server()
    api.absent = ANSWERS[0]
    async with watched(api, CLASSES) as running:
        api.absent = None
        await asyncio.sleep(60)
        assert not running.informer.is_absent
        api.absent = ANSWERS[0]
        api.drop_watches()
        await settle()
        assert running.informer.is_absent
    assert len(said(caplog, SAID)) == 2


@virtual_time
async def test_catching_up_does_not_wait_for_what_is_not_there() -> None:
    api = Server()
    api.absent = ANSWERS[0]
    async with watched(api, CLASSES) as running:
        before = len(api.asked(WATCH))
        await asyncio.wait_for(running.informer.catch_up(), 60)
        assert len(api.asked(WATCH)) == before + 1


@pytest.mark.parametrize("resource", CORE, ids=lambda resource: resource.plural)
def test_the_core_group_is_waited_for(resource: Resource[ClusterObject]) -> None:
    """A server without pods or namespaces is none: somebody else answers in its place."""

    @virtual_time
    async def case() -> None:
        api = FakeApi()
        api.script(WATCH, resource.list_path, *([ANSWERS[0]] * 5))
        async with watched(api, resource, wait=False) as running:
            await settle()
            assert not running.informer.synced.is_set()
            await asyncio.sleep(100)
            assert running.informer.synced.is_set()
            assert running.count(FAILURES, resource=resource.plural, reason="404") == 5
            assert running.count(ABSENT, resource=resource.plural) == 0

    case()


class TestForbidden:
    """A missing right is named, and waited for: an unknown is not an empty cluster."""

    TEXT = (
        'deviceclasses.resource.k8s.io is forbidden: User "system:serviceaccount:a:b" cannot '
        'watch resource "deviceclasses" in API group "resource.k8s.io" at the cluster scope'
    )

    @virtual_time
    async def test_the_right_is_named_with_its_group(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = FakeApi()
        api.script(WATCH, CLASSES.list_path, *([status(403, "Forbidden", self.TEXT)] * 5))
        async with watched(api, CLASSES, wait=False) as running:
            await asyncio.sleep(5)
            assert not running.informer.synced.is_set()
            await asyncio.sleep(60)
            assert running.informer.synced.is_set()
            assert running.count(FAILURES, resource="deviceclasses", reason="403") == 5
        text = "missing permission: watch deviceclasses.resource.k8s.io"
        (fields,) = said(caplog, text)
        assert fields["user"] == "system:serviceaccount:a:b"
        assert fields["error"] == f"403 Forbidden: {self.TEXT}"

    @virtual_time
    async def test_a_refusal_that_no_role_can_lift_is_not_called_a_missing_one(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = FakeApi()
        api.create(PODS_PATH, pod("p"))
        api.script(WATCH, PODS_PATH, Response(403, b"<html>blocked</html>"))
        async with watched(api, PODS):
            pass
        # That it works again is said too, if the block lasts that long.
        said = [r.message for r in caplog.records if r.message != "list and watch work again"]
        assert said == ["forbidden, though not by RBAC"]
