"""The table and the file of a benchmark."""

import dataclasses
import json
import math

from testbed.bench.quality import Quality
from testbed.bench.report import NULL, OURS, UPSTREAM, Latency, Outcome, as_json, table
from testbed.bench.runs import Run
from testbed.bench.scenarios import Counts

COUNTS = Counts(nodes=5, init_pods=1, pods=10, background=0)


def run(rate, cpu):
    return Run(
        pods=10,
        bound=10,
        told=10,
        first_binding_seconds=1.0,
        seconds=2.0,
        pods_per_second=rate,
        middle_pods_per_second=rate,
        cpu_ms_per_pod={"scheduler": cpu, "api": 2.0, "etcd": 0.5},
        start_cpu_seconds=0.5,
        peak_rss_mib=100.0,
        refused_bindings=0,
        order=("a", "b"),
    )


def outcomes():
    return [
        Outcome("basic", OURS, COUNTS, [run(300, 1.0), run(340, 1.2), run(100, 5.0)]),
        Outcome("basic", UPSTREAM, COUNTS, [run(150, 6.0)], [Latency(50, 100, 5.0, 20.0)]),
        Outcome("basic", NULL, COUNTS, [run(400, 0.8)]),
    ]


def test_a_line_compares_medians_with_the_null_binder_and_with_kube_scheduler():
    *_, beside = (line for line in table(outcomes()) if line.startswith("basic"))
    # pods/s, API server and etcd of the null binder; pods/s, CPU and memory of kube-scheduler.
    assert beside.split() == ["basic", "75%", "1.00x", "1.00x", "2.00x", "1/5.0", "1.00x"]


def test_every_scheduler_has_a_line_of_its_own_figures():
    ours, upstream, null, _ = (line for line in table(outcomes()) if line.startswith("basic"))
    assert ours.split()[:5] == ["basic", "k8s-scheduler", "300", "300", "1.20"]
    assert upstream.split()[-2:] == ["5", "20"]
    assert null.split()[:4] == ["basic", "null", "binder", "400"]


def quality(violations=None, score=470.0):
    return Quality(
        pods=10,
        violations=violations or {},
        examples=(),
        unordered_skews=0,
        deviation_per_node=0.5,
        deviation_per_zone=0.0,
        judged=10,
        refused=0,
        mean_score=score,
        mean_best_score=score,
        best_share=0.9,
    )


def test_a_placement_that_breaks_a_rule_is_in_the_table():
    found = outcomes()
    found[0].qualities = [quality({"room": 2, "spread": 1}), quality(score=460.0), quality()]
    ours = next(line for line in table(found) if OURS in line and line.startswith("basic"))
    assert ours.split()[-4:] == ["470.0", "90%", "0.50", "3"]


def test_how_much_was_decided_from_what_is_kept_is_in_the_table_and_in_the_file():
    found = outcomes()
    found[0].kept = [0.5, 0.98, 0.99]
    ours = next(line for line in table(found) if OURS in line and line.startswith("basic"))
    assert ours.split()[-1] == "98%"
    assert as_json(found, {}, {}, took=1.0)["outcomes"][0]["kept_shares"] == [0.5, 0.98, 0.99]


def test_what_the_set_up_does_not_show_stands_below():
    text = "\n".join(table(outcomes()))
    assert "fsync" in text
    assert "16 workers" in text


def test_the_file_has_every_run_but_not_the_order_of_all_pods():
    origin = {"date": "today", "machine": {"cores": 2}}
    found = json.loads(json.dumps(as_json(outcomes(), {"repeats": 3}, origin, took=61.04)))
    assert found["settings"] == {"repeats": 3}
    assert (found["date"], found["machine"], found["took_seconds"]) == ("today", {"cores": 2}, 61.0)
    first = found["outcomes"][0]
    assert (first["pods_per_second"], len(first["runs"])) == (300, 3)
    assert (first["nodes"], first["pods"]) == (5, 10)
    assert "order" not in first["runs"][0]


def test_a_score_that_nobody_could_take_is_left_out():
    found = outcomes()
    found[0].qualities = [quality(score=math.nan)]
    assert not any("nan" in line for line in table(found))
    written = as_json(found, {}, {}, took=1.0)["outcomes"][0]["qualities"][0]
    assert (written["mean_score"], written["deviation_per_node"]) == (None, 0.5)


def test_who_gave_up_or_lost_events_is_named():
    quiet = dataclasses.replace(run(150, 6.0), told=7)
    found = [
        Outcome("basic", OURS, COUNTS, [run(300, 1.0)]),
        Outcome("basic", UPSTREAM, COUNTS, failures=["nothing happened for 60 s"]),
        Outcome("basic", NULL, COUNTS, [quiet]),
    ]
    lines = list(table(found))
    assert "basic, kube-scheduler, gave up: nothing happened for 60 s" in lines
    assert "basic, null binder: 3 of 10 events were never written." in lines
    kept = as_json(found, {}, {}, took=1.0)
    assert [outcome["scheduler"] for outcome in kept["outcomes"]] == [OURS, NULL]
    assert [failure["scheduler"] for failure in kept["failures"]] == [UPSTREAM]


def test_latency_is_the_median_of_the_runs_that_have_one():
    found = outcomes()
    found[1].latencies = [Latency(50, 100, p50, p99) for p50, p99 in ((4, 9), (6, 90), (5, 20))]
    upstream = next(line for line in table(found) if UPSTREAM in line)
    assert upstream.split()[-2:] == ["5", "20"]


def test_arrivals_that_were_too_slow_are_named_and_those_nearly_right_are_not():
    found = outcomes()
    found[1].latencies = [Latency(50, 100, 5, 20, rate) for rate in (47.6, 40.04)]
    said = [line for line in table(found) if "arrived at" in line]
    assert said == ["basic, kube-scheduler: pods arrived at 40.0 per second, not 50."]
    written = as_json(found, {}, {}, took=1.0)["outcomes"][1]["latencies"]
    assert [latency["achieved_rate"] for latency in written] == [47.6, 40.04]


def test_of_this_scheduler_giving_up_is_a_failure_and_of_others_a_result():
    for name, is_sound in ((OURS, False), (UPSTREAM, True), (NULL, True)):
        assert Outcome("basic", name, COUNTS, [run(1, 1.0)]).is_sound
        gone = Outcome("basic", name, COUNTS, [run(1, 1.0)], failures=["nothing happened"])
        assert gone.is_sound is is_sound


def test_a_rule_broken_in_any_run_is_a_failure_unless_pods_were_placed_blindly():
    for name, is_sound in ((OURS, False), (UPSTREAM, False), (NULL, True)):
        found = Outcome("basic", name, COUNTS, [run(1, 1.0)])
        found.qualities = [quality({"room": 1}), quality()]
        assert found.is_sound is is_sound
