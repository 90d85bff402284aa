"""The ring of nodes, and that the null binder does what the daemon does around its decisions."""

import json
from pathlib import Path

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.core.engine.telling import tell_success
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome
from testbed.bench.contestants import configuration
from testbed.bench.null_binder import main, read_status, watched_kinds
from testbed.bench.ring import Ring, scheduled_event
from tests.builders import make_node, make_pod

NAME = "bench-scheduler"


class FakeBinds:
    def __init__(self, room: int = 100) -> None:
        self.limit = room
        self.submitted = []
        self.under_way = 0

    def bind_room(self) -> int:
        return self.limit - self.under_way

    def submit_bind(self, request) -> None:
        self.under_way += 1
        self.submitted.append(request)

    def placed(self) -> list[tuple[str, str]]:
        return [(request.name, request.node) for request in self.submitted]


class FakeEvents:
    def __init__(self) -> None:
        self.notes = []

    def record(self, note) -> None:
        self.notes.append(note)


class Harness:
    def __init__(self, *, room: int = 100, nodes: tuple[str, ...] = ("n0", "n1"), leave=()) -> None:
        self.binds, self.events = FakeBinds(room), FakeEvents()
        self.ring = Ring([NAME], leave=leave)
        self.ring.connect(self.binds, self.events)
        for name in nodes:
            self.ring.node_changed(None, make_node(name).obj())

    def come(self, *names: str) -> None:
        for name in names:
            self.ring.pod_changed(None, make_pod(name).scheduler(NAME).obj())

    def end(self, index: int, *, bound: bool = True) -> None:
        request = self.binds.submitted[index]
        reason = None if bound else BindFailure.REFUSED
        self.binds.under_way -= 1
        self.ring.bind_ended(BindOutcome(request.uid, 1, request.node, bound=bound, reason=reason))


class TestRing:
    def test_pods_go_to_the_nodes_in_turn_in_the_order_in_which_they_came(self):
        harness = Harness()
        harness.ring.allow()
        harness.come("b", "a", "c")
        assert harness.binds.placed() == [("b", "n0"), ("a", "n1"), ("c", "n0")]

    def test_nothing_is_bound_before_everything_is_known(self):
        harness = Harness()
        harness.come("a")
        assert harness.binds.submitted == []
        harness.ring.allow()
        assert harness.binds.placed() == [("a", "n0")]

    def test_nothing_is_bound_once_it_is_forbidden(self):
        harness = Harness()
        harness.ring.allow()
        harness.ring.forbid()
        harness.come("a")
        assert harness.binds.submitted == []

    def test_no_more_are_submitted_than_there_is_room_for_and_an_end_makes_room(self):
        harness = Harness(room=2)
        harness.ring.allow()
        harness.come("a", "b", "c", "d")
        assert [name for name, _ in harness.binds.placed()] == ["a", "b"]
        harness.end(0)
        assert [name for name, _ in harness.binds.placed()] == ["a", "b", "c"]

    def test_a_pod_without_a_node_waits_for_one(self):
        harness = Harness(nodes=())
        harness.ring.allow()
        harness.come("a")
        harness.ring.node_changed(None, make_node("late").obj())
        assert harness.binds.placed() == [("a", "late")]

    def test_a_node_that_goes_gets_no_more_pods(self):
        harness = Harness()
        harness.ring.node_changed(make_node("n0").obj(), None)
        harness.ring.allow()
        harness.come("a", "b")
        assert harness.binds.placed() == [("a", "n1"), ("b", "n1")]

    def test_an_update_of_a_node_gives_it_no_second_place(self):
        harness = Harness()
        harness.ring.node_changed(make_node("n0").obj(), make_node("n0").label(a="b").obj())
        harness.ring.allow()
        harness.come("a", "b", "c")
        assert [node for _, node in harness.binds.placed()] == ["n0", "n1", "n0"]

    @pytest.mark.parametrize(
        "pod",
        [
            make_pod("other").scheduler("default-scheduler"),
            make_pod("bound").scheduler(NAME).on("n0"),
            make_pod("leaving").scheduler(NAME).deleting(),
            make_pod("background-1").scheduler(NAME),
        ],
        ids=lambda pod: pod.raw["metadata"]["name"],
    )
    def test_whom_it_leaves_alone(self, pod):
        harness = Harness(leave=("background-",))
        harness.ring.allow()
        harness.ring.pod_changed(None, pod.obj())
        assert harness.binds.submitted == []

    def test_a_node_that_is_left_alone_gets_no_pods(self):
        harness = Harness(nodes=("churn-1", "n0"), leave=("background-", "churn-"))
        harness.ring.allow()
        harness.come("a", "b")
        assert [node for _, node in harness.binds.placed()] == ["n0", "n0"]

    def test_a_pod_that_goes_while_it_waits_is_forgotten(self):
        harness = Harness(room=1)
        harness.ring.allow()
        harness.come("a", "b", "c")
        harness.ring.pod_changed(make_pod("b").scheduler(NAME).obj(), None)
        harness.end(0)
        assert [name for name, _ in harness.binds.placed()] == ["a", "c"]

    def test_news_of_a_pod_that_is_being_bound_bind_it_no_second_time(self):
        harness = Harness()
        harness.ring.allow()
        harness.come("a", "a")
        assert len(harness.binds.submitted) == 1

    def test_a_success_is_told_and_counted_a_failure_only_counted(self):
        harness = Harness()
        harness.ring.allow()
        harness.come("a", "b")
        harness.end(0)
        harness.end(1, bound=False)
        assert [note.regarding.name for note in harness.events.notes] == ["a"]
        assert (harness.ring.bound, harness.ring.failed) == (1, 1)


def test_the_event_says_what_the_daemons_says():
    pod = make_pod("a").scheduler(NAME).obj()
    note, daemons = scheduled_event(pod, "n0"), tell_success(pod, attempt=1, node="n0")
    regarding = note.regarding
    assert (regarding.kind, regarding.namespace, regarding.name, regarding.uid) == (
        "Pod",
        daemons.namespace,
        daemons.name,
        daemons.uid,
    )
    assert (note.type, note.reason, note.action, note.note, note.reporting_controller) == (
        daemons.type.value,
        daemons.reason,
        daemons.action,
        daemons.note,
        daemons.scheduler_name,
    )


def test_it_watches_what_the_default_profile_depends_on(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(configuration(tmp_path / "kubeconfig"))
    kinds = watched_kinds(load(ConfigurationFlags(config_file=file)))
    assert {Kind.NAMESPACE, Kind.PERSISTENT_VOLUME, Kind.POD_DISRUPTION_BUDGET} <= set(kinds)


class TestStatus:
    def test_it_is_empty_while_nothing_was_said(self, tmp_path: Path):
        assert read_status(tmp_path / "status.json") == {}

    def test_it_is_what_was_written(self, tmp_path: Path):
        path = tmp_path / "status.json"
        path.write_text(json.dumps({"ready": True, "bound": 3}))
        assert read_status(path) == {"ready": True, "bound": 3}


def test_a_configuration_that_is_not_there_is_said(tmp_path: Path, capsys):
    missing = tmp_path / "nowhere.yaml"
    code = main([f"--config={missing}", f"--status={tmp_path / 'status.json'}"])
    assert code == 2
    assert "nowhere.yaml" in capsys.readouterr().err
