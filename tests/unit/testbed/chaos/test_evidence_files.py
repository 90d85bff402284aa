"""What a run writes down is what the auditor reads."""

import base64
import json
import random

import pytest
import yaml

from testbed.audit import SCHEDULER_USER
from testbed.chaos.__main__ import main
from testbed.chaos.archive import read_bindings, read_evidence, write_lines
from testbed.chaos.auditor import judge
from testbed.chaos.configuration import ConfigurationMount
from testbed.chaos.evidence import Done, Ended, EventSeen, LeaseSeen, Passed, Sample
from testbed.chaos.history import History, encoded
from testbed.chaos.report import render
from testbed.chaos.resources import Room, amount
from testbed.chaos.trimming import LEASE_KEY, trim
from testbed.workload import make_node, make_pod
from tests.unit.testbed.chaos.histories import ELSEWHERE, QUIET, a_good_story


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", 0.25),
        ("2", 2),
        ("64Mi", 64 * 2**20),
        ("1Gi", 2**30),
        ("3k", 3000),
        ("1e3", 1000),
        ("0", 0),
    ],
)
def test_quantities(text, value):
    assert amount(text) == value


@pytest.mark.parametrize("text", ["1Q", "five"])
def test_unknown_quantities_are_refused(text):
    with pytest.raises(ValueError, match=text):
        amount(text)


def stored(item):
    """Return an object as the API server would have completed it."""
    metadata = item["metadata"] | {"uid": f"uid-{item['metadata']['name']}"}
    return item | {"metadata": metadata}


class TestTrimming:
    def test_a_pod(self):
        item = stored(make_pod("p", cpu="500m", memory="1Gi", scheduler_name="s"))
        item["spec"]["nodeName"] = "n1"
        item["status"] = {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        }
        seen = trim("/registry/pods/default/p", item)
        assert (seen.uid, seen.node, seen.scheduler) == ("uid-p", "n1", "s")
        assert seen.takes == Room(milli_cpu=500, memory_bytes=2**30, pods=1)
        assert seen.scheduled == ("True", "", "")

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_pod_that_is_over_takes_nothing(self, phase):
        item = stored(make_pod("p", node_name="n1")) | {"status": {"phase": phase}}
        assert trim("/registry/pods/default/p", item).takes == Room()

    @pytest.mark.parametrize(
        ("fields", "is_open"),
        [
            ({}, True),
            ({"unschedulable": True}, False),
            ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, False),
            ({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}, True),
        ],
    )
    def test_a_node(self, fields, is_open):
        item = stored(make_node("n1", cpu="4", memory="8Gi", pods=5, zone="z", **fields))
        seen = trim("/registry/minions/n1", item)
        assert (seen.name, seen.zone, seen.open) == ("n1", "z", is_open)
        assert seen.has == Room(milli_cpu=4000, memory_bytes=8 * 2**30, pods=5)

    def test_events_leases_and_the_rest(self):
        event = {"involvedObject": {"uid": "u"}, "reason": "Scheduled", "message": "m"}
        assert trim("/registry/events/a/e", event) == EventSeen("u", "Scheduled", "m")
        assert trim(LEASE_KEY, {"spec": {"holderIdentity": "h"}}) == LeaseSeen("h")
        assert trim("/registry/secrets/a/s", {}) is None


def etcd_event(key, item, revision, *, gone=False):
    def text(data):
        return base64.b64encode(data).decode()

    body = {"value": text(json.dumps(item).encode())}
    kv = {"key": text(key.encode()), "mod_revision": str(revision)}
    return {"type": "DELETE", "kv": kv, "prev_kv": body} if gone else {"kv": kv | body}


def test_history_keeps_every_write_with_its_revision(tmp_path):
    history = History("http://127.0.0.1:1", tmp_path / "history.jsonl", clock=lambda: 5.0)
    pod = stored(make_pod("p"))
    key = "/registry/pods/default/p"
    history._take({"events": [etcd_event(key, pod, 7)]})
    history._take({"events": [etcd_event("/registry/secrets/a/s", {}, 8)]})
    history._take({"events": [etcd_event(key, pod, 9, gone=True)]})
    history._file.close()
    assert history.revision == 9
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [(line["revision"], line["gone"], line["at"]) for line in lines] == [
        (7, False, 5.0),
        (9, True, 5.0),
    ]
    assert history.holes == []


@pytest.mark.parametrize(
    "event",
    [
        etcd_event("/registry/pods/default/p", stored(make_pod("p", cpu="1Q")), 7),
        etcd_event("/registry/pods/default/p", {}, 7),
        etcd_event("/registry/pods/default/p", {}, 7, gone=True) | {"prev_kv": {}},
    ],
    ids=["an unknown quantity", "no pod", "nobody says what was deleted"],
)
def test_what_history_can_not_read_is_a_hole_and_the_rest_is_read(tmp_path, event):
    history = History("http://127.0.0.1:1", tmp_path / "history.jsonl")
    after = etcd_event("/registry/pods/default/q", stored(make_pod("q")), 8)
    history._take({"events": [event, after]})
    history._file.close()
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 1
    assert history.revision == 8
    [hole] = history.holes
    assert "/registry/pods/default/p" in hole
    assert "7" in hole


def test_history_that_was_compacted_away_is_a_hole(tmp_path):
    history = History("http://127.0.0.1:1", tmp_path / "history.jsonl")
    history._take({"compact_revision": "40", "canceled": True})
    history._file.close()
    assert history.revision == 39
    assert "40" in history.holes[0]


def audit_line(stage, audit_id, *, status=0, body=None):
    return {
        "auditID": audit_id,
        "stage": stage,
        "verb": "create",
        "stageTimestamp": "2026-01-01T00:00:00.000000Z",
        "user": {"username": SCHEDULER_USER},
        "objectRef": {"namespace": "a", "name": "p", "subresource": "binding"},
        "responseStatus": {"code": status},
        "requestObject": body,
    }


def test_bindings_have_their_answer_or_none(tmp_path):
    body = {"metadata": {"uid": "u"}, "target": {"name": "n1"}}
    write_lines(
        tmp_path / "audit.log",
        [
            audit_line("RequestReceived", "1"),
            audit_line("ResponseComplete", "1", status=201, body=body),
            audit_line("RequestReceived", "2"),
        ],
    )
    answered, unanswered = read_bindings(tmp_path / "audit.log")
    assert (answered.uid, answered.node, answered.status) == ("u", "n1", 201)
    assert (unanswered.name, unanswered.status) == ("p", 0)


@pytest.fixture
def run_folder(tmp_path):
    story = a_good_story()
    evidence = story.evidence()
    summary = ("seed", "scheduler", "lease_seconds", "write_seconds", "quiet_from", "ended_at")
    run = {name: getattr(evidence, name) for name in summary} | {"holes": []}
    (tmp_path / "run.json").write_text(json.dumps(run))
    write_lines(tmp_path / "history.jsonl", [encoded(change) for change in evidence.changes])
    write_lines(tmp_path / "passed.jsonl", [Passed(1.0, 2.0, "replica-a", "a", "p", 201)])
    write_lines(tmp_path / "actions.jsonl", [Done(1.0, 2.0, "leader killed", "replica-a")])
    samples = [Sample(float(second), "replica-a-1", 2, 3) for second in range(60)]
    write_lines(tmp_path / "samples.jsonl", samples)
    write_lines(tmp_path / "ends.jsonl", [Ended(2.0, "replica-a-1", -9, asked=True)])
    write_lines(tmp_path / "faults.jsonl", [{"fault": "409"}, {"fault": "409"}])
    write_lines(tmp_path / "opinions.jsonl", evidence.opinions)
    write_lines(tmp_path / "replays.jsonl", evidence.replayed)
    write_lines(tmp_path / "configurations.jsonl", evidence.configurations)
    write_lines(tmp_path / "metrics.json", [evidence.metrics])
    (tmp_path / "log").mkdir()
    for process, log in evidence.logs.items():
        (tmp_path / "log" / f"{process}.log").write_text(log)
    (tmp_path / "decisions").mkdir()
    lines = [
        {
            "uid": d.uid,
            "namespace": d.namespace,
            "name": d.name,
            "node": d.node,
            "attempt": d.attempt,
            "now": d.now,
            "seen": {"pods": d.seen_pods, "nodes": d.seen_nodes},
        }
        for d in evidence.decisions
    ]
    nowhere = lines[0] | {"node": None}
    write_lines(tmp_path / "decisions" / "a.jsonl", [*lines, nowhere])
    return tmp_path, evidence


def test_evidence_comes_back_from_its_folder(run_folder):
    folder, evidence = run_folder
    read = read_evidence(folder)
    assert list(read.changes) == evidence.changes
    assert read.decisions == evidence.decisions
    assert read.faults == {"409": 2}
    assert read.done[0].action == "leader killed"
    assert read.samples[0].open_files == 3


def test_the_report_names_seed_figures_and_violations(run_folder):
    folder, _ = run_folder
    evidence = read_evidence(folder)
    text = render(evidence, judge(evidence), folder=folder)
    # Without an audit log nothing explains the pods that are bound.
    assert "3 VIOLATIONS (seed 1" in text
    assert f"recorded input: {folder / 'record'}/*.tape" in text
    assert "bound otherwise: pod chaos/p1 is on n1" in text
    assert "409                   2" in text
    good = a_good_story().evidence()
    assert "no violations" in render(good, judge(good), folder=folder)


def test_a_folder_from_which_recordings_were_lost_is_a_violation(run_folder, capsys, monkeypatch):
    """Nothing to replay is not the same as nothing to find."""
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the tests' own handlers stay
    folder, _ = run_folder
    for name in ("decisions/a.jsonl", "replays.jsonl", "opinions.jsonl"):
        (folder / name).unlink()
    # Every pod that is bound has its Binding, so nothing else is wrong.
    lines = []
    for name, node in (("p1", "n1"), ("p2", "n1"), (QUIET, ELSEWHERE)):
        body = {"metadata": {"uid": f"uid-{name}"}, "target": {"name": node}}
        line = audit_line("ResponseComplete", name, status=201, body=body)
        line["objectRef"] |= {"namespace": "chaos", "name": name}
        lines.append(line)
    write_lines(folder / "audit.log", lines)
    assert main(["--audit", str(folder)]) == 1
    report = capsys.readouterr().out
    assert "3 VIOLATIONS" in report
    assert report.count("not judged: ") == 3


def test_the_configuration_is_exchanged_at_once(tmp_path):
    mount = ConfigurationMount(tmp_path / "config", scheduler="s")
    first = mount.file.resolve()
    assert yaml.safe_load(mount.file.read_text())["profiles"] == [{"schedulerName": "s"}]
    bad = mount.write_bad(random.Random(1))
    assert bad in mount.file.read_text()
    assert mount.file.resolve() != first
    good = mount.write_good(random.Random(1))
    assert good in mount.file.read_text()
