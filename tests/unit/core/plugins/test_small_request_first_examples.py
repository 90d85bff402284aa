"""SmallRequestFirst by example: of equally important pods, those that ask for little go first."""

import dataclasses

import pytest

from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.unit.core.harness import Harness, only, profile
from tests.unit.core.plugins.plugin_bench import made


class TestOrder:
    """Little goes first, but for so long only."""

    def order(self, pods, **args):
        plugin = made("SmallRequestFirst", **args)
        keyed = [(plugin.sort_key(pod.obj(), when), name) for name, pod, when in pods]
        return [name for _, name in sorted(keyed)]

    def test_small_before_large(self):
        pods = [
            ("large", make_pod("a").request(cpu="8"), 0.0),
            ("wide", make_pod("b").request(cpu="1", memory="64Gi"), 0.0),
            ("small", make_pod("c").request(cpu="100m"), 0.0),
        ]
        assert self.order(pods) == ["small", "large", "wide"]

    def test_priority_before_size(self):
        pods = [
            ("small", make_pod("a").request(cpu="100m"), 0.0),
            ("vip", make_pod("b").request(cpu="8").priority(1), 5.0),
        ]
        assert self.order(pods) == ["vip", "small"]

    def test_equals_by_time(self):
        pods = [
            ("second", make_pod("a").request(cpu="1"), 2.0),
            ("first", make_pod("b").request(cpu="1"), 1.0),
        ]
        assert self.order(pods) == ["first", "second"]

    @pytest.mark.parametrize("ageing", [10, 60])
    def test_a_large_pod_waits_no_longer_than_it_should(self, ageing):
        large = ("large", make_pod("a").request(cpu="1000"), 0.0)
        small = make_pod("b").request(cpu="1m")
        assert self.order([large, ("small", small, ageing - 1.0)], ageingSeconds=ageing) == [
            "small",
            "large",
        ]
        assert self.order([large, ("small", small, ageing + 1.0)], ageingSeconds=ageing) == [
            "large",
            "small",
        ]

    def test_it_sorts_the_queue(self):
        resolved = profile()
        points = {**resolved.points, "queueSort": (PluginUse("SmallRequestFirst", 0),)}
        h = Harness(Setup(profiles=(dataclasses.replace(resolved, points=points),)))
        h.pod(make_pod("large").request(cpu="3").obj())
        h.pod(make_pod("small").request(cpu="1").obj())
        h.node(make_node("n").obj())
        bound = [bind.name for bind in only(Bind, h.schedule())]
        assert bound[0] == "small"
