"""Whole columns decide what the scalar rules decide, node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.profile import compile_profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.scoring import broken_linear
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.property.strategies import nodes, pods
from tests.reference import scalar
from tests.unit.core.harness import profile
from tests.unit.core.plugins.plugin_bench import made

PROFILE = compile_profile(default_configuration(known_plugins()).profiles[0], BUILT_INS)
WEIGHTS = {step.name: step.weight for step in PROFILE.scores}


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
    runtime = Runtime(cache, verdicts)
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
        scored = runtime.run_scores(PROFILE, PodView(pod), filtered.feasible)
        expected = scalar.scores_by_plugin(pod, feasible, [node for node, _ in cluster])
        assert {
            name: [score // WEIGHTS[name] for score in column.tolist()]
            for name, column in scored.by_plugin.items()
        } == expected
        assert scored.totals.tolist() == [
            sum(WEIGHTS[name] * column[i] for name, column in expected.items())
            for i in range(len(feasible))
        ]


@given(
    points=st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).map(sorted),
    scores=st.lists(st.integers(0, 10), min_size=4, max_size=4),
    used=st.lists(st.tuples(st.integers(0, 150), st.integers(1, 100)), min_size=1, max_size=8),
)
def test_shapes_equal_the_scalar_reference(points, scores, used):
    shape = [(u, 10 * s) for u, s in zip(points, scores, strict=False)]
    requested, capacity = (np.array(column) for column in zip(*used, strict=True))
    assert broken_linear(shape)(requested, capacity).tolist() == [
        scalar.ratio(shape, r, c) for r, c in used
    ]


@pytest.mark.parametrize(
    ("kind", "expected"), [("LeastAllocated", 75), ("MostAllocated", 25), (None, 75)]
)
def test_strategies(kind, expected):
    strategy = {"scoringStrategy": {"type": kind}} if kind else {}
    fit = made("NodeResourcesFit", **strategy)
    cache = Cache()
    cache.put_node(make_node("n").obj())
    view = RowsView(
        cache,
        np.array([0]),
        reader=Reading(fit.name, Declarations(fit.depends_on)),
        verdicts=VerdictTable(),
    )
    term = fit.pre_score(PodView(make_pod("p").request(cpu="1", memory="2Gi").obj()), view)
    assert fit.score(term, view).tolist() == [expected]


def test_weights_multiply_scores():
    heavy = profile()
    heavy.points["score"] = (PluginUse("NodeResourcesFit", 7),)
    compiled = compile_profile(heavy, BUILT_INS)
    cache = Cache()
    cache.put_node(make_node("n").obj())
    runtime = Runtime(cache, VerdictTable())
    pod = PodView(make_pod("p").request(cpu="1", memory="2Gi").obj())
    assert runtime.run_scores(compiled, pod, np.array([0])).totals.tolist() == [7 * 75]
