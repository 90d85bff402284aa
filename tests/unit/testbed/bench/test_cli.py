"""What `make bench` runs, by its options."""

import io

import pytest

from testbed.bench.cli import PODS, Bar, _parser, main, matches
from testbed.bench.report import NULL, OURS, UPSTREAM
from testbed.bench.scenarios import DEFAULT, SCENARIOS


def planned(*arguments):
    said = []
    return matches(_parser().parse_args(arguments), said.append), said


def test_by_default_five_workloads_of_5000_nodes_with_enough_arrivals_for_a_p99():
    plan, said = planned()
    assert [match.scenario.name for match in plan] == list(DEFAULT)
    assert len(plan) == 5
    assert {(m.counts.nodes, m.counts.pods) for m in plan} == {(5000, PODS)}
    assert all(m.contestants == (OURS, UPSTREAM, NULL) for m in plan)
    assert all(m.steady is not None and m.steady.pods >= 500 for m in plan)
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
    assert match.steady is None


def test_fewer_pods_than_asked_for_are_not_passed_over():
    (match,), (note,) = planned("--workload", "anti", "--nodes", "1000")
    assert match.counts.pods == 50
    assert note.startswith("anti: 50 pods instead of 1500: 1000 nodes have no room for more")


def test_what_has_no_room_is_said_before_anything_runs(capsys):
    assert main(["--workload", "basic", "--workload", "anti", "--nodes", "20"]) == 1
    assert "take more nodes or spare fewer" in capsys.readouterr().err


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
