"""States of clusters: what they are made of, how turns go, what is said of them."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from testbed.bench import states
from testbed.bench.account import Account
from testbed.bench.report import NULL, OURS, UPSTREAM
from testbed.bench.runs import Run, StoodStillError
from testbed.bench.state_runs import Budget, Stage, Standing, Turn, paused, settle, wait_ready
from testbed.bench.states import STATES, _parser, as_json, main, ratios, table
from testbed.errors import TestbedError


def state(name, *arguments):
    return STATES[name](_parser().parse_args(arguments))


def objects(variant, kind):
    return [item for group in variant.adds for item in group if item["kind"] == kind]


def run(rate, *, memory=100.0, first=1.0, bound=10):
    return Run(
        pods=10,
        bound=bound,
        told=10,
        first_binding_seconds=first,
        seconds=2.0,
        pods_per_second=rate,
        middle_pods_per_second=rate,
        cpu_ms_per_pod={"scheduler": 1.0, "api": 2.0, "etcd": 0.5},
        start_cpu_seconds=0.5,
        peak_rss_mib=memory,
        refused_bindings=0,
    )


class TestMaking:
    def test_bound_pods_are_spread_evenly_and_leave_room(self):
        (variant,) = state("bound", "--nodes", "10", "--bound-pods", "65", "--pods", "7").variants
        pods = objects(variant, "Pod")
        per_node = Counter(pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"])
        assert sorted(per_node.values()) == [6] * 5 + [7] * 5
        assert sum("nodeName" not in pod["spec"] for pod in pods) == 7
        assert set(per_node) == {n["metadata"]["name"] for n in objects(variant, "Node")}

    def test_unschedulable_pods_are_all_that_differs_and_others_come_later(self):
        found = state("unschedulable", "--nodes", "10", "--unschedulable", "8", "--pods", "7")
        without, full = found.variants
        assert len(objects(without, "Node")) == 10
        assert [pod["metadata"]["name"] for pod in found.late] == list(found.pods)
        assert len(objects(full, "Pod")) == full.unschedulable == 8
        assert objects(full, "Node") == []
        assert without.unschedulable == 0

    def test_the_larger_cluster_is_the_smaller_one_and_more_of_the_same(self):
        found = state("nodes", "--nodes", "10", "--many-nodes", "30", "--pods", "7")
        few, many = found.variants
        assert (len(objects(few, "Node")), len(objects(many, "Node"))) == (10, 20)
        in_place = objects(few, "Pod") + objects(many, "Pod")
        names = [pod["metadata"]["name"] for pod in in_place]
        assert len(set(names)) == len(names) == 30 // 5 + 7
        on = {pod["spec"]["nodeName"] for pod in objects(many, "Pod")}
        assert on <= {node["metadata"]["name"] for node in objects(many, "Node")}

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--state", "bound", "--nodes", "10"], "10 nodes have room for 400 pods"),
            (["--state", "nodes", "--many-nodes", "9"], "--many-nodes 9"),
            (["--state", "bound", "--pods", "0"], "at least one of each"),
        ],
    )
    def test_what_can_t_be_is_refused_with_a_reason(self, arguments, complaint, capsys):
        assert main(arguments) == 1
        assert complaint in capsys.readouterr().err


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class TestBudget:
    def test_a_round_that_would_end_too_late_is_not_begun(self):
        clock = Clock()
        done = []
        for number in Budget(100, clock=clock).rounds(5):
            done.append(number)
            clock.now += 40
        assert done == [0, 1]

    def test_the_first_round_is_run_however_late_it_is(self):
        clock = Clock()
        budget = Budget(10, clock=clock)
        clock.now = 500
        assert list(budget.rounds(3)) == [0]


class Reader:
    """A log in which a few pods more were tried at every look, up to an end."""

    def __init__(self, end, step=5):
        self.account = Account()
        self._end, self._step = end, step

    def catch_up(self):
        tried = self.account.requests.get("patch pods/status", 0)
        self.account.requests["patch pods/status"] = min(self._end, tried + self._step)
        return self.account


class TestSettling:
    def test_it_lasts_until_all_were_tried_and_nothing_is_written_any_more(self):
        clock, seen = Clock(), []
        settle(Reader(20), 20, seen.append, clock=clock, sleep=clock.sleep)
        assert seen[:4] == [5, 10, 15, 20]
        assert clock.now > 15.0

    def test_with_nothing_to_try_a_quiet_while_is_enough(self):
        clock = Clock()
        settle(Reader(0), 0, lambda _: None, clock=clock, sleep=clock.sleep)
        assert 15.0 < clock.now < 16.0

    def test_a_queue_that_never_rests_is_an_error_that_says_how_far_it_came(self):
        clock = Clock()
        with pytest.raises(TestbedError, match="15 of 20 pods"):
            settle(Reader(15), 20, lambda _: None, clock=clock, sleep=clock.sleep)


class Contestant:
    name = "somebody"
    log = Path("/does/not/exist")

    def __init__(self, pid):
        self.pid = pid

    def is_ready(self):
        return False


class TestProcesses:
    def test_one_that_ends_before_it_is_ready_is_an_error(self):
        with pytest.raises(TestbedError, match="somebody has ended"):
            wait_ready(Contestant(None))

    def test_one_that_is_never_ready_is_an_error(self):
        clock = Clock()
        with pytest.raises(TestbedError, match="is not ready after"):
            wait_ready(Contestant(1), clock=clock, sleep=clock.sleep)

    def test_a_paused_process_stands_still_and_goes_on_whatever_happens(self):
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
            try:
                with pytest.raises(KeyError):
                    fail_while_paused(process.pid)
                wait_for(process.pid, lambda letter: letter != "T")
            finally:
                process.send_signal(signal.SIGKILL)

    def test_nobody_can_be_paused_who_has_ended(self):
        with pytest.raises(TestbedError, match="has ended"), paused(Contestant(None)):
            pass


def fail_while_paused(pid):
    with paused(Contestant(pid)):
        wait_for(pid, lambda letter: letter == "T")
        raise KeyError


def wait_for(pid, wanted):
    for _ in range(1000):
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if wanted(status):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is in state {status}")


@pytest.fixture
def standings():
    def of(name, variant, contestant, *turns):
        return Standing(name, variant, contestant, [Turn(ready, run) for ready, run in turns])

    return [
        of("bound", "30 bound", OURS, (2.0, run(300, memory=150, first=2.2)), (9.0, run(1)),
           (2.2, run(310, memory=140, first=2.4))),
        of("bound", "30 bound", UPSTREAM, (2.0, run(100, memory=300, first=1.2))),
        of("unschedulable", "0 unschedulable", OURS, (1.0, run(400))),
        of("unschedulable", "9 unschedulable", OURS, (1.0, run(380))),
        of("nodes", "5 nodes", NULL, (1.0, run(400))),
        of("nodes", "15 nodes", NULL, (1.0, run(300))),
    ]  # fmt: skip


class TestSaying:
    def test_the_ratios_are_those_that_are_asked_for(self, standings):
        assert ratios(standings) == {
            "30 bound, peak memory, of kube-scheduler's": "0.47x",
            "30 bound, start-up to ready, of kube-scheduler's": "1.10x",
            "30 bound, start-up to first Binding, of kube-scheduler's": "1.83x",
            "9 unschedulable, k8s-scheduler, pods/s of those with 0 unschedulable": "95%",
            "15 nodes, null binder, pods/s of those with 5 nodes": "75%",
        }

    def test_the_table_has_medians_rounds_and_what_the_set_up_does_not_show(self, standings):
        lines = list(table(standings))
        assert lines[1].split()[3:5] == ["k8s-scheduler", "3"]
        assert lines[1].split()[5] == "300"
        assert "fsync" in "\n".join(lines)

    def test_the_file_has_every_turn(self, standings):
        found = json.loads(json.dumps(as_json(standings, {"nodes": 5}, {"date": "x"}, took=1.0)))
        first = found["standings"][0]
        assert [turn["ready_seconds"] for turn in first["turns"]] == [2.0, 9.0, 2.2]
        assert first["ready_seconds"] == 2.2
        assert "order" not in first["turns"][0]
        assert found["settings"] == {"nodes": 5}

    def test_a_pod_that_was_not_placed_is_a_failure(self):
        assert Standing("a", "b", OURS, [Turn(1.0, run(1))]).is_sound
        assert not Standing("a", "b", OURS, [Turn(1.0, run(1, bound=9))]).is_sound

    def test_who_gave_up_is_named_and_the_others_count(self, standings):
        gone = Standing("nodes", "15 nodes", UPSTREAM, failures=["nothing happened"])
        found = [*standings, gone]
        assert ratios(found) == ratios(standings)
        assert "nodes, 15 nodes, kube-scheduler, gave up: nothing happened" in list(table(found))
        written = as_json(found, {}, {}, took=1.0, error="etcd has ended")
        assert len(written["standings"]) == len(standings)
        assert [failure["scheduler"] for failure in written["failures"]] == [UPSTREAM]
        assert written["error"] == "etcd has ended"
        assert gone.is_sound
        assert not Standing("a", "b", OURS, failures=["nothing happened"]).is_sound


class World:
    def restore(self, name):
        pass


class TestCompeting:
    def test_who_gives_up_does_not_end_it_for_the_others(self, monkeypatch):
        found = state("nodes", "--nodes", "10", "--many-nodes", "30", "--pods", "7")
        stage = Stage(found, World(), lambda *_: None)

        def turn(_self, place, contestant, _label):
            if (place, contestant) == (0, "kube"):
                raise StoodStillError("nothing happened")
            return Turn(1.0, run(100))

        monkeypatch.setattr(Stage, "_turn", turn)
        standings = stage.standings([OURS, UPSTREAM])
        stage.compete({OURS: "ours", UPSTREAM: "kube"}, range(2), standings)
        assert [(len(s.turns), len(s.failures)) for s in standings] == [
            (2, 0),
            (0, 2),
            (2, 0),
            (2, 0),
        ]

    def test_what_was_measured_before_a_failure_is_printed_and_written(
        self, monkeypatch, tmp_path, capsys
    ):
        def compete(_states, _options, standings, save):
            standings.append(Standing("bound", "3 bound", OURS, [Turn(1.0, run(300))]))
            save()
            raise TestbedError("etcd has ended")

        monkeypatch.setattr(states, "_compete", compete)
        monkeypatch.setattr(states, "provenance", dict)
        out = tmp_path / "out.json"
        assert main(["--state", "bound", "--out", str(out)]) == 1
        said = capsys.readouterr()
        assert "etcd has ended" in said.err
        assert said.out.splitlines()[2].split()[:4] == ["bound", "3", "bound", OURS]
        found = json.loads(out.read_text())
        assert (len(found["standings"]), found["error"]) == (1, "etcd has ended")

    def test_a_bad_path_is_said_before_anything_runs(self, tmp_path, capsys):
        assert main(["--state", "bound", "--out", str(tmp_path)]) == 1
        assert "that is a folder" in capsys.readouterr().err
