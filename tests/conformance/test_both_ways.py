"""Keeping evaluations changes no decision of a living sequence."""

import pytest

from k8s_scheduler.core.engine.shapes import groups
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from tests.conformance.both_ways import BothWays


@pytest.mark.parametrize("few_domains", [0, 2, 32])
def test_sequences_are_decided_alike_in_both_ways(few_domains, monkeypatch):
    monkeypatch.setattr(groups.LIMITS, "few_domains", few_domains)
    monkeypatch.setattr(PodCounter, "LOGGED", 8 if few_domains else PodCounter.LOGGED)
    both = BothWays()
    assert list(both.differences(7000 + few_domains, count=6, steps=20)) == []
    assert both.decisions > 300
    assert both.answered_share > 0.6
