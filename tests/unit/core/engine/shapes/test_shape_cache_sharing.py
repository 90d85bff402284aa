"""What shapes and kin share, and that nobody goes by what was given up."""

from k8s_scheduler.core.engine.shapes import row_columns
from k8s_scheduler.core.messages.outgoing import Bind, Log
from k8s_scheduler.core.plugins.node_unschedulable import NodeUnschedulable
from k8s_scheduler.core.state.news.facts import FactLog
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.shapes.test_shape_cache import NODES, harness, place
from tests.unit.core.harness import only

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spread(name, app, *, cpu="100m"):
    pod = make_pod(name).uid(name).label(app=app).request(cpu=cpu)
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    pod.raw["spec"]["topologySpreadConstraints"] = [constraint]
    return pod.obj()


def for_node(name, *nodes, cpu="100m"):
    pod = make_pod(name).uid(name).request(cpu=cpu)
    field = [{"key": "metadata.name", "operator": "In", "values": [node]} for node in nodes]
    terms = [{"matchFields": [demand]} for demand in field]
    pod.raw["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return pod.obj()


def cordon(found, *numbers):
    for number in numbers:
        node = make_node(f"n{number}").offers(cpu="8", memory="16Gi", pods="110")
        found.node(node.cordoned().obj())


def put_into_zones(found, zones):
    for number, zone in enumerate(zones):
        node = make_node(f"n{number}").offers(cpu="8", memory="16Gi", pods="110")
        found.node(node.label(**{ZONE: zone}).obj())


class TestShapes:
    """Shapes that differ only in what is beyond the row have their rows in common."""

    def test_equal_terms_make_one_part(self):
        found = harness()
        for app in ("a", "b", "c"):
            for number in range(2):
                found.pod(spread(f"{app}{number}", app))
                assert found.binds()
        assert len(inside(found.core).shapes) == 3
        assert len(inside(found.core).shapes._pool._columns) == 1

    def test_other_sizes_make_other_parts(self):
        found = harness()
        for app, cpu in (("a", "100m"), ("b", "200m")):
            for number in range(2):
                found.pod(spread(f"{app}{number}", app, cpu=cpu))
                assert found.binds()
        assert len(inside(found.core).shapes._pool._columns) == 2

    def test_a_part_goes_with_the_last_who_uses_it(self):
        found = harness()
        for number in range(2):
            place(found, f"p{number}")
        shapes = inside(found.core).shapes
        assert shapes.nbytes > 0
        shapes.clear()
        assert shapes.nbytes == 0

    def test_a_shape_that_comes_after_much_has_changed_is_kept_all_the_same(self, monkeypatch):
        monkeypatch.setattr(row_columns, "_REBUILD_ROWS", 1)
        found = harness()
        for number in range(2):
            found.pod(spread(f"a{number}", "a"))
            assert found.binds()
        cordon(found, 0, 1, 2)
        for number in range(2):
            found.pod(spread(f"b{number}", "b"))
            assert found.binds()
        assert found.core.tally.refused == {}
        assert len(inside(found.core).shapes) == 2

    def test_one_whose_plugin_failed_is_made_anew_for_all(self, monkeypatch):
        found = harness()
        for app in ("a", "b"):
            for number in range(2):
                found.pod(spread(f"{app}{number}", app))
                assert found.binds()
        original = NodeUnschedulable.filter

        def fails_once(self, term, rows):
            monkeypatch.setattr(NodeUnschedulable, "filter", original)
            raise RuntimeError("once")

        monkeypatch.setattr(NodeUnschedulable, "filter", fails_once)
        cordon(found, *range(NODES - 1))
        for app in ("a", "b"):
            found.pod(spread(f"{app}2", app))
            assert [bind.node for bind in found.binds()] == [f"n{NODES - 1}"]
        # The second found it given up; what was made for the first does for both.
        assert found.core.tally.renewed == {"plugin_error": 1, "rows": 1}
        assert len(inside(found.core).shapes._pool._columns) == 1

    def test_what_one_caught_up_is_news_to_the_other(self):
        found = harness(verified_share=1.0)
        put_into_zones(found, "xxxxy")
        for app in ("a", "b"):
            for number in range(3):
                found.pod(spread(f"{app}{number}", app))
                assert found.binds()
        assert len(inside(found.core).shapes._pool._columns) == 1
        put_into_zones(found, "yxyxx")
        for app in ("a", "b"):
            found.pod(spread(f"{app}3", app))
            out = found.schedule()
            assert only(Bind, out)
            assert [log.event for log in only(Log, out) if "stale" in log.event] == []
        assert found.core.tally.renewed == {}

    def test_what_was_found_stale_is_rebuilt_for_all(self, monkeypatch):
        found = harness(verified_share=1.0)
        for app in ("a", "b"):
            for number in range(2):
                found.pod(spread(f"{app}{number}", app))
                assert found.binds()
        # Somebody forgets to say that nodes were cordoned.
        with monkeypatch.context() as silent:
            silent.setattr(FactLog, "note", lambda *_: None)
            cordon(found, *range(NODES - 1))
        stale = []
        for number in (2, 3):
            for app in ("a", "b"):
                found.pod(spread(f"{app}{number}", app))
                out = found.schedule()
                assert [bind.node for bind in only(Bind, out)] == [f"n{NODES - 1}"]
                stale += [log for log in only(Log, out) if "stale" in log.event]
        assert len(stale) == 1


class TestKin:
    """Pods that differ in size, or in the nodes they name, are judged with what is kept of all."""

    def test_the_second_makes_it_and_the_third_uses_it(self):
        found = harness()
        for number in range(4):
            assert place(found, f"p{number}", cpu=f"{number + 1}00m")
        assert (found.core.tally.new, found.core.tally.partial, found.core.tally.made) == (4, 3, 0)

    def test_nodes_that_are_named_are_the_only_ones(self):
        found = harness()
        for number in range(NODES):
            found.pod(for_node(f"d{number}", f"n{number}"))
            assert [bind.node for bind in found.binds()] == [f"n{number}"]
        assert found.core.tally.partial == NODES - 1

    def test_of_several_that_are_named_the_best_is_taken(self):
        found = harness()
        for number in range(3):
            found.pod(for_node(f"d{number}", "n1", "n2", cpu=f"{number + 1}"))
        nodes = [bind.node for bind in found.binds()]
        assert sorted(nodes[:2]) == ["n1", "n2"]
        assert nodes[2] == nodes[0]

    def test_what_changes_for_all_of_them_counts_for_each(self):
        found = harness()
        for number in range(3):
            place(found, f"p{number}", cpu=f"{number + 1}00m")
        cordon(found, 0, 1, 2, 3)
        assert place(found, "later", cpu="400m") == "n4"
        assert found.core.tally.partial == 3

    def test_one_who_fits_nowhere_is_told_why(self):
        found = harness()
        for number in range(3):
            place(found, f"p{number}", cpu=f"{number + 1}00m")
        assert place(found, "huge", cpu="9") is None
        assert found.core.tally.partial == 3
        (message,) = {text for _, reason, text in found.events() if reason == "FailedScheduling"}
        assert message.startswith("0/5 nodes are available: 5 Insufficient cpu.")

    def test_where_the_best_are_full_the_best_that_has_room_is_taken(self):
        found = harness()
        # The least requested in absolute terms leaves the most; the largest node has no slot left.
        big = make_node("big").offers(cpu="64", memory="64Gi", pods="0").obj()
        found.node(big)
        nodes = [place(found, f"p{number}", cpu=f"{number + 1}00m") for number in range(12)]
        assert found.core.tally.partial == 11
        assert "big" not in nodes
        assert len(set(nodes[:NODES])) == NODES

    def test_labels_that_no_plugin_asks_for_make_no_other_kin(self):
        """Jobs of all sizes: each has its own name among its labels."""
        found = harness()
        for number, app in enumerate(("a", "b", "c")):
            pod = make_pod(f"p{number}").uid(f"p{number}").label(app=app)
            found.pod(pod.request(cpu=f"{number + 1}00m").obj())
            assert found.binds()
        assert found.core.tally.partial == 2

    def test_labels_that_a_held_term_picks_make_other_kin(self):
        found = harness()
        for number in range(NODES):
            shy = make_pod(f"shy{number}").uid(f"shy{number}").on(f"n{number}")
            term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
            shy.raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
            found.pod(shy.obj())
        put_into_zones(found, ["z"] * NODES)
        akin = []
        for number, app in enumerate("abbab"):
            name = f"p{number}"
            found.pod(make_pod(name).uid(name).label(app=app).request(cpu=f"{number}00m").obj())
            # Nobody puts up with these.
            assert bool(found.binds()) is (app == "b")
            akin.append(found.core.tally.partial)
        assert akin == [0, 1, 2, 2, 3]
