"""`evaluate` prints a line for each pending pod, and says what is wrong with a file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "2", "memory": "2Gi", "pods": "5"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c"}]},
}
SCENARIO = {"id": "a", "objects": [NODE, POD], "pending": ["default/p"]}
SEQUENCE = {
    "id": "q",
    "objects": [NODE],
    "steps": [
        {"apply": [POD], "delete": [], "pending": ["default/p"]},
        {"apply": [], "delete": [{"kind": "Node", "name": "n"}], "pending": ["default/p"]},
    ],
}


@pytest.fixture
def file(tmp_path):
    def write(*values):
        path = tmp_path / "s.jsonl"
        path.write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
        return str(path)

    return write


# As a process of its own, where the real standard streams are the point.
COMMAND = [sys.executable, "-c", "from k8s_scheduler.cli.main import main; main()", "evaluate"]


def run(*arguments):
    return CliRunner().invoke(main, ["evaluate", *arguments])


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_prints_an_answer_for_each_pending_pod(file):
    result = run(file(SCENARIO, SCENARIO | {"id": "b"}))
    assert result.exit_code == ExitCode.OK
    assert [(a["id"], a["pod"], a["feasible"]) for a in answers(result)] == [
        ("a", "default/p", ["n"]),
        ("b", "default/p", ["n"]),
    ]
    assert result.stderr == ""


def test_both_ways_of_evaluation_answer_the_same(file):
    steps = [SEQUENCE["steps"][0], *({"apply": [], "delete": [], "pending": ["default/p"]},) * 3]
    path = file(SEQUENCE | {"steps": steps})
    kept = run("--sequence", "--show-cache", path)
    plain = run("--sequence", "--show-cache", "--evaluation", "plain", path)
    assert kept.exit_code == plain.exit_code == ExitCode.OK
    assert answers(kept) == answers(plain)
    assert (
        "1 new questions, 3 repeated ones, 2 of them (66.7%) answered from the cache" in kept.stderr
    )
    assert "0 new questions, 0 repeated ones" in plain.stderr


def test_reads_standard_input():
    result = subprocess.run(
        [*COMMAND, "-"], input=json.dumps(SCENARIO), capture_output=True, text=True, check=False
    )
    assert result.returncode == ExitCode.OK
    assert [a["feasible"] for a in answers(result)] == [["n"]]


def test_answers_sequences_step_by_step(file):
    result = run("--sequence", file(SEQUENCE))
    assert result.exit_code == ExitCode.OK
    assert [(a["id"], a["feasible"]) for a in answers(result)] == [("q/0", ["n"]), ("q/1", [])]
    assert answers(result)[1]["message"] == "no nodes available to schedule pods"


def test_a_scenario_that_cannot_be_judged_does_not_stop_the_others(file):
    wrong = SCENARIO | {"id": "wrong", "pending": ["default/other"]}
    path = file(wrong, SCENARIO)
    result = run(path)
    assert result.exit_code == ExitCode.USAGE
    first, second = answers(result)
    assert first["id"] == "wrong"
    assert "default/other not among the objects" in first["error"]
    assert second["feasible"] == ["n"]
    assert result.stderr.startswith(f"{path}:1: wrong: pending pod default/other not among")


def test_a_mistake_in_a_sequence_is_told_once(file):
    path = file(SEQUENCE | {"config": {"kind": "Other"}})
    result = run("--sequence", path)
    assert result.exit_code == ExitCode.USAGE
    assert len(answers(result)) == 2
    (complaint,) = result.stderr.splitlines()
    assert complaint.startswith(f"{path}:1: q/0: config: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", ":1: not JSON"),
        ('{"id": "a"}', ":1: Object missing required field"),
        (json.dumps(SEQUENCE), "use --sequence"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, content, said):
    path = tmp_path / "s.jsonl"
    path.write_text(content, encoding="utf-8")
    result = run(str(path))
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr.startswith(str(path))
    assert said in result.stderr


def test_a_missing_file_is_named(tmp_path):
    path = str(tmp_path / "none")
    result = run(path)
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == f"{path}: cannot be read: No such file or directory\n"


def test_lines_before_a_broken_one_are_answered(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(f"{json.dumps(SCENARIO)}\n{{\n", encoding="utf-8")
    result = run(str(path))
    assert result.exit_code == ExitCode.USAGE
    assert len(answers(result)) == 1


def test_a_full_disk_is_told_without_a_traceback(file):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*COMMAND, file(SCENARIO)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == ExitCode.USAGE
    assert result.stderr == "standard output: cannot be written: No space left on device\n"


def test_a_reader_that_has_seen_enough_gets_no_traceback(file):
    path = file(*[SCENARIO | {"id": str(n)} for n in range(50)])
    with subprocess.Popen(
        [*COMMAND, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert json.loads(process.stdout.readline())["id"] == "0"
        process.stdout.close()
        complaints = process.stderr.read()
    assert complaints == b""
