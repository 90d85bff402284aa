"""Which events wake whom: nobody is parked in vain, and nobody is judged in vain."""

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.messages.outgoing import Evict, RecordEvent
from k8s_scheduler.core.queue import group_judge, waking
from tests.builders import make_pod
from tests.call_counts import calls_of
from tests.inside import inside
from tests.unit.core.engine.cores import (
    FullHarness,
    away,
    claiming,
    near,
    pinned,
    promised,
    spread,
    zoned,
)
from tests.unit.core.harness import only


@pytest.fixture
def h():
    return FullHarness()


def names(h):
    return [bind.name for bind in h.out if hasattr(bind, "node")]


# Who looks at pods elsewhere


def test_company_that_arrives_elsewhere_wakes(h):
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    h.pod(pinned(near(make_pod("p"), app="x"), "n1").obj())
    h.settle()
    assert h.parked() == ["p"]
    h.pod(make_pod("friend").label(app="x").on("n2").obj())
    h.settle()
    assert names(h) == ["p"]


def test_an_enemy_that_leaves_another_node_of_the_zone_wakes(h):
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    enemy = make_pod("enemy").label(app="x").on("n2").obj()
    h.pod(enemy)
    h.pod(pinned(away(make_pod("p"), app="x"), "n1").obj())
    h.settle()
    h.drop_pod(enemy)
    h.settle()
    assert names(h) == ["p"]


def test_a_pod_that_refused_company_and_leaves_wakes_on_other_nodes(h):
    """Nothing refuses the newcomer any more, so InterPodAffinity has nothing to say about it."""
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    hermit = away(make_pod("hermit"), app="x").on("n2").obj()
    h.pod(hermit)
    h.pod(pinned(make_pod("p").label(app="x"), "n1").obj())
    h.settle()
    assert h.parked() == ["p"]
    h.drop_pod(hermit)
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def test_an_enemy_whose_node_goes_away_wakes(h):
    """Pods on a node that is gone are in no zone."""
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    h.pod(make_pod("enemy").label(app="x").on("n1").obj())
    h.pod(away(make_pod("p"), app="x").obj())
    h.settle()
    assert h.parked() == ["p"]
    h.drop_node("n1")
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def test_a_pod_that_starts_to_terminate_no_longer_counts_for_spreading(h):
    h.node(zoned("n1", "z1").obj())
    h.node(zoned("n2", "z2", cpu="0").obj())
    other = make_pod("other").label(app="x").on("n1")
    h.pod(other.obj())
    h.pod(spread(make_pod("p").label(app="x").request(cpu="1"), app="x").obj())
    h.settle()
    assert h.parked() == ["p"]
    h.pod(other.deleting().obj())
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def test_a_relabelled_namespace_wakes(h):
    h.node(zoned("n").obj())
    h.pod(make_pod("friend").namespace("other").label(app="x").on("n").obj())
    p = near(make_pod("p"), app="x")
    (term,) = p.raw["spec"]["affinity"]["podAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
    h.object(Kind.NAMESPACE, "other")
    h.pod(p.obj())
    h.settle()
    assert h.parked() == ["p"]
    h.object(Kind.NAMESPACE, "other", metadata={"labels": {"team": "red"}})
    h.settle()
    assert names(h) == ["p"]


# Blame


def test_blame_that_came_later_survives_a_new_version_of_the_pod(h):
    """The pod's own condition comes back by the watch: nothing that judging reads has changed."""
    full = zoned("n", cpu="1")
    h.node(full.obj())
    other = make_pod("other").request(cpu="1").on("n").obj()
    h.pod(other)
    p = make_pod("p").request(cpu="1")
    h.pod(p.obj())
    h.settle()
    h.node(zoned("n", cpu="1").taint("k").obj())
    h.drop_pod(other)
    h.settle()
    assert h.parked() == ["p"]
    h.pod(p.version(2).obj())
    h.node(full.obj())
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def test_a_new_version_between_two_steps_of_a_round_does_not_stop_the_waking(h, monkeypatch):
    monkeypatch.setattr(waking, "PODS_PER_STEP", 1)
    h.node(zoned("n").taint("k").obj())
    twins = [make_pod(name) for name in ("p", "q", "r")]
    for pod in twins:
        h.pod(pod.obj())
    h.settle()
    assert h.parked() == ["p", "q", "r"]
    h.node(zoned("n").obj())
    h.schedule()
    for pod in twins:
        h.pod(pod.version(2).obj())
    h.settle()
    assert h.parked_in_vain() == []


def test_a_new_node_is_news_to_every_plugin(h):
    h.node(zoned("n1").obj())
    h.object(
        Kind.CSI_NODE,
        "n1",
        spec={"drivers": [{"name": "csi.x", "nodeID": "n1", "allocatable": {"count": 0}}]},
    )
    claimed(h, "ReadWriteOnce")
    h.pod(claiming(make_pod("p"), "c").obj())
    h.settle()
    assert inside(h.core).queue.get("uid-p").rejectors == ("NodeVolumeLimits",)
    h.node(zoned("n2").obj())
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def test_an_exclusive_claim_is_free_once_its_users_node_is_gone(h):
    h.node(zoned("n1").obj())
    h.node(zoned("n2").obj())
    claimed(h, "ReadWriteOncePod")
    h.pod(claiming(make_pod("user"), "c").on("n1").obj())
    h.pod(claiming(make_pod("p"), "c").obj())
    h.settle()
    assert inside(h.core).queue.get("uid-p").rejectors == ("VolumeRestrictions",)
    h.drop_node("n1")
    h.settle()
    assert h.parked_in_vain() == []
    assert names(h) == ["p"]


def claimed(h, mode):
    """Tell of a claim that is bound to a volume."""
    h.object(Kind.STORAGE_CLASS, "s", provisioner="csi.x")
    h.object(
        Kind.PERSISTENT_VOLUME,
        "pv",
        spec={
            "csi": {"driver": "csi.x", "volumeHandle": "h"},
            "storageClassName": "s",
            "accessModes": [mode],
            "claimRef": {"namespace": "default", "name": "c"},
        },
    )
    h.object(
        Kind.PERSISTENT_VOLUME_CLAIM,
        "c",
        namespace="default",
        metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        spec={"volumeName": "pv", "storageClassName": "s", "accessModes": [mode]},
        status={"phase": "Bound"},
    )


# Promises


def crowded(h):
    """Let a promise on n1 be all that keeps `q` from it."""
    h.node(zoned("n1").obj())
    h.node(zoned("n2").taint("k").obj())
    h.pod(make_pod("other").request(cpu="2").on("n1").obj())
    vip = promised(make_pod("vip").request(cpu="3").priority(5), "n1")
    # It waits for what it was promised, and preempts nobody.
    vip.raw["spec"]["preemptionPolicy"] = "Never"
    h.pod(vip.obj())
    h.pod(pinned(make_pod("q").request(cpu="2"), "n1").obj())
    h.settle()
    assert h.parked() == ["vip", "q"]
    return vip


def test_a_promise_taken_back_wakes(h):
    vip = crowded(h)
    del vip.raw["status"]["nominatedNodeName"]
    h.pod(vip.obj())
    h.settle()
    assert names(h) == ["q"]


def test_a_promise_to_a_deleted_pod_wakes(h):
    h.drop_pod(crowded(h).obj())
    h.settle()
    assert names(h) == ["q"]


def test_a_promise_that_moves_wakes(h):
    h.pod(promised(crowded(h), "n2").obj())
    h.settle()
    assert names(h) == ["q"]


def test_a_promise_that_ends_because_the_pod_is_placed_elsewhere_wakes(h):
    crowded(h)
    h.node(zoned("n2").obj())
    h.settle()
    assert inside(h.core).cache.node_of("uid-vip") == "n2"
    assert h.parked_in_vain() == []
    assert "q" in names(h)


def test_a_promised_pod_that_is_relabelled_wakes(h):
    h.node(zoned("n", cpu="2").obj())
    h.pod(make_pod("other").request(cpu="1").on("n").obj())
    vip = promised(make_pod("vip").request(cpu="2").priority(5).label(app="x"), "n")
    h.pod(vip.obj())
    h.pod(away(make_pod("q"), app="x").obj())
    h.settle()
    assert h.parked() == ["vip", "q"]
    vip.raw["metadata"]["labels"] = {"app": "y"}
    # Another pod is active meanwhile or not: what counts is that the change is news.
    h.pod(vip.obj())
    h.settle()
    assert h.parked_in_vain() == []


# Who could preempt


def parked_pair(h, first):
    """Park a more important pod that can't preempt, and one of its shape that could."""
    h.node(zoned("n1").obj())
    h.pod(make_pod("vip").request(cpu="4").priority(1000).on("n1").obj())
    h.pod(first.obj())
    h.pod(make_pod("b").request(cpu="4").priority(100).obj())
    h.settle()
    assert h.parked() == ["a", "b"]
    assert only(Evict, h.out) == []


def make_b_able_to_preempt(h):
    h.pod(make_pod("low").request(cpu="4").priority(1).on("n2").obj())
    h.node(zoned("n2").obj())
    h.settle()
    return [(evict.name, evict.victim.name) for evict in only(Evict, h.out)]


def test_a_pod_that_could_preempt_is_woken_though_a_more_important_one_of_its_shape_never_does(h):
    never = make_pod("a").request(cpu="4").priority(200)
    never.raw["spec"]["preemptionPolicy"] = "Never"
    parked_pair(h, never)
    assert make_b_able_to_preempt(h) == [("b", "low")]
    # The other one was not tried in vain.
    assert inside(h.core).queue.get("uid-a").attempts == 1


def test_a_pod_that_could_preempt_is_woken_though_a_more_important_one_waits_for_victims(h):
    h.node(zoned("n0").obj())
    h.pod(make_pod("victim").request(cpu="4").priority(150).on("n0").obj())
    h.pod(make_pod("a").request(cpu="4").priority(200).obj())
    h.settle()
    assert [evict.victim.name for evict in only(Evict, h.out)] == ["victim"]
    h.out.clear()
    h.pod(make_pod("b").request(cpu="4").priority(100).obj())
    h.settle()
    assert only(Evict, h.out) == []
    assert make_b_able_to_preempt(h) == [("b", "low")]


def test_a_pod_whose_promise_came_to_nothing_is_woken_to_preempt_again(h):
    """Its victim is gone, and somebody more important has taken the room."""
    h.node(zoned("n1").obj())
    a = make_pod("a").request(cpu="4").priority(200)
    h.pod(make_pod("vip").request(cpu="4").priority(1000).on("n1").obj())
    h.pod(promised(a, "n1").obj())
    inside(h.core).cache.nominate(a.obj(), "n1")
    h.settle()
    inside(h.core).cache.nominate(a.obj(), "n1")
    h.pod(make_pod("low").request(cpu="4").priority(1).on("n2").obj())
    h.node(zoned("n2").obj())
    h.settle()
    assert [(evict.name, evict.victim.name) for evict in only(Evict, h.out)] == [("a", "low")]


def test_only_so_many_groups_of_a_shape_are_asked_at_an_event(h, monkeypatch):
    monkeypatch.setattr(group_judge, "PEERS_ASKED", 2)
    asked = []
    h.node(zoned("n1", cpu="1").obj())
    for priority in range(5):
        h.pod(make_pod(f"p{priority}").request(cpu="4").priority(priority).obj())
    h.settle()
    judge = inside(h.core).parked.waker._judge
    original = judge._could_make_room
    monkeypatch.setattr(
        judge, "_could_make_room", lambda *a: asked.append(a[1].uid) or original(*a)
    )
    h.node(zoned("n1", cpu="2").obj())
    h.settle()
    assert asked == ["uid-p4", "uid-p3"]


# What costs nothing


class Spy:
    """Counts judgements by waking."""

    def __init__(self, h, monkeypatch):
        self.rows = []
        runtime = inside(h.core).parked.waker._judge._runtime
        original = runtime.run_filters

        def run_filters(profile, pod, rows, *rest, **options):
            self.rows.append(len(rows))
            return original(profile, pod, rows, *rest, **options)

        monkeypatch.setattr(runtime, "run_filters", run_filters)


@pytest.fixture
def crowd(h):
    """10,000 parked pods of 20 shapes that lack room on both nodes."""
    for name in ("n1", "n2"):
        h.node(zoned(name, cpu="2").obj())
        h.pod(make_pod(f"full-{name}").request(cpu="2").on(name).obj())
    for number in range(10_000):
        h.pod(make_pod(f"p{number}").request(cpu=f"{1000 + number % 20}m").obj())
    h.settle()
    assert len(inside(h.core).queue.parked) == 10_000
    return h


def test_events_that_cannot_help_cost_no_judgement(crowd, monkeypatch):
    spy = Spy(crowd, monkeypatch)
    crowd.pod(make_pod("newcomer").on("n1").obj())
    crowd.node(zoned("n1", cpu="2").label(colour="red").obj())
    crowd.object(Kind.NAMESPACE, "default", metadata={"labels": {"team": "red"}})
    crowd.budget("budget", 1, app="x")
    crowd.settle()
    assert spy.rows == []
    assert len(inside(crowd.core).queue.parked) == 10_000


def test_an_event_that_might_help_is_judged_once_per_shape_and_on_its_row_alone(crowd, monkeypatch):
    spy = Spy(crowd, monkeypatch)
    crowd.node(zoned("n1", cpu="2500m").obj())
    crowd.settle()
    assert spy.rows == [1] * 20
    assert len(inside(crowd.core).queue.parked) == 10_000


def test_many_events_are_one_judgement_per_shape(crowd, monkeypatch):
    spy = Spy(crowd, monkeypatch)
    for milli in range(2100, 2900, 100):
        crowd.node(zoned("n1", cpu=f"{milli}m").obj())
        crowd.node(zoned("n2", cpu=f"{milli}m").obj())
    crowd.settle()
    assert spy.rows == [2] * 20


@pytest.mark.parametrize("helps", [False, True], ids=["cannot help", "might help"])
def test_an_event_does_not_cost_work_for_every_pod(crowd, helps):
    def happen(number):
        if helps:
            crowd.node(zoned("n1", cpu=f"{2100 + number}m").obj())
        else:
            crowd.pod(make_pod(f"newcomer-{number}").on("n1").obj())
        crowd.schedule()

    happen(0)
    calls = calls_of(lambda: happen(1))
    assert len(inside(crowd.core).queue.parked) == 10_000
    assert calls < 10_000


# Preemption


def test_a_node_on_which_preemption_helps_wakes(h):
    h.node(zoned("n", cpu="1").cordoned().obj())
    h.pod(make_pod("lesser").request(cpu="1").on("n").obj())
    h.pod(make_pod("vip").request(cpu="1").priority(5).obj())
    h.settle()
    assert h.parked() == ["vip"]
    h.node(zoned("n", cpu="1").obj())
    out = h.schedule()
    assert [evict.victim.name for evict in only(Evict, out)] == ["lesser"]


def test_a_node_on_which_it_does_not_help_does_not(h, monkeypatch):
    h.node(zoned("n", cpu="1").cordoned().obj())
    h.pod(make_pod("equal").request(cpu="1").priority(5).on("n").obj())
    h.pod(make_pod("vip").request(cpu="1").priority(5).obj())
    h.settle()
    h.node(zoned("n", cpu="1").obj())
    assert only(RecordEvent, h.schedule()) == []
    assert h.parked() == ["vip"]


# Pods whose reasons are renewed meanwhile


def test_a_group_that_is_parted_while_a_round_is_under_way_is_judged_in_it(h, monkeypatch):
    """What renewing reasons asked parts pods that were one group when the round began."""
    h.node(zoned("n", cpu="1").obj())
    h.pod(make_pod("large").request(cpu="64").obj())
    for name in ("p", "q"):
        h.pod(spread(make_pod(name).label(app=name).request(cpu="4"), app="p").obj())
    h.settle()
    assert h.parked() == ["large", "p", "q"]
    assert len(inside(h.core).queue.parked.groups()) == 2
    monkeypatch.setattr(waking, "WORK_PER_STEP", 1)
    h.node(zoned("n", cpu="32").obj())
    h.tick(1.0)
    assert len(inside(h.core).queue.parked.groups()) == 3
    h.settle()
    assert h.parked_in_vain() == []
