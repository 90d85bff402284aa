"""Promised pods are counted in on top of what is kept, and cost only what they change."""

import pytest

from k8s_scheduler.core.engine.checks.judging import Judge
from k8s_scheduler.core.engine.nominated import Excepting
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.state.pods.nominations import Nominations
from tests.builders import make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness, away, promised, spread, zoned

NODES = 60
ZONES = "abc"


class Counts:
    """How many rows filters are asked about, and how many trials are made."""

    def __init__(self, monkeypatch):
        self.rows = 0
        self.trials = 0
        filter_view, judge = Runtime.filter_view, Trial.judge

        def counting_filter(step, term, view):
            self.rows += len(view)
            return filter_view(step, term, view)

        def counting_judge(trial):
            self.trials += 1
            return judge(trial)

        monkeypatch.setattr(Runtime, "filter_view", staticmethod(counting_filter))
        monkeypatch.setattr(Trial, "judge", counting_judge)


def cluster(*, promises, app="x", demand=None):
    """Return a core with nodes in three zones; so many of them are promised to gated pods."""
    h = FullHarness()
    for number in range(NODES):
        h.node(zoned(f"n{number}", ZONES[number % 3], cpu="400").obj())
    for number in range(promises):
        h.pod(vip(number, app, demand).obj())
    return h


def vip(number, app="x", demand=None):
    pod = make_pod(f"vip-{number}").label(app=app).request(cpu="1").priority(5).gate("wait")
    return promised(pod if demand is None else demand(pod), f"n{number}")


def replica(number, demand=None):
    pod = make_pod(f"p-{number}").label(app="x").request(cpu="100m")
    return (pod if demand is None else demand(pod)).obj()


def decide(h, count, demand=None, first=0):
    for number in range(first, first + count):
        h.pod(replica(number, demand))
        assert len(h.binds()) == 1


def by_zone(pod):
    return spread(pod, "zone", app="x")


def by_host(pod):
    return away(pod, key="host", app="x")


class TestWhatItCosts:
    """A decision costs what changed since the last one, however many pods were promised room."""

    @pytest.mark.parametrize("app", ["x", "other"])
    @pytest.mark.parametrize("demand", [None, by_zone, by_host], ids=["basic", "spread", "anti"])
    def test_rows_asked_about_do_not_grow_with_promises(self, demand, app, monkeypatch):
        asked = []
        for promises in (0, 1, 40):
            h = cluster(promises=promises, app=app, demand=demand)
            decide(h, 5, demand)
            tally = inside(h.core).shapes.tally
            answered = tally.answered
            counts = Counts(monkeypatch)
            decide(h, 10, demand, first=5)
            monkeypatch.undo()
            assert tally.answered - answered == 10
            # A few rows of each group are tried, and the row that the last pod went to.
            assert counts.trials <= 10 * len(ZONES)
            asked.append(counts.rows)
        plain, one, many = asked
        per_decision = 20
        assert one <= plain + 10 * per_decision
        assert many <= plain + 10 * per_decision
        assert many < 10 * NODES

    def test_the_first_decision_after_a_promise_judges_its_row_alone(self, monkeypatch):
        h = cluster(promises=20)
        decide(h, 5)
        h.pod(vip(30).obj())
        counts = Counts(monkeypatch)
        decide(h, 1, first=5)
        assert counts.rows < 20

    def test_one_nomination_more_is_the_only_one_read(self, monkeypatch):
        h = cluster(promises=20)
        nominees = inside(h.core).cycle.nominees
        nominees.counting_for(replica(0))
        h.pod(vip(30).obj())
        read = []
        placed_on = Nominations.placed_on

        def counting(self, node):
            read.append(node)
            return placed_on(self, node)

        monkeypatch.setattr(Nominations, "placed_on", counting)
        assert len(nominees.counting_for(replica(0))) == 21
        assert read == ["n30"]

    def test_pods_of_all_priorities_between_two_share_who_counts(self):
        h = cluster(promises=3)
        h.pod(promised(make_pod("more").priority(9).gate("wait"), "n0").obj())
        nominees = inside(h.core).cycle.nominees
        found = [nominees.counting_for(make_pod("p").priority(p).obj()) for p in (0, 5, 6, 9, 10)]
        assert found[0] is found[1]
        assert found[2] is found[3]
        assert [len(each) for each in found] == [3, 3, 1, 1, 0]

    def test_a_nominated_pod_shares_who_counts_but_for_itself(self):
        h = cluster(promises=3)
        nominees = inside(h.core).cycle.nominees
        everybody = nominees.counting_for(replica(0))
        found = nominees.counting_for(vip(1).obj())
        assert isinstance(found, Excepting)
        assert found.everybody is everybody
        row = inside(h.core).cache.nodes.row_of("n1")
        assert sorted(found) == sorted(r for r in everybody if r != row)
        assert len(found) == 2
        assert row not in found


class TestCounts:
    """What counting plugins say with promised pods follows the counts, the labels and the terms."""

    @pytest.mark.parametrize("key", ["zone", "host"])
    @pytest.mark.parametrize("kind", [spread, away])
    def test_every_decision_is_as_if_made_from_scratch(self, kind, key):
        def demand(pod):
            return kind(pod, key=key, app="x")

        h = cluster(promises=0)
        for number in range(0, NODES, 2):
            h.pod(vip(number, "x", demand).obj())
        state, verdicts = inside(h.core).cache, VerdictTable()
        plain = Judge(state, Runtime(state, verdicts), verdicts)
        (profile,) = inside(h.core).profiles.values()
        # Otherwise promises look like others each time, and everything is tried anew.
        h.core._judge._nominees = inside(h.core).cycle.nominees
        for number in range(12):
            pod = replica(number, demand)
            h.pod(pod)
            judged = h.core.judge(pod), plain.judge(profile, pod)
            assert judged[0] == judged[1]
            h.binds()
            if number % 4 == 3:
                # A row with a promise moves to another zone, or is not in any.
                node = zoned(f"n{number - 1}", ZONES[number // 4], cpu="400")
                if number == 7:
                    del node.raw["metadata"]["labels"][key]
                h.node(node.obj())
        assert inside(h.core).shapes.tally.answered > 8


class TestWhoIsAsked:
    """What a promised pod asks of a newcomer is answered by that newcomer."""

    def test_pods_of_one_spec_may_be_refused_by_a_promised_pod_one_by_one(self):
        h = FullHarness()
        for number in range(4):
            h.node(zoned(f"n{number}").obj())

        def member(number):
            return away(make_pod(f"m-{number}").label(app="y", index=str(number)), app="never")

        # The term is kept, made for another pod, before anybody asks for the index.
        for number in range(4):
            h.pod(member(number).obj())
        assert len(h.binds()) == 4
        hostile = away(make_pod("vip").priority(5).gate("wait"), key="host", index="5")
        h.pod(promised(hostile, "n0").obj())
        for number in range(4, 8):
            judged = h.core.judge(member(number).obj())
            assert ("n0" in judged.feasible) is (number != 5)

    def test_a_promise_that_counts_for_one_priority_leaves_no_trace_for_others(self):
        h = FullHarness()
        h.node(zoned("n", cpu="2").obj())
        h.node(zoned("m", cpu="1").obj())
        h.pod(promised(make_pod("vip").request(cpu="2").priority(5).gate("wait"), "n").obj())
        for priority, feasible in ((0, ("m",)), (6, ("n", "m")), (0, ("m",)), (6, ("n", "m"))) * 2:
            pod = make_pod("p").request(cpu="1").priority(priority).obj()
            assert sorted(h.core.judge(pod).feasible) == sorted(feasible)
        assert inside(h.core).shapes.tally.answered > 4
