"""Starting and stopping: bad input, a server that is not there yet, a drain."""

import json
import os
import subprocess

import msgspec
import pytest
from click.testing import CliRunner

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.cli.main import main
from k8s_scheduler.core.messages.recording import read_segment
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from testbed.daemon import PROGRAM, Daemon
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER, api_server_away, running, wait_bound

UNKNOWN_PLUGIN = """\
profiles:
- schedulerName: a
  plugins:
    filter:
      enabled:
      - name: NodeResourceFit
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments, environment=None):
    return subprocess.run(
        [PROGRAM, "run", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | (environment or {}),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("paralellism: 5\n", ["config.yaml:3: paralellism", 'did you mean "parallelism"']),
        (
            UNKNOWN_PLUGIN,
            ["config.yaml:8: profiles[0].plugins.filter.enabled[0].name", "NodeResourcesFit"],
        ),
        (
            "profiles:\n- schedulerName: a\n- schedulerName: a\n",
            ["config.yaml:5: profiles[1].schedulerName", "Duplicate value"],
        ),
    ],
    ids=["unknown field", "unknown plugin", "two profiles of one name"],
)
def test_a_wrong_configuration_is_refused_with_file_line_and_what_is_right(
    tmp_path, text, expected
):
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text)
    ended = run(f"--config={path}")
    assert ended.returncode == 2
    for part in (str(tmp_path), *expected):
        assert part in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unreadable_configuration_is_named(tmp_path):
    ended = run(f"--config={tmp_path}/missing.yaml")
    assert ended.returncode == 2
    assert "missing.yaml" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_credentials_says_what_it_tried_and_what_to_give():
    ended = run()
    assert ended.returncode == 3
    assert "in-cluster" in ended.stderr
    assert "KUBERNETES_SERVICE_HOST" in ended.stderr
    assert "kubeconfig" in ended.stderr
    assert "give --kubeconfig FILE or clientConnection.kubeconfig" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unsupported_flag_of_kube_scheduler_is_refused_by_name():
    ended = run("--feature-gates=X=true")
    assert ended.returncode == 2
    assert "--feature-gates is a kube-scheduler flag" in ended.stderr


def test_a_server_that_is_not_there_yet_is_waited_for(sandbox):
    bed = sandbox.bed
    sandbox.create_nodes([make_node("n1")])
    sandbox.create_pods([make_pod("p", scheduler_name=SCHEDULER)])
    daemon = Daemon(bed, name="early-bird")
    with api_server_away(bed, kill=False):
        daemon.start(wait=False)
        eventually(
            lambda: (
                'reason="unreachable"' in daemon.log.read_text()
                and daemon.get("/livez")[0] == 200
                and daemon.get("/readyz")[0] == 503
            ),
            20,
            "it says that the server can't be reached, lives, and is not ready",
        )
    wait_bound(sandbox, 1)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log.read_text()


def test_a_recording_of_a_real_run_replays_to_the_same_decisions(sandbox, tmp_path):
    sandbox.create_nodes([make_node(f"n{i}", cpu="4") for i in range(4)])
    tape = tmp_path / "tape"
    with running(sandbox.bed, flags=("--leader-elect=false", f"--record={tape}")):
        sandbox.create_pods(
            [make_pod(f"p{i}", cpu="1", scheduler_name=SCHEDULER) for i in range(20)]
        )
        placed = wait_bound(sandbox, 16)
    segment = read_segment(tape.read_bytes())
    profiles = msgspec.convert(segment.header.profiles, tuple[ResolvedProfile, ...])
    core = Scheduler(Setup(profiles=profiles))
    decided = {}
    for message in segment.messages:
        for instruction in core.handle(message):
            if type(instruction).__name__ == "Bind":
                decided[instruction.name] = instruction.node
    assert decided == placed
    records = tmp_path / "decisions.jsonl"
    result = CliRunner().invoke(
        main, ["replay", str(tape), "--check", "--quiet", "--decisions", str(records)]
    )
    assert result.exit_code == 0, result.output
    assert "decided as recorded" in result.stdout
    decisions = [json.loads(line) for line in records.read_text().splitlines()]
    assert {d["name"]: d["node"] for d in decisions if d["node"]} == placed
    # Versions as the informers had them, of kinds without an object too.
    assert all(d["seen"]["nodes"] > 0 and d["seen"]["pods"] > 0 for d in decisions)
    assert "services" in decisions[0]["seen"]


def test_stopping_brings_what_is_under_way_to_its_end(sandbox):
    sandbox.create_nodes([make_node(f"n{i}", cpu="64") for i in range(10)])
    with running(sandbox.bed) as daemon:
        sandbox.create_pods(
            [make_pod(f"p{i}", cpu="100m", scheduler_name=SCHEDULER) for i in range(200)]
        )
        eventually(
            lambda: (
                daemon.metrics().get('k8s_scheduler_bind_attempts_total{result="success"}', 0) > 20
            ),
            30,
            "binding is under way",
        )
        assert daemon.stop() == 0, daemon.log_tail()
    text = daemon.log.read_text()
    assert "Stopped" in text
    assert "unknown" not in text
