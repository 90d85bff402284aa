"""Whoever made a Lease where there was none gives a leader that lost it the time to notice."""

from types import SimpleNamespace

import pytest

from tests.builders import make_pod
from tests.unit.app.lifecycle_scene import Scene


async def take_over(*, newborn, pods):
    scene = Scene(elect=True)
    scene.graph.pump.core = SimpleNamespace(scheduler_names=frozenset({"default-scheduler"}))
    scene.elector.is_newborn = newborn
    scene.pods.store.update({pod.metadata.name: pod for pod in pods})
    await scene.lead()
    await scene.turn()
    return scene


@pytest.mark.parametrize(
    ("newborn", "pods"),
    [
        pytest.param(True, [], id="a new cluster"),
        pytest.param(True, [make_pod("p").obj()], id="pods that wait"),
        pytest.param(
            True, [make_pod("p").scheduler("other").on("n1").obj()], id="pods of another scheduler"
        ),
        pytest.param(False, [make_pod("p").on("n1").obj()], id="a Lease that was seen"),
    ],
)
async def test_it_decides_at_once_where_nobody_can_have_led(newborn, pods):
    scene = await take_over(newborn=newborn, pods=pods)
    assert "let others stop" not in scene.log
    assert "allow" in scene.log
    scene.stop.set()
    assert await scene.running == 0


async def test_it_waits_where_pods_were_bound_in_its_name_and_catches_up_after_that():
    scene = await take_over(newborn=True, pods=[make_pod("p").on("n1").obj()])
    assert scene.log[-1] == "let others stop"
    scene.elector.others_stopped.set()
    await scene.turn()
    waited = scene.log.index("let others stop")
    assert waited < scene.log.index("pods catch up") < scene.log.index("allow")
    scene.stop.set()
    assert await scene.running == 0


async def test_also_where_it_gave_that_lease_back_because_of_a_rival_before():
    scene = Scene(elect=True)
    scene.graph.pump.core = SimpleNamespace(scheduler_names=frozenset({"default-scheduler"}))
    scene.graph.rivals.met = 1
    scene.elector.is_newborn = True
    release = scene.elector.release

    async def release_and_know_it():
        scene.elector.is_newborn = False
        await release()

    scene.elector.release = release_and_know_it
    scene.pods.store["p"] = make_pod("p").on("n1").obj()
    await scene.lead()
    await scene.turn()
    assert scene.log[-1] == "let others stop"
    scene.stop.set()
    assert await scene.running == 0
