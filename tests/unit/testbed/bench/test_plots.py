"""Pictures of a benchmark."""

import json
import xml.etree.ElementTree as ET

import pytest

from testbed.bench.plots import charts, main, write_plots
from testbed.bench.report import NULL, OURS, UPSTREAM

_TEXT = "{http://www.w3.org/2000/svg}text"
_BAR = "{http://www.w3.org/2000/svg}rect"


def outcome(workload, scheduler, rate, *, latencies=()):
    figures = {
        "pods_per_second": rate,
        "cpu_ms_per_pod": {"scheduler": 1.0, "api": 2.0, "etcd": 0.5},
        "peak_rss_mib": 100.0,
        "first_binding_seconds": 1.5,
    }
    runs = [figures | {"pods_per_second": rate + offset} for offset in (-20, 0, 30)]
    return {
        "workload": workload,
        "scheduler": scheduler,
        "nodes": 5000,
        "pods": 1500,
        "latencies": list(latencies),
        "runs": runs,
        **figures,
    }


@pytest.fixture
def found():
    steady = [{"rate": 50.0, "pods": 750, "p50_ms": 3.0, "p99_ms": 40.0}]
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "A <fast> one", "cores": 2, "kernel": "6.1"},
        "versions": {
            "k8s-scheduler": "0.1.0",
            "commit": "abc",
            "python": "3.12.1",
            "kube-scheduler": "v1.37.1",
            "etcd": "v3.7.0",
        },
        "caveats": ["No fsync.", "Few cores."],
        "outcomes": [
            outcome("basic", OURS, 600, latencies=steady),
            outcome("basic", UPSTREAM, 150, latencies=steady),
            outcome("basic", NULL, 640),
        ],
    }


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(_TEXT)]


def drawn(found, folder):
    return {path.stem: path.read_text("utf-8") for path in write_plots(found, folder)}


def test_every_picture_says_what_it_was_measured_on_and_what_it_does_not_show(found, tmp_path):
    pictures = drawn(found, tmp_path)
    assert sorted(pictures) == ["cpu", "latency", "memory", "throughput"]
    for svg in pictures.values():
        text = " ".join(texts(svg))
        for part in (
            "2026-01-02",
            "2 cores, A <fast> one",
            "k8s-scheduler 0.1.0 (abc)",
            "Python 3.12.1",
            "kube-scheduler 1.37.1",
            "etcd 3.7.0",
            "No fsync. Few cores.",
        ):
            assert part in text


def test_the_same_file_gives_the_same_bytes(found, tmp_path):
    assert drawn(found, tmp_path / "a") == drawn(found, tmp_path / "b")


def test_a_bar_is_as_long_as_its_share_of_the_largest_run(found, tmp_path):
    svg = drawn(found, tmp_path)["throughput"]
    bars = {
        element.get("fill"): float(element.get("width"))
        for element in ET.fromstring(svg).iter(_BAR)
        if element.get("height") == "13.0"
    }
    ours, upstream, null = bars.values()
    assert ours / upstream == pytest.approx(4.0, rel=0.01)
    assert ours < null
    assert {"600", "150", "640"} <= set(texts(svg))


def test_who_has_no_figure_is_not_in_the_legend(found):
    assert charts(found)["latency"].series == [OURS, UPSTREAM]
    assert charts(found)["cpu"].series == [OURS, UPSTREAM, NULL]


def test_without_steady_arrival_there_is_no_picture_of_it(found):
    for one in found["outcomes"]:
        one["latencies"] = []
    assert "latency" not in charts(found)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "can't be read"),
        ("[]", "is not what `make bench OUT=file.json` writes"),
        ('{"date": ""}', "has no machine, versions, caveats, outcomes"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_a_reason(tmp_path, capsys, content, complaint):
    path = tmp_path / "x.json"
    path.write_text(content)
    assert main([str(path), "--out", str(tmp_path / "out")]) == 1
    assert complaint in capsys.readouterr().err


def test_a_benchmark_without_an_outcome_is_refused(found, tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(found | {"outcomes": []}))
    assert main([str(path), "--out", str(tmp_path)]) == 1
    assert "no outcomes" in capsys.readouterr().err


def test_the_command_names_what_it_wrote(found, tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(found))
    assert main([str(path), "--out", str(tmp_path / "new" / "folder")]) == 0
    assert f"{tmp_path}/new/folder/throughput.svg" in capsys.readouterr().out.split()
