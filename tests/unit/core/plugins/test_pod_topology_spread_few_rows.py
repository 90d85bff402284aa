"""Few rows are scored without arrays: what comes out is the same to the last bit."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.plugins.pod_topology_spread import scoring
from tests.unit.core.plugins.test_pod_topology_spread import (
    HOSTNAME,
    ZONE,
    Bench,
    newcomer,
    soft,
    web,
)


@pytest.mark.parametrize("is_bare_there", [False, True])
@pytest.mark.parametrize(
    "more", [{}, {"nodeSelector": {ZONE: "a"}}], ids=["all count", "some count"]
)
@pytest.mark.parametrize(
    "constraints",
    [[soft(maxSkew=3)], [soft(), soft(HOSTNAME, maxSkew=2)], [soft(HOSTNAME), soft()], []],
)
def test_few_rows_score_as_many_do(constraints, more, is_bare_there, monkeypatch):
    bench = Bench().place(*(web(f"p{i}", ("a1", "a2", "b1", "a1")[i % 4]) for i in range(11)))
    bench.owner(Kind.SERVICE, "s", {"app": "web"})
    if not is_bare_there:
        bench.remove("bare")
    pod = newcomer(*constraints, **more)
    few = bench.raw_scores(pod, "a1", "a2", "b1")
    scaled_few = bench.scores(pod, "a1", "a2", "b1")
    assert len(set(few)) > 1
    monkeypatch.setattr(scoring, "FEW", 0)
    assert bench.raw_scores(pod, "a1", "a2", "b1") == few
    assert bench.scores(pod, "a1", "a2", "b1") == scaled_few
