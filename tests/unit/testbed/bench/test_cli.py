"""What `make bench` runs, by its options."""

import io
import json

import pytest

from testbed.bench import cli
from testbed.bench.cli import PODS, Bar, _parser, main, matches
from testbed.bench.report import NULL, OURS, RECORDED, UPSTREAM
from testbed.bench.runs import Run
from testbed.bench.scenarios import DEFAULT, SCENARIOS
from testbed.errors import TestbedError

RUN = Run(
    pods=10,
    bound=10,
    told=10,
    first_binding_seconds=1.0,
    seconds=2.0,
    pods_per_second=5.0,
    middle_pods_per_second=5.0,
    cpu_ms_per_pod={"scheduler": 1.0, "api": 2.0, "etcd": 0.5},
    start_cpu_seconds=0.5,
    peak_rss_mib=100.0,
    refused_bindings=0,
)


def planned(*arguments):
    said = []
    return matches(_parser().parse_args(arguments), said.append), said


def test_by_default_six_workloads_of_5000_nodes_with_enough_arrivals_for_a_p99():
    plan, said = planned()
    assert [match.scenario.name for match in plan] == list(DEFAULT)
    assert len(plan) == 6
    assert {(m.counts.nodes, m.counts.pods) for m in plan} == {(5000, PODS)}
    assert all(m.contestants == (OURS, UPSTREAM, NULL) for m in plan)
    assert all(m.counts.arriving >= 500 for m in plan)
    assert said == []


def test_in_full_all_workloads_have_the_numbers_of_scheduler_perf():
    plan, _ = planned("--full")
    assert [match.scenario.name for match in plan] == list(SCENARIOS)
    assert {m.scenario.name: m.counts.pods for m in plan} == {
        name: scenario.pods for name, scenario in SCENARIOS.items()
    }


def test_who_only_binds_does_not_compete_where_pods_have_to_go():
    (match,), _ = planned("--workload", "preemptionbasic")
    assert match.contestants == (OURS, UPSTREAM)
    assert match.counts.arriving == 0


def test_one_that_records_takes_part_only_if_it_is_named():
    (match,), _ = planned("--workload", "deployment", "--only", "ours", "--only", "recorded")
    assert match.contestants == (OURS, RECORDED)


def test_pods_do_not_arrive_faster_than_claims_can_be_bound():
    (match,), said = planned("--workload", "localpv")
    assert (match.rate, match.counts.arriving, said) == (5.0, 50, [])
    (match,), _ = planned("--workload", "localpv", "--rate", "2")
    assert match.rate == 2.0


def test_fewer_pods_than_asked_for_are_not_passed_over():
    (match,), (note,) = planned("--workload", "anti", "--nodes", "1000")
    # A fifth of the nodes are taken; those that arrive later get half of the others at most.
    assert (match.counts.pods, match.counts.arriving) == (400, 400)
    assert note.startswith("anti: 400 pods instead of 1200, and 400 that arrive later instead of")


@pytest.fixture
def arena(monkeypatch):
    """Workloads that are over at once, but for those that fail."""
    failing = set()

    class Arena:
        def __init__(self, scenario, counts, progress):
            self._name = scenario.name

        def compete(self, outcomes, *, repeats, rate):
            outcomes[0].runs += [RUN] * repeats
            if self._name in failing:
                raise TestbedError("etcd has ended")

    monkeypatch.setattr(cli, "Arena", Arena)
    monkeypatch.setattr(cli, "provenance", dict)
    return failing


def test_what_was_measured_before_a_failure_is_printed_and_written(arena, tmp_path, capsys):
    arena.add("spread")
    out = tmp_path / "out.json"
    assert main(["--workload", "basic", "--workload", "spread", "--out", str(out)]) == 1
    said = capsys.readouterr()
    assert "bench: etcd has ended" in said.err
    assert [line.split()[:2] for line in said.out.splitlines() if OURS in line][:2] == [
        ["basic", OURS],
        ["spread", OURS],
    ]
    found = json.loads(out.read_text())
    assert found["error"] == "etcd has ended"
    assert [(o["workload"], len(o["runs"])) for o in found["outcomes"]] == [
        ("basic", 3),
        ("spread", 3),
    ]


def test_where_nothing_is_written_is_said_before_and_after(arena, tmp_path, capsys):
    assert main(["--workload", "basic", "--out", str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr()
    for text in said:
        assert f"OUT: {tmp_path / 'out.json'}" in text
        assert "PLOTS is not given" in text


def test_a_bad_path_or_no_room_is_said_before_anything_runs(arena, tmp_path, capsys):
    (tmp_path / "file").touch()
    for arguments, complaint in (
        (["--out", str(tmp_path)], "that is a folder"),
        (["--out", str(tmp_path / "no" / "file")], "there is no folder"),
        (["--plots", str(tmp_path / "file")], "is not a folder"),
        (["--plots", str(tmp_path / "file" / "inside")], "is not a folder"),
        (["--nodes", "0"], "a cluster has at least one"),
    ):
        assert main(["--workload", "basic", *arguments]) == 1
        said = capsys.readouterr()
        assert complaint in said.err
        assert said.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("arguments", [["--repeats", "0"], ["--rate", "-1"]])
def test_impossible_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_where_nobody_looks_a_task_has_one_line():
    out = io.StringIO()
    bar = Bar(out)
    for done in range(3):
        bar.show("a", done, 2)
    bar.show("b", 0, 2)
    assert out.getvalue() == "a\nb\n"


def test_other_batches_compete_as_contestants_of_their_own():
    (match,), _ = planned("--workload", "basic", "--batch", "1/10", "--batch", "64/20")
    assert match.contestants == (OURS, UPSTREAM, NULL)
    assert [batch.contestant for batch in match.batches] == ["batch 1/10", "batch 64/20"]


def test_what_is_no_batch_is_refused(capsys):
    with pytest.raises(SystemExit):
        planned("--batch", "many")
    assert (
        "'many' is no batch; maxPods/maxMilliseconds is, such as 64/10" in capsys.readouterr().err
    )
