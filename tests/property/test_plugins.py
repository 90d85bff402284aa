"""Whole columns decide what the scalar rules decide, node by node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.config import PluginUse
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.profile import compile_profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.views import PodView
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod
from tests.property.strategies import nodes, pods
from tests.reference import scalar
from tests.unit.core.harness import profile

PROFILE = compile_profile(profile(), {n: r.factory for n, r in BUILT_INS.items()})


@st.composite
def clusters(draw):
    found = []
    for i in range(draw(st.integers(1, 6))):
        node = draw(nodes(f"n{i}")).obj()
        placed = [
            draw(pods(f"n{i}-p{j}")).on(f"n{i}").obj() for j in range(draw(st.integers(0, 2)))
        ]
        found.append((node, placed))
    return found


@given(cluster=clusters(), pod=pods(), wanted=st.sampled_from(["", "", "n0", "elsewhere"]))
def test_filters_and_scores_equal_the_scalar_reference(cluster, pod, wanted):
    cache = Cache()
    for node, placed in cluster:
        cache.put_node(node)
        for other in placed:
            cache.put_bound(other)
    pod = (pod.on(wanted) if wanted else pod).obj()
    verdicts = VerdictTable()
    runtime = Runtime(cache.nodes, verdicts)
    filtered = runtime.run_filters(PROFILE, PodView(pod), cache.nodes.present_rows())
    feasible = []
    for (node, placed), code in zip(cluster, filtered.codes.tolist(), strict=True):
        expected = scalar.rejection(pod, node, placed)
        if expected is None:
            assert code == 0
            feasible.append((node, placed))
            continue
        verdict = verdicts[code]
        assert (verdict.plugin, {r.text for r in verdict.reasons}) == expected
        if verdict.plugin == "NodeResourcesFit":
            assert verdict.resolvable == scalar.is_resolvable(pod, node)
        else:
            assert not verdict.resolvable
    assert [cache.nodes.name_of(r) for r in filtered.feasible] == [
        node.metadata.name for node, _ in feasible
    ]
    if feasible:
        totals = runtime.run_scores(PROFILE, PodView(pod), filtered.feasible)
        assert totals.tolist() == scalar.total_scores(pod, feasible)


def test_weights_multiply_scores():
    heavy = profile()
    heavy.points["score"] = (PluginUse("NodeResourcesFit", 7),)
    compiled = compile_profile(heavy, {n: r.factory for n, r in BUILT_INS.items()})
    cache = Cache()
    cache.put_node(make_node("n").obj())
    runtime = Runtime(cache.nodes, VerdictTable())
    pod = PodView(make_pod("p").request(cpu="1", memory="2Gi").obj())
    assert runtime.run_scores(compiled, pod, np.array([0])).tolist() == [7 * 75]
