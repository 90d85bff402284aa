"""A custom resource that a plugin's arguments name comes and goes with the configuration."""

import pytest

from k8s_scheduler.api.kinds import kind_named
from k8s_scheduler.core.builtins import BUILT_INS
from tests.fakes.clock import settle, virtual_time
from tests.fakes.queue_keeper import REGISTRATION, QueueKeeper
from tests.unit.app.configuration.test_reload import no_threads, running, text

__all__ = ("no_threads",)  # a fixture that every test here needs

QUEUES = "/apis/x.io/v1/queues"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(BUILT_INS, QueueKeeper.name, REGISTRATION)


def keeping(path="spec.open", version="v1", resource="queues.x.io"):
    args = f"{{objects: Queue, resource: {resource}, version: {version}, path: '{path}'}}"
    enabled = text("ours").replace("{name: NodeName}", "{name: NodeName}, {name: QueueKeeper}")
    return f"{enabled}  pluginConfig: [{{name: QueueKeeper, args: {args}}}]\n"


def queue(*, is_open, size):
    return {"metadata": {"namespace": "ns", "name": "q"}, "spec": {"open": is_open, "size": size}}


def known(scene):
    kind = kind_named("x.io/Queue")
    return [found.content for found in scene.graph.pump.core.holdings.objects(kind)]


@virtual_time
async def test_a_kind_that_the_configuration_names_is_watched_and_let_go():
    async with running(text("ours")) as scene:
        scene.api.create(QUEUES, queue(is_open=False, size=1))
        scene.put(keeping())
        await scene.look()
        assert [informer.resource.label for informer in scene.graph.watched.others.values()] == [
            "queues.x.io"
        ]
        assert "queues.x.io" in scene.tasks
        assert known(scene) == [{"spec.open": False}]
        scene.api.update("/apis/x.io/v1/namespaces/ns/queues/q", queue(is_open=True, size=2))
        await settle(300)
        assert known(scene) == [{"spec.open": True}]
        scene.put(text("ours"))
        await scene.look()
        assert scene.graph.watched.others == {}
        assert "queues.x.io" not in scene.tasks
        assert known(scene) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (keeping(path="spec.size"), "other paths of x.io/Queue are to be read"),
        (keeping(version="v2"), "x.io/Queue is to be read elsewhere"),
        (keeping(resource="lines.x.io"), "x.io/Queue is to be read elsewhere"),
    ],
)
@virtual_time
async def test_what_the_running_watch_does_not_show_needs_a_restart(changed, problem):
    async with running(text("ours")) as scene:
        scene.put(keeping())
        await scene.look()
        scene.put(changed)
        await scene.look()
        (error,) = scene.status.refused.errors
        assert error.endswith(f"{problem}: this needs a restart")
        assert [informer.resource.version for informer in scene.graph.watched.others.values()] == [
            "v1"
        ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (keeping(path="spec..open"), "QueueKeeper: the path 'spec..open' has an empty name"),
        (keeping(resource="queues"), "QueueKeeper: a custom kind needs a name, resource.group"),
    ],
)
@virtual_time
async def test_arguments_that_name_no_kind_are_refused(changed, problem):
    async with running(text("ours")) as scene:
        scene.put(changed)
        await scene.look()
        (error,) = scene.status.refused.errors
        assert problem in error
