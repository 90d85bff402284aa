"""A reload that changes limits counts for what waits and for what is placed already."""

from tests.fakes.clock import settle, virtual_time
from tests.inside import inside
from tests.unit.app.configuration.test_reload import PODS, no_threads, pod, running, text

__all__ = ("no_threads",)  # a fixture that every test here needs


def limits(pod, node):
    return (
        "---\napiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
        f"podLimits: {{affinityTerms: {pod}}}\nnodeLimits: {{taints: {node}}}\n"
    )


@virtual_time
async def test_other_limits_count_for_what_waits_and_for_what_is_placed():
    term = {"topologyKey": "zone", "labelSelector": {}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term, term, term]}
    placed, waits = pod("placed", "ours"), pod("waits", "ours")
    for each in (placed, waits):
        each["spec"]["affinity"] = {"podAntiAffinity": terms}
    placed["spec"]["nodeName"] = "n"
    taints = [{"key": f"k{i}", "effect": "NoSchedule"} for i in range(3)]
    async with running(text("ours", more=limits(2, 2))) as scene:
        scene.api.create("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": taints}})
        for each in (placed, waits):
            scene.api.create(PODS, each)
        await settle(300)
        core = scene.graph.pump.core

        def counted():
            terms = sum(map(len, inside(core).cache.pods.held_terms._holders))
            taints = len(inside(core).cache.nodes.node_at(0).spec.taints)
            (queued,) = inside(core).queue
            return terms, taints, queued.place.value

        assert counted() == (2, 2, "gated")
        scene.put(text("ours", more=limits(3, 3)))
        await scene.look()
        assert counted() == (3, 3, "active")
        scene.put(text("ours", more=limits(1, 3)))
        await scene.look()
        assert counted() == (1, 3, "gated")
