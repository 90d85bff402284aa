"""The report of what was followed."""

import msgspec
from prometheus_client import CollectorRegistry

from k8s_scheduler.obs.shadow_metrics import ShadowMetrics
from k8s_scheduler.simulate.shadowing.findings import Finding, Result, Standing
from k8s_scheduler.simulate.shadowing.report import Report, table

NAME = "default-scheduler"


def finding(result: Result, *, total: int = 100, best: int = 100, **more) -> Finding:
    standing = Standing(feasible=True, total=total, best=best, better=int(best > total), ties=1)
    return Finding(1.0, "ns/p", NAME, "n", result, standing, **more)


def whole(report: Report):
    return report.whole(version="1", started_at=0.0, seconds=1.0, latency_seconds=3.0)


def test_regret_is_a_distribution():
    report = Report([NAME])
    for regret in (*[0] * 90, *[5] * 8, 40, 60):
        report.add(finding(Result.BEST, total=100 - regret))
    regret = report.profiles()[NAME].regret
    assert (regret.count, regret.p50, regret.p90, regret.p99, regret.max) == (100, 0, 0, 40, 60)
    assert regret.mean == 1.4


def test_without_a_binding_there_is_no_regret():
    assert Report([NAME]).profiles()[NAME].regret.count == 0


def test_the_table_has_a_column_for_each_profile_and_the_reasons_below():
    report = Report([NAME, "batch"])
    report.add(finding(Result.BEST))
    lines = list(table(whole(report)))
    assert lines[0].split() == [NAME, "batch"]
    assert next(line for line in lines if line.startswith("bindings")).split()[-2:] == ["1", "0"]


def test_the_json_holds_every_figure_and_the_cases():
    report = Report([NAME])
    report.add(finding(Result.WORSE, total=90))
    decoded = msgspec.json.decode(msgspec.json.encode(whole(report)))
    assert decoded["profiles"][NAME]["results"]["worse"] == 1
    assert decoded["cases"][0]["regret"] == 10


def test_metrics_move():
    registry = CollectorRegistry()
    metrics = ShadowMetrics(registry, profiles=[NAME], results=[r.value for r in Result])
    report = Report([NAME], metrics)
    report.add(finding(Result.WORSE, total=90))
    report.could_be_placed(NAME, "ns/p", 3)
    labels = {"profile": NAME}
    read = registry.get_sample_value
    assert read("k8s_scheduler_shadow_bindings_total", labels | {"result": "worse"}) == 1
    assert read("k8s_scheduler_shadow_regret_sum", labels) == 10
    assert read("k8s_scheduler_shadow_unplaced_feasible_total", labels) == 1
