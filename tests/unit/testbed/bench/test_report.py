"""The table and the file of a benchmark."""

import json

from testbed.bench.report import NULL, OURS, UPSTREAM, Latency, Outcome, as_json, table
from testbed.bench.runs import Run


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
        Outcome("basic", OURS, [run(300, 1.0), run(340, 1.2), run(100, 5.0)]),
        Outcome("basic", UPSTREAM, [run(150, 6.0)], [Latency(50, 100, 5.0, 20.0)]),
        Outcome("basic", NULL, [run(400, 0.8)]),
    ]


def test_a_line_compares_medians_with_the_null_binder_and_with_kube_scheduler():
    _, ours, upstream, null, *_ = table(outcomes())
    assert "75%" in ours
    assert "1/5.0" in ours
    assert "38%" in upstream
    assert "20" in upstream
    assert "100%" in null


def test_what_the_set_up_does_not_show_stands_below():
    text = "\n".join(table(outcomes()))
    assert "fsync" in text
    assert "16 workers" in text


def test_the_file_has_every_run_but_not_the_order_of_all_pods():
    found = json.loads(json.dumps(as_json(outcomes(), {"repeats": 3})))
    assert found["settings"] == {"repeats": 3}
    assert found["machine"]["cores"] >= 1
    first = found["outcomes"][0]
    assert (first["pods_per_second"], len(first["runs"])) == (300, 3)
    assert "order" not in first["runs"][0]
