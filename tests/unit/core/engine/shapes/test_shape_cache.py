"""Which evaluations are kept, and for how long."""

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.shapes import shape_cache
from k8s_scheduler.core.messages.outgoing import Bind, Log
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.news.facts import NO_ROW, OBJECTS, ROOM, FactLog, fact_of
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only

NODES = 5


def setup(**options):
    return Setup(profiles=default_configuration(known_plugins()).profiles, **options)


def harness(**options):
    found = Harness(setup(**options))
    for number in range(NODES):
        found.node(make_node(f"n{number}").offers(cpu="8", memory="16Gi", pods="110").obj())
    return found


def place(found, name, **requests):
    """Let a pod come, and return where it goes."""
    pod = make_pod(name).uid(name).request(**requests or {"cpu": "100m"}).obj()
    found.pod(pod)
    binds = found.binds()
    return binds[0].node if binds else None


class TestAdmission:
    """A shape is kept from its second pod on."""

    def test_the_first_pod_is_new_the_second_makes_it_and_the_third_uses_it(self):
        found = harness()
        tally = found.core.tally
        place(found, "a")
        assert (tally.new, tally.made, tally.answered) == (1, 0, 0)
        place(found, "b")
        assert (tally.new, tally.made, tally.answered) == (1, 1, 0)
        place(found, "c")
        assert (tally.new, tally.repeated, tally.answered) == (1, 2, 1)

    def test_nothing_is_kept_where_every_pod_is_judged_from_scratch(self):
        found = harness(keeps_evaluations=False)
        assert [place(found, name) is not None for name in "abc"] == [True] * 3
        assert (found.core.tally.new, found.core.tally.repeated) == (0, 0)

    def test_pods_of_other_sizes_are_of_other_shapes(self):
        found = harness()
        for number in range(4):
            place(found, f"p{number}", cpu=f"{number + 1}00m")
        assert (found.core.tally.new, found.core.tally.made) == (4, 0)

    def test_a_pod_for_a_single_node_is_not_worth_it(self):
        found = harness()
        for name in "abc":
            raw = make_pod(name).uid(name)
            field = {"key": "metadata.name", "operator": "In", "values": ["n3"]}
            terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            raw.raw["spec"]["affinity"] = {"nodeAffinity": required}
            found.pod(raw.obj())
            assert [bind.node for bind in found.binds()] == ["n3"]
        assert (found.core.tally.made, found.core.tally.refused) == (0, {})


class TestAdmissionToAFamily:
    """Pods of one spec whose labels make a difference are of several shapes."""

    @pytest.fixture
    def found(self):
        """A pod on n0 will have no pod of app=db beside it, so labels are asked for."""
        found = harness()
        lonely = make_pod("lonely").uid("lonely").on("n0")
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "db"}},
        }
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        lonely.raw["spec"]["affinity"] = {"podAntiAffinity": required}
        found.pod(lonely.obj())
        return found

    def counts(self, found, name, app):
        found.pod(make_pod(name).uid(name).label(app=app).request(cpu="100m").obj())
        assert found.binds()
        tally = found.core.tally
        return tally.new, tally.made, tally.answered

    def test_the_first_pod_with_other_labels_is_new_beside_a_kept_shape(self, found):
        assert self.counts(found, "a", "web") == (1, 0, 0)
        assert self.counts(found, "b", "web") == (1, 1, 0)
        assert self.counts(found, "c", "db") == (2, 1, 0)
        assert self.counts(found, "d", "db") == (2, 2, 0)
        assert self.counts(found, "e", "db") == (2, 2, 1)


class TestBounds:
    """Memory is bounded."""

    def test_the_least_recently_used_shape_goes(self, monkeypatch):
        monkeypatch.setattr(shape_cache.ShapeCache.__init__, "__kwdefaults__", {"max_bytes": 1})
        found = harness()
        for round_ in range(3):
            for size in (100, 200):
                place(found, f"p{round_}-{size}", cpu=f"{size}m")
        assert len(inside(found.core).shapes) == 1
        assert found.core.tally.dropped >= 1
        # The last of the second size, whose shape is the one that is left.
        assert found.core.tally.answered == 1


class TestVerification:
    """A share of decisions is made again from scratch."""

    def test_what_is_right_is_approved(self):
        metrics = Metrics()
        found = harness(verified_share=1.0)
        found.core = type(found.core)(setup(verified_share=1.0), metrics=metrics.scheduler)
        for message in found.told:
            found.core.handle(message)
        for name in "abcd":
            place(found, name)
        assert value(metrics, "same") == 3
        assert value(metrics, "different") == 0

    def test_a_difference_is_logged_and_counted_and_the_pod_decided_on_from_scratch(
        self, monkeypatch
    ):
        metrics = Metrics()
        found = harness()
        found.core = type(found.core)(setup(verified_share=1.0), metrics=metrics.scheduler)
        for message in found.told:
            found.core.handle(message)
        for name in "ab":
            place(found, name)
        # Somebody forgets to say that a node was cordoned.
        with monkeypatch.context() as silent:
            silent.setattr(FactLog, "note", lambda *_: None)
            for number in range(NODES - 1):
                cordoned = make_node(f"n{number}").offers(cpu="8", memory="16Gi", pods="110")
                found.node(cordoned.cordoned().obj())
        found.pod(make_pod("c").uid("c").request(cpu="100m").obj())
        out = found.schedule()
        assert [bind.node for bind in only(Bind, out)] == [f"n{NODES - 1}"]
        (log,) = [log for log in only(Log, out) if "stale" in log.event]
        assert log.fields["nodes"] == NODES - 1
        assert "Unschedulable" in log.fields["differences"]
        assert '"name":"c"' in log.fields["pod"]
        assert value(metrics, "different") == 1


def value(metrics, result):
    name = "k8s_scheduler_shape_verifications_total"
    return metrics.registry.get_sample_value(name, {"result": result}) or 0


class TestFacts:
    """The log of what changed where."""

    def test_a_reader_gets_what_was_noted_since(self):
        log = FactLog()
        log.note(1, ROOM)
        cursor = log.position
        log.note(2, ROOM)
        log.note(NO_ROW, OBJECTS)
        assert log.since(cursor) == ([2, NO_ROW], [ROOM, OBJECTS])
        assert log.since(log.position) == ([], [])

    def test_one_that_comes_too_late_is_told_so(self, monkeypatch):
        monkeypatch.setattr(FactLog, "LIMIT", 4)
        log = FactLog()
        cursor = log.position
        for row in range(9):
            log.note(row, ROOM)
        assert log.since(cursor) is None
        assert log.since(log.position - 5) == ([4, 5, 6, 7, 8], [ROOM] * 5)

    def test_every_column_shows_a_fact(self):
        cache = Cache()
        for name in ("requested/cpu", "label/zone", "taint_set", "pods/labels", "node_count"):
            assert fact_of(name)
        assert cache.facts.position == 0

    @pytest.mark.parametrize("name", ["colour", "colour/", "requested"])
    def test_a_column_that_nobody_keeps_a_log_of_is_an_error(self, name):
        with pytest.raises(KeyError):
            fact_of(name)
