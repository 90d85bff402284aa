"""Bindings of another scheduler, judged on the state before each."""

import pytest

from k8s_scheduler.simulate.shadowing import following
from tests.builders import make_node, make_pod
from tests.unit.simulate.shadowing.followed import NAME, Followed

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def two_nodes(**options) -> Followed:
    return Followed(
        make_node("a").offers(**SMALL).obj(), make_node("b").offers(**SMALL).obj(), **options
    )


def test_a_binding_to_one_of_the_best_nodes_agrees():
    cluster = two_nodes()
    cluster.pod(make_pod("p").request(cpu="1").obj())
    cluster.bind("p", "b")
    told = cluster.told()
    assert (told.bindings, told.judged, told.feasible, told.agreed) == (1, 1, 1, 1)
    assert told.results["best"] == 1
    # Both nodes are as good: we might have taken the other one.
    assert (told.ties, told.another_node) == (1, 0)
    assert cluster.cases() == []


def test_a_binding_to_a_worse_node_shows_its_regret():
    cluster = two_nodes()
    cluster.pod(make_pod("first").request(cpu="2", memory="4Gi").obj())
    cluster.bind("first", "a")
    cluster.later(10)
    cluster.pod(make_pod("second").request(cpu="1", memory="1Gi").obj())
    cluster.later(10)
    cluster.bind("second", "a")
    told = cluster.told()
    assert (told.agreed, told.results["worse"], told.another_node) == (1, 1, 1)
    assert told.regret.max > 0
    assert told.regret_counts == {"0": 1, str(told.regret.max): 1}
    (case,) = cluster.cases()
    assert (case.pod, case.node, case.result) == ("default/second", "a", "worse")
    assert (case.regret, case.better_nodes, case.feasible_nodes) == (told.regret.max, 1, 2)


def test_a_binding_to_a_node_without_room_says_who_rejects_it():
    cluster = Followed(make_node("a").offers(cpu="1", memory="1Gi", pods="10").obj())
    cluster.pod(make_pod("p").request(cpu="2").obj())
    cluster.bind("p", "a")
    told = cluster.told()
    assert (told.agreed, told.feasible, told.results["infeasible"]) == (0, 0, 1)
    assert told.infeasible_by == {"NodeResourcesFit: Insufficient cpu": 1}
    assert cluster.cases()[0].reason == "NodeResourcesFit: Insufficient cpu"


def test_a_node_that_is_not_there_is_named_as_such():
    cluster = two_nodes()
    cluster.pod(make_pod("p").request(cpu="1").obj())
    cluster.bind("p", "elsewhere")
    assert cluster.told().infeasible_by == {"the node is not known": 1}


class TestRaces:
    """What was seen close to a binding may have been decided the other way round."""

    def test_a_pod_decided_first_and_seen_bound_second_explains_a_choice(self):
        cluster = two_nodes()
        cluster.pod(make_pod("first").request(cpu="2", memory="4Gi").obj())
        cluster.pod(make_pod("second").request(cpu="1", memory="1Gi").obj())
        # It knew of the first one on b; we see that only afterwards.
        cluster.pod(make_pod("load").request(cpu="1", memory="2Gi").on("a").obj())
        cluster.later()
        cluster.bind("second", "a")
        cluster.later()
        cluster.bind("first", "b")
        told = cluster.told()
        assert told.agreed == 2
        assert told.results["explained"] == 1
        (case,) = cluster.cases()
        assert case.pod == "default/second"
        assert case.race == ("pod default/first was bound to b: known to it already",)

    def test_a_pod_seen_bound_first_and_decided_second_explains_a_choice(self):
        cluster = two_nodes()
        cluster.pod(make_pod("first").request(cpu="3").obj())
        cluster.pod(make_pod("second").request(cpu="3").obj())
        cluster.pod(make_pod("load").request(cpu="2").on("b").obj())
        cluster.later()
        # Both can't be on a: but the second one, decided later, was seen first.
        cluster.bind("second", "a")
        cluster.later()
        cluster.bind("first", "a")
        (case,) = cluster.cases()
        assert (case.pod, case.result) == ("default/first", "explained")
        assert case.reason == "NodeResourcesFit: Insufficient cpu"
        assert case.race == ("pod default/second was bound to a: not known to it yet",)

    def test_a_more_important_pod_overtakes_in_the_queue(self):
        cluster = two_nodes()
        cluster.pod(make_pod("load").request(cpu="1", memory="2Gi").on("a").obj())
        cluster.pod(make_pod("second").request(cpu="1", memory="1Gi").obj())
        cluster.pod(make_pod("first").request(cpu="2", memory="4Gi").priority(5).obj())
        cluster.later()
        cluster.bind("second", "a")
        cluster.later()
        cluster.bind("first", "b")
        assert cluster.told().results["explained"] == 1

    def test_a_pod_that_went_meanwhile_explains_a_choice(self):
        cluster = two_nodes()
        cluster.pod(make_pod("load").request(cpu="2", memory="4Gi").on("b").obj())
        cluster.pod(make_pod("p").request(cpu="1").obj())
        cluster.pod(make_pod("little").request(cpu="1", memory="1Gi").on("a").obj())
        cluster.later(10)
        cluster.gone("load")
        cluster.later()
        cluster.bind("p", "a")
        (case,) = cluster.cases()
        assert case.result == "explained"
        assert case.race == ("pod default/load went: not known to it yet",)

    def test_what_happened_long_ago_explains_nothing(self):
        cluster = two_nodes()
        cluster.pod(make_pod("load").request(cpu="2", memory="4Gi").on("b").obj())
        cluster.pod(make_pod("p").request(cpu="1").obj())
        cluster.pod(make_pod("little").request(cpu="1", memory="1Gi").on("a").obj())
        cluster.later(10)
        cluster.gone("load")
        cluster.later(10)
        cluster.bind("p", "a")
        assert cluster.told().results["worse"] == 1

    def test_looking_at_another_order_leaves_the_state_as_it_was(self):
        cluster = two_nodes()
        cluster.pod(make_pod("first").request(cpu="3").obj())
        cluster.pod(make_pod("second").request(cpu="3").obj())
        cluster.pod(make_pod("load").request(cpu="2").on("b").obj())
        cluster.later()
        cluster.bind("second", "a")
        cluster.later()
        cluster.bind("first", "a")
        cluster.later()
        cluster.told()
        # a holds both, b the load: whoever asks for 2 fits on b alone, and for 3 nowhere.
        assert cluster.core.judge(make_pod("x").request(cpu="2").obj()).feasible == ("b",)
        assert cluster.core.judge(make_pod("y").request(cpu="3").obj()).feasible == ()
        for name in ("first", "second"):
            cluster.gone(name)
        cluster.told()
        assert cluster.core.judge(make_pod("z").request(cpu="4").obj()).feasible == ("a",)

    def test_a_promise_that_came_after_a_binding_does_not_count_against_it(self):
        """Looking whether `boss` was known on b before `x` must not leave its promise behind."""
        cluster = two_nodes()
        cluster.pod(make_pod("load").request(cpu="2").on("a").obj())
        boss = make_pod("boss").request(cpu="3").priority(100)
        cluster.pod(boss.obj())
        cluster.later(10)
        cluster.pod(make_pod("x").request(cpu="100m").obj())
        cluster.pod(make_pod("y").request(cpu="3").obj())
        cluster.later(10)
        # Not the best at first sight: other orders are looked at, that with boss on b among them.
        cluster.bind("x", "a")
        cluster.later()
        cluster.bind("y", "b")
        cluster.later()
        boss.raw["status"]["nominatedNodeName"] = "b"
        cluster.pod(boss.obj())
        cluster.later()
        cluster.bind("boss", "b")
        results = {case.pod: case.result for case in cluster.cases()}
        assert results == {"default/x": "explained", "default/boss": "explained"}
        assert cluster.told().results["infeasible"] == 0


def test_a_pod_that_was_nominated_goes_there_without_being_compared():
    cluster = two_nodes()
    cluster.pod(make_pod("load").request(cpu="1").on("a").obj())
    promised = make_pod("p").request(cpu="1")
    promised.raw["status"]["nominatedNodeName"] = "a"
    cluster.pod(promised.obj())
    cluster.later(10)
    cluster.bind("p", "a")
    assert cluster.told().results["nominated"] == 1


def test_a_sample_leaves_bindings_out():
    cluster = two_nodes(sample=0.0)
    cluster.pod(make_pod("p").request(cpu="1").obj())
    cluster.bind("p", "a")
    told = cluster.told()
    assert (told.bindings, told.judged, told.skipped) == (1, 0, 1)


def test_bindings_are_not_judged_while_too_many_changes_wait(monkeypatch):
    monkeypatch.setattr(following, "MOST_AHEAD", 2)
    cluster = two_nodes()
    for name in ("p", "q"):
        cluster.pod(make_pod(name).request(cpu="1").obj())
    cluster.later(10)
    for name in ("p", "q"):
        cluster.bind(name, "a")
    for number in range(3):
        cluster.pod(make_pod(f"later-{number}").obj())
        cluster.gone(f"later-{number}")
    told = cluster.told()
    assert (told.bindings, told.judged, told.behind) == (2, 0, 2)
    cluster.pod(make_pod("r").request(cpu="1").obj())
    cluster.later(10)
    cluster.bind("r", "b")
    told = cluster.told()
    assert (told.bindings, told.judged, told.behind) == (3, 1, 2)


def test_a_pod_that_was_never_seen_waiting_is_counted_and_not_judged():
    cluster = two_nodes()
    cluster.pod(make_pod("p").request(cpu="1").on("a").obj())
    told = cluster.told()
    assert (told.bindings, told.judged, told.unseen) == (1, 0, 1)


def test_pods_of_other_schedulers_are_load_and_nothing_else():
    cluster = two_nodes()
    cluster.pod(make_pod("p").scheduler("somebody").request(cpu="1").obj())
    cluster.bind("p", "a")
    assert cluster.told().bindings == 0
    assert cluster.core.judge(make_pod("x").request(cpu="4").obj()).feasible == ("b",)


@pytest.mark.parametrize(
    ("better", "percentages", "result"),
    [
        (20, {}, "sampled"),
        (60, {}, "worse"),
        (20, {NAME: 100}, "worse"),
        (20, {NAME: 70, "somebody": 100}, "sampled"),
    ],
)
def test_in_a_large_cluster_only_what_no_sample_allows_is_a_contradiction(
    better, percentages, result
):
    """Of 150 nodes that fit 100 are looked at: 50 at most can have been left out.

    If all are looked at, none can.
    """
    nodes = [make_node(f"n{i}").offers(**SMALL).obj() for i in range(150)]
    cluster = Followed(*nodes, percentages_of_nodes_to_score=percentages)
    for i in range(150 - better):
        cluster.pod(make_pod(f"load{i}").request(cpu="2", memory="4Gi").on(f"n{i}").obj())
    cluster.pod(make_pod("p").request(cpu="1").obj())
    cluster.later(10)
    cluster.bind("p", "n0")
    assert cluster.told().results[result] == 1


class TestUnplaced:
    """Pods that the other scheduler said it could not place."""

    def waiting(self, cluster: Followed, cpu: str) -> None:
        cluster.pod(make_pod("p").request(cpu=cpu).obj())
        cluster.pod(make_pod("p").request(cpu=cpu).condition("Unschedulable", "0/2").obj())

    def look_for(self, cluster: Followed, seconds: int) -> None:
        for _ in range(seconds):
            cluster.later(1)
            cluster.follower.look_at_unplaced(cluster.now)

    def test_one_that_fits_all_the_while_is_reported_once(self):
        cluster = two_nodes()
        self.waiting(cluster, "1")
        self.look_for(cluster, 10)
        assert cluster.report.profiles()["default-scheduler"].unplaced.feasible_for_us == 0
        self.look_for(cluster, 20)
        unplaced = cluster.told().unplaced
        assert (unplaced.seen, unplaced.feasible_for_us, unplaced.pods) == (1, 1, ("default/p",))

    def test_one_that_waited_before_we_came_is_reported_too(self):
        waiting = make_pod("p").request(cpu="1").condition("Unschedulable", "0/2").obj()
        cluster = two_nodes(pods=(waiting,))
        self.look_for(cluster, 30)
        unplaced = cluster.told().unplaced
        assert (unplaced.seen, unplaced.feasible_for_us, unplaced.pods) == (1, 1, ("default/p",))

    def test_one_that_fits_nowhere_is_not(self):
        cluster = two_nodes()
        self.waiting(cluster, "9")
        self.look_for(cluster, 30)
        unplaced = cluster.told().unplaced
        assert (unplaced.seen, unplaced.feasible_for_us) == (1, 0)

    def test_one_that_is_bound_meanwhile_is_not(self):
        cluster = two_nodes()
        self.waiting(cluster, "1")
        self.look_for(cluster, 10)
        cluster.bind("p", "a")
        self.look_for(cluster, 30)
        assert cluster.told().unplaced.feasible_for_us == 0


def test_a_pod_that_we_would_not_try_is_a_finding_of_its_own():
    cluster = two_nodes()
    labels = {f"l{i}": "v" for i in range(1001)}
    cluster.pod(make_pod("p").label(**labels).request(cpu="1").obj())
    cluster.bind("p", "a")
    told = cluster.told()
    assert (told.agreed, told.results["failed"]) == (0, 1)
    assert "podLimits.labels" in cluster.cases()[0].reason
