"""Nodes with more pods than room: who did it, and what is no race."""

import pytest

from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import Reconfigure, Restore
from k8s_scheduler.core.messages.outgoing import Bind, Log, RecordEvent
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import PodBuilder, make_node, make_pod
from tests.unit.core.harness import Harness, only, profile

SCHEDULED = {"type": "PodScheduled", "status": "True"}


class Beside(Harness):
    """Drives a core and reads its metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = Metrics()
        self.core = Scheduler(Setup(profiles=(profile(),)), metrics=self.metrics.scheduler)
        self.node(make_node("n").offers(cpu="4", memory="8Gi", pods="110").obj())

    def counted(self) -> dict[tuple[str, str, str], float]:
        """Return (cause, resource, first) and how often."""
        return {
            (s.labels["cause"], s.labels["resource"], s.labels["first"]): s.value
            for family in self.metrics.registry.collect()
            for s in family.samples
            if s.name == "k8s_scheduler_node_overfilled_total"
        }

    def overfilled_nodes(self) -> float | None:
        return self.metrics.registry.get_sample_value("k8s_scheduler_overfilled_nodes")

    def complaints(self) -> list[Log]:
        return [log for log in only(Log, self.out) if log.event == "a node is overfilled"]


@pytest.fixture
def h():
    return Beside()


def bound(name: str, cpu: str, *, by: str = "other", scheduled: bool = True) -> PodBuilder:
    """Return a pod as the write of its Binding shows it."""
    pod = make_pod(name).scheduler(by).request(cpu=cpu).on("n")
    if scheduled:
        pod.raw["status"]["conditions"] = [SCHEDULED]
    return pod


def started(pod: PodBuilder) -> PodBuilder:
    pod.raw["status"]["startTime"] = "2026-01-01T00:00:00Z"
    return pod


def created(pod: PodBuilder, when: str) -> PodBuilder:
    pod.raw["metadata"]["creationTimestamp"] = when
    return pod


def ours(h: Beside, name: str, cpu: str) -> Bind:
    """Let a pod of ours be decided for; the watch has not shown it bound."""
    h.pod(make_pod(name).request(cpu=cpu).obj())
    (bind,) = h.binds()
    return bind


class TestRaces:
    """Two schedulers give the same room away."""

    def test_another_scheduler_comes_after_ours_is_bound(self, h):
        h.result(ours(h, "p", "3"))
        h.pod(bound("p", "3", by="default-scheduler").obj())
        assert h.counted() == {}
        h.pod(bound("q", "2").obj())
        assert h.counted() == {("race", "cpu", "ours"): 1}
        assert h.overfilled_nodes() == 1
        (log,) = h.complaints()
        assert log.fields == {
            "node": "n",
            "cause": "race",
            "amounts": "cpu 5000m of 4000m",
            "pod": "default/q",
            "scheduler": "other",
            "first": "default/p",
            "by": "default-scheduler",
            "pods": "default/p",
        }
        (event,) = [e for e in only(RecordEvent, h.out) if e.reason == "NodeOverfilled"]
        assert (event.name, event.related.name) == ("p", "q")
        assert event.note == (
            "node n was filled by two schedulers at once: cpu 5000m of 4000m; this pod came first, "
            "default/q is of other"
        )

    def test_another_scheduler_is_faster_than_the_binding_of_ours(self, h):
        bind = ours(h, "p", "3")
        h.pod(bound("q", "2").obj())
        # Ours may yet fail: nothing is overfilled so far.
        assert h.counted() == {}
        h.result(bind)
        h.pod(bound("p", "3", by="default-scheduler").obj())
        assert h.counted() == {("race", "cpu", "others"): 1}
        (event,) = [e for e in only(RecordEvent, h.out) if e.reason == "NodeOverfilled"]
        assert (event.name, event.related.name) == ("p", "q")
        assert "this pod came second" in event.note

    def test_a_binding_of_ours_that_fails_was_no_race(self, h):
        bind = ours(h, "p", "3")
        h.pod(bound("q", "2").obj())
        h.result(bind, bound=False, message="refused")
        assert h.counted() == {}
        assert h.complaints() == []

    def test_a_pod_that_another_scheduler_bound_elsewhere_gives_its_room_back(self, h):
        """The race for one pod: we assume it here, they bind it there."""
        h.node(make_node("m").offers(cpu="4", memory="8Gi", pods="110").obj())
        bind = ours(h, "p", "4")
        there = "m" if bind.node == "n" else "n"
        raw = bound("p", "4", by="default-scheduler")
        raw.raw["spec"]["nodeName"] = there
        h.pod(raw.obj())
        h.result(bind, bound=False, message="already assigned")
        assert h.counted() == {}
        h.pod(make_pod("next").request(cpu="4").obj())
        assert [b.node for b in h.binds()] == [bind.node]

    def test_two_others_race_and_no_pod_of_ours_is_told(self, h):
        h.pod(bound("q", "3", by="one").obj())
        h.pod(bound("r", "3", by="two").obj())
        assert h.counted() == {("race", "cpu", "others"): 1}
        assert [e for e in only(RecordEvent, h.out) if e.reason == "NodeOverfilled"] == []

    def test_a_standby_tells_no_user(self, h):
        """It was never asked to decide: the leader tells."""
        h.pod(bound("p", "3", by="default-scheduler").obj())
        h.pod(bound("q", "3").obj())
        assert h.counted() == {("race", "cpu", "ours"): 1}
        assert only(RecordEvent, h.out) == []

    def test_each_resource_counts_and_only_once(self, h):
        h.pod(bound("q", "3", by="one").obj())
        second = make_pod("r").scheduler("two").request(cpu="3", memory="9Gi", example__gpu="1")
        second.raw["status"]["conditions"] = [SCHEDULED]
        h.pod(second.on("n").obj())
        h.pod(bound("s", "1", by="three").obj())
        assert h.counted() == {
            ("race", "cpu", "others"): 1,
            ("race", "memory", "others"): 1,
            ("race", "other", "others"): 1,
        }

    def test_it_is_over_when_a_pod_leaves_and_can_happen_again(self, h):
        first, second = bound("q", "3", by="one").obj(), bound("r", "3", by="two").obj()
        h.pod(first)
        h.pod(second)
        h.drop_pod(second)
        assert h.overfilled_nodes() == 0
        h.pod(second)
        assert h.counted() == {("race", "cpu", "others"): 2}

    def test_a_reload_says_anew_whose_pods_are_ours(self, h):
        ours(h, "p", "1")  # who has decided something tells users
        profiles = (profile("added"),)
        h.tell(Reconfigure(h.now, profiles, settings_of(h.core.setup.queue)))
        h.pod(bound("q", "3", by="added").obj())
        h.pod(bound("r", "3", by="default-scheduler").obj())
        assert h.counted() == {("race", "cpu", "ours"): 1}
        (event,) = [e for e in only(RecordEvent, h.out) if e.reason == "NodeOverfilled"]
        assert (event.name, event.related.name) == ("q", "r")
        h.drop_pod(bound("q", "3", by="added").obj())
        h.pod(bound("s", "3", by="two").obj())
        assert h.counted() == {("race", "cpu", "ours"): 1, ("race", "cpu", "others"): 1}

    def test_the_rival_is_one_that_nobody_could_have_seen(self, h):
        """Pods come by one watch: who knew of the second knew what had been started before."""
        h.pod(created(started(bound("agent", "1", by="daemons")), "2025-12-01T00:00:00Z").obj())
        h.pod(bound("q", "2", by="one").obj())
        h.pod(created(started(bound("late", "0", by="daemons")), "2025-12-01T00:00:00Z").obj())
        h.pod(created(bound("r", "2", by="two"), "2026-01-01T00:00:01Z").obj())
        assert h.counted() == {("race", "cpu", "others"): 1}
        (log,) = h.complaints()
        assert log.fields["first"] == "default/q"


class TestNoRace:
    """What fills a node beyond its room in other ways."""

    def test_beside_pods_of_others_that_were_started_before_it_was_created(self, h):
        """Nearly every node has some, of DaemonSets: two pods of ours are no race with them."""
        h.pod(started(bound("agent", "1", by="daemons")).obj())
        h.pod(bound("p", "2", by="default-scheduler").obj())
        late = created(bound("q", "2", by="default-scheduler"), "2026-01-01T00:00:01Z")
        h.pod(late.obj())
        assert h.counted() == {("binding", "cpu", "nobody"): 1}

    @pytest.mark.parametrize(
        ("cpu", "counted"),
        [("2", {("race", "cpu", "others"): 1}), ("3", {("binding", "cpu", "nobody"): 1})],
        ids=["it would fit without the rival", "it would not"],
    )
    def test_where_one_scheduler_alone_asks_for_too_much(self, h, cpu, counted):
        """Somebody else's pod is beside it, and has not filled the node."""
        h.pod(bound("q", "500m", by="one").obj())
        h.pod(bound("r", "2", by="two").obj())
        h.pod(bound("s", cpu, by="two").obj())
        assert h.counted() == counted

    def test_without_the_rival_there_is_a_slot_for_it(self, h):
        h.node(make_node("n").offers(cpu="4", memory="8Gi", pods="1").obj())
        h.pod(bound("q", "0", by="one").obj())
        h.pod(bound("r", "0", by="two").obj())
        assert h.counted() == {("race", "pods", "others"): 1}

    @pytest.mark.parametrize("when", ["2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z"])
    def test_one_that_was_started_since_is_a_rival(self, h, when):
        h.pod(started(bound("q", "3", by="one")).obj())
        h.pod(created(bound("r", "3", by="two"), when).obj())
        assert h.counted() == {("race", "cpu", "others"): 1}

    def test_all_pods_of_one_scheduler(self, h):
        h.pod(bound("q", "3").obj())
        h.pod(bound("r", "3").obj())
        assert h.counted() == {("binding", "cpu", "nobody"): 1}

    def test_a_pod_that_is_resized_in_place(self, h):
        h.pod(bound("q", "2", by="one").obj())
        h.pod(bound("r", "2", by="two").obj())
        h.pod(bound("r", "3", by="two").obj())
        assert h.counted() == {("resize", "cpu", "nobody"): 1}

    def test_a_node_that_offers_less(self, h):
        h.pod(bound("q", "2", by="one").obj())
        h.pod(bound("r", "2", by="two").obj())
        h.node(make_node("n").offers(cpu="3", memory="8Gi", pods="110").obj())
        assert h.counted() == {("allocatable", "cpu", "nobody"): 1}
        h.node(make_node("n").offers(cpu="4", memory="8Gi", pods="110").obj())
        assert h.overfilled_nodes() == 0

    def test_a_static_pod(self, h):
        h.pod(bound("q", "3", by="one").obj())
        static = bound("s", "3")
        static.raw["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        h.pod(static.obj())
        assert h.counted() == {("direct", "cpu", "nobody"): 1}

    def test_a_pod_created_with_its_node(self, h):
        h.pod(bound("q", "3", by="one").obj())
        h.pod(bound("d", "3", scheduled=False).obj())
        assert h.counted() == {("direct", "cpu", "nobody"): 1}

    def test_what_was_so_when_we_came(self, h):
        h.pod(started(bound("q", "3", by="one")).obj())
        h.pod(started(bound("r", "3", by="two")).obj())
        assert h.counted() == {("found", "cpu", "nobody"): 1}

    def test_a_node_that_is_seen_after_its_pods(self, h):
        h.drop_node("n")
        h.pod(bound("q", "3", by="one").obj())
        h.pod(bound("r", "3", by="two").obj())
        assert h.counted() == {}
        h.node(make_node("n").offers(cpu="4", memory="8Gi", pods="110").obj())
        assert h.counted() == {("found", "cpu", "nobody"): 1}

    def test_a_core_that_is_restored_counts_nothing_again(self, h):
        h.pod(bound("q", "3", by="one").obj())
        h.pod(bound("r", "3", by="two").obj())
        checkpoint = h.core.checkpoint()
        other = Beside.__new__(Beside)
        Harness.__init__(other)
        other.metrics = Metrics()
        other.core = Scheduler(Setup(profiles=(profile(),)), metrics=other.metrics.scheduler)
        other.tell(Restore(1000.0, checkpoint))
        other.pod(bound("s", "1", by="three").obj())
        assert other.counted() == {}
        assert other.overfilled_nodes() == 1


class TestOtherResources:
    """What only some nodes have, or none: looked at when a pod or the node brings it up."""

    GPU = "example.com/gpu"

    def node(self, h, **more):
        node = make_node("n").offers(cpu="4", memory="8Gi", pods="110")
        node.raw["status"]["allocatable"] |= more
        h.node(node.obj())

    def taker(self, name, **amounts):
        return bound(name, "1", scheduled=False).request(**amounts)

    def test_a_node_that_offers_it_no_more(self, h):
        self.node(h, **{self.GPU: "2"})
        h.pod(self.taker("p", **{self.GPU: "2"}).obj())
        assert h.overfilled_nodes() in (None, 0)
        self.node(h)
        assert h.counted() == {("allocatable", "other", "nobody"): 1}
        self.node(h, **{self.GPU: "2"})
        assert h.overfilled_nodes() == 0

    def test_a_pod_that_took_it_leaves(self, h):
        pod = self.taker("p", **{self.GPU: "2"}).obj()
        h.pod(pod)
        assert h.overfilled_nodes() == 1
        h.pod(bound("q", "1", scheduled=False).obj())
        assert h.counted() == {("direct", "other", "nobody"): 1}
        h.drop_pod(pod)
        assert h.overfilled_nodes() == 0

    def test_a_pod_that_is_resized_takes_it_no_more(self, h):
        h.pod(self.taker("p", **{self.GPU: "2"}).obj())
        h.pod(bound("p", "1", scheduled=False).obj())
        assert h.overfilled_nodes() == 0

    def test_the_node_goes_and_comes(self, h):
        h.pod(self.taker("p", **{self.GPU: "2"}).obj())
        h.drop_node("n")
        assert h.overfilled_nodes() == 0
        self.node(h)
        assert h.overfilled_nodes() == 1
        assert h.counted() == {("direct", "other", "nobody"): 1, ("found", "other", "nobody"): 1}

    def test_a_core_that_is_restored_knows_it(self, h):
        h.pod(self.taker("p", **{self.GPU: "2"}).obj())
        checkpoint = h.core.checkpoint()
        h.metrics = Metrics()
        h.core = Scheduler(Setup(profiles=(profile(),)), metrics=h.metrics.scheduler)
        h.tell(Restore(h.now, checkpoint))
        assert h.overfilled_nodes() == 1
        assert h.counted() == {}
        h.drop_pod(self.taker("p").obj())
        assert h.overfilled_nodes() == 0

    def test_the_log_names_a_few_of_many(self, h):
        pod = bound("p", "1", scheduled=False)
        requests = pod.raw["spec"]["containers"][0]["resources"]["requests"]
        requests |= {f"example.com/{number}": "1" for number in range(300)}
        h.pod(pod.obj())
        (log,) = h.complaints()
        assert log.fields["amounts"].endswith("1 of 0 and 284 more")
        assert len(log.fields["amounts"]) < 500
