"""`replay` prints decisions, writes records and scenarios, and says what is wrong with a file."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.recording import MAGIC, End, frame
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.fakes.tape import Tape

SETUP = Setup(profiles=default_configuration(known_plugins()).profiles)


@pytest.fixture
def tape(tmp_path):
    """A recording of six pods on a node with room for four; closed by whoever uses it."""

    async def make():
        made = Tape(tmp_path / "tape", SETUP)
        made.put({"kind": "Node", **make_node("n").raw})
        for i in range(6):
            made.put({"kind": "Pod", **make_pod(f"p{i}").request(cpu="1").raw})
        made.settle()
        return made

    return asyncio.run(make())


@pytest.fixture
def file(tape):
    tape.recording.close()
    return tape.recording._path


# A list in a list in a list.
DEEP = b"\x91" * 99999 + b"\x90"


def framed(body):
    return len(body).to_bytes(4, "big") + body


def run(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_prints_a_line_for_each_decision_and_a_summary(file):
    result = run(file, "--check")
    assert result.exit_code == ExitCode.OK
    *lines, summary, verdict = result.stdout.splitlines()
    assert lines[0] == "0  2027-01-15T08:00:00.250Z  default/p0  attempt 1  n"
    assert lines[4].startswith(
        "4  2027-01-15T08:00:00.500Z  default/p4  attempt 1  "
        "no node: 0/1 nodes are available: 1 Insufficient cpu."
    )
    assert summary.startswith("6 decisions: 4 with a node, 2 without, decided from 2027-01-15T08")
    assert "in 1 segment" in summary
    assert verdict.startswith("decided as recorded: ")
    assert result.stderr == ""


def test_quiet_is_the_summary_alone(file):
    assert len(run(file, "--quiet").stdout.splitlines()) == 1


def test_records_hold_what_was_decided_and_seen(file, tmp_path):
    out = tmp_path / "decisions.jsonl"
    assert run(file, "--decisions", out).exit_code == ExitCode.OK
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 6
    failure = records[-1].pop("failure")
    assert failure.startswith("0/1 nodes are available")
    assert records[0] | {"now": 0, "message": 0} == {
        "number": 0,
        "segment": "tape",
        "message": 0,
        "now": 0,
        "uid": "uid-p0",
        "namespace": "default",
        "name": "p0",
        "schedulerName": "default-scheduler",
        "attempt": 1,
        "node": "n",
        "failure": "",
        "nominated": None,
        "seen": {"nodes": 1, "pods": 7},
    }
    assert records[-1]["node"] is None


@pytest.mark.parametrize("which", ["2", "default/p2", "default/p2@1"])
def test_a_scenario_can_be_evaluated(file, tmp_path, which):
    out = tmp_path / "scenario.json"
    assert run(file, "--scenario", which, out).exit_code == ExitCode.OK
    result = CliRunner().invoke(main, ["evaluate", str(out)])
    assert result.exit_code == ExitCode.OK
    answer = json.loads(result.stdout)
    assert (answer["id"], answer["feasible"]) == ("default/p2@1", ["n"])


def test_several_scenarios_can_be_asked_for(file, tmp_path):
    asked = [("0", tmp_path / "a"), ("5", tmp_path / "b")]
    assert run(file, *(x for a in asked for x in ("--scenario", *a))).exit_code == ExitCode.OK
    assert all(out.exists() for _, out in asked)


@pytest.mark.parametrize("which", ["6", "default/nobody", "default/p2@9"])
def test_a_decision_that_is_not_there_is_named(file, tmp_path, which):
    result = run(file, "--scenario", which, tmp_path / "x")
    assert result.exit_code == ExitCode.USAGE
    assert f"--scenario {which}: there is no such decision" in result.stderr


@pytest.mark.parametrize("which", ["p2", "/p2", "a/", "a/b@", "a/b@x", "-1", ""])
def test_what_names_no_decision_is_refused(file, tmp_path, which):
    result = run(file, "--scenario", which, tmp_path / "x")
    assert result.exit_code == ExitCode.USAGE
    assert "NAMESPACE/NAME@ATTEMPT" in result.stderr


def test_one_decision_can_be_written_to_several_files(file, tmp_path):
    asked = [("default/p2", tmp_path / "a"), ("default/p2", tmp_path / "b")]
    assert run(file, *(x for a in asked for x in ("--scenario", *a))).exit_code == ExitCode.OK
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != b""


def test_a_difference_exits_1_and_names_the_message(file):
    data = file.read_bytes()
    at = data.index(b"uid-p1", data.index(b"bind to"))
    file.write_bytes(data[:at] + b"uid-p9" + data[at + 6 :])
    result = run(file, "--check", "--quiet")
    assert result.exit_code == ExitCode.FAILURE
    assert "of tape (Schedule) is decided otherwise:" in result.stdout
    assert "recorded only: bind to 'n' (pod uid uid-p9, attempt 1)" in result.stdout
    # Without --check it is nobody's question.
    assert run(file, "--quiet").exit_code == ExitCode.OK


class TestFiles:
    """What is wrong with a file is said, with its name."""

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "it is empty"),
            (b"apiVersion: v1\n", "it is no recording: it starts with b'apiVersion: v1"),
            (b"k8s-scheduler recording 2\n...", "format 2, and this version reads formats 3 and 4"),
            (b"k8s-scheduler recording 77\n", "format 77, and this version reads formats 3 and 4"),
            (MAGIC[:10], "it ends within its first line"),
            (MAGIC, "it ends before its header"),
            (MAGIC + b"\0\0\0\2\1\2", "its header can't be read"),
            (MAGIC + framed(b"\x81\xa7version\xa1\xff"), "its header can't be read: 'utf-8' codec"),
            (MAGIC + framed(b"\x81\xa4rest\x81\xa1x" + DEEP), "its header can't be read: maximum"),
        ],
    )
    def test_what_is_no_recording(self, tmp_path, data, said):
        path = tmp_path / "tape"
        path.write_bytes(data)
        result = run(path)
        assert result.exit_code == ExitCode.USAGE
        assert result.stderr.startswith(f"{path}: ")
        assert said in result.stderr

    def test_a_missing_file(self, tmp_path):
        result = run(tmp_path / "tape")
        assert result.exit_code == ExitCode.USAGE
        assert "cannot be read: No such file or directory" in result.stderr

    def test_a_folder(self, tmp_path):
        result = run(tmp_path)
        assert result.exit_code == ExitCode.USAGE
        assert "Is a directory" in result.stderr

    def test_a_file_that_cannot_be_written(self, file, tmp_path):
        result = run(file, "--decisions", tmp_path / "missing" / "out")
        assert result.exit_code == ExitCode.USAGE
        assert "cannot be written: No such file" in result.stderr

    def test_a_cut_file_is_replayed_as_far_as_it_goes(self, file):
        data = file.read_bytes()
        file.write_bytes(data[:-40])
        result = run(file, "--check")
        assert result.exit_code == ExitCode.OK
        assert f"{file}: its end is missing" in result.stderr
        assert f" of {len(data) - 40} bytes" in result.stderr
        assert "4 with a node" in result.stdout

    def test_wherever_it_is_cut_there_is_no_difference(self, file):
        data = file.read_bytes()
        for end in range(len(data) - 1, len(MAGIC), -97):
            file.write_bytes(data[:end])
            result = run(file, "--check", "--quiet")
            assert result.exit_code in (ExitCode.OK, ExitCode.USAGE), result.output
            assert "missing" in result.stderr or "ends before its header" in result.stderr

    def test_rubbish_in_the_middle_is_told_with_its_place(self, file):
        data = bytearray(file.read_bytes())
        at = data.index(b"PodChanged")
        data[at : at + 10] = b"RodChanged"
        file.write_bytes(data)
        result = run(file)
        assert result.exit_code == ExitCode.USAGE
        assert f"{file}: the part that ends at byte " in result.stderr
        assert "RodChanged" in result.stderr

    def test_text_that_is_none_is_told_with_its_place(self, file):
        data = file.read_bytes()
        at = data.rindex(b"uid-p5")
        file.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        result = run(file)
        assert result.exit_code == ExitCode.USAGE
        assert f"{file}: the part that ends at byte " in result.stderr
        assert "'utf-8' codec can't decode" in result.stderr

    def test_nesting_without_end_is_told_with_its_place(self, file):
        # An end as a later version might write it, with more in it.
        before = file.read_bytes().removesuffix(frame(End()))
        file.write_bytes(before + framed(b"\x92\xa3end" + DEEP))
        result = run(file)
        assert result.exit_code == ExitCode.USAGE
        assert f"{file}: the part that ends at byte " in result.stderr
        assert "maximum recursion depth exceeded" in result.stderr


class TestOutputs:
    """Nothing that is still needed is written over."""

    def refused(self, *arguments):
        result = run(*arguments)
        assert result.exit_code == ExitCode.USAGE
        assert result.stdout == ""
        return result.stderr

    @pytest.mark.parametrize("option", [("--decisions",), ("--scenario", "0")])
    @pytest.mark.parametrize("name", ["tape", "tape.1", "sub/../tape", "link", "other-name"])
    def test_the_recording_is_never_written_over(self, file, tmp_path, option, name):
        (tmp_path / "sub").mkdir()
        (tmp_path / "link").symlink_to(file)
        (tmp_path / "other-name").hardlink_to(file)
        before = file.read_bytes()
        said = self.refused(file, "--alone", *option, tmp_path / name)
        assert f"{name}: a recording, or the name of a segment of one; name another" in said
        assert file.read_bytes() == before
        assert not (tmp_path / "tape.1").exists()

    def test_nor_is_the_file_behind_a_link_to_it(self, file, tmp_path):
        (tmp_path / "link").symlink_to(file)
        assert "tape: a recording" in self.refused(tmp_path / "link", "--decisions", file)

    def test_nor_is_a_newer_segment_or_another_recording(self, file, tmp_path):
        older, other = tmp_path / "tape.1", tmp_path / "other"
        older.write_bytes(file.read_bytes())
        other.write_bytes(b"k8s-scheduler recording 2\n...")
        assert "tape: a recording" in self.refused(older, "--decisions", file)
        assert "other: a recording" in self.refused(file, "--scenario", "0", other)

    @pytest.mark.parametrize("exists", [True, False])
    def test_two_outputs_to_one_file_are_refused(self, file, tmp_path, exists):
        out = tmp_path / "out"
        if exists:
            out.write_text("kept")
        said = self.refused(file, "--decisions", out, "--scenario", "0", out)
        assert f"--scenario 0 {out}: --decisions is written there too" in said
        assert out.exists() == exists
        said = self.refused(file, "--scenario", "0", out, "--scenario", "1", out)
        assert f"--scenario 1 {out}: --scenario 0 is written there too" in said

    def test_the_same_scenario_may_be_asked_for_twice(self, file, tmp_path):
        asked = ("--scenario", "0", tmp_path / "out")
        assert run(file, *asked, *asked).exit_code == ExitCode.OK

    def test_what_takes_everything_may_be_named_twice(self, file):
        result = run(file, "--decisions", "/dev/null", "--scenario", "0", "/dev/null")
        assert result.exit_code == ExitCode.OK

    @pytest.mark.parametrize("recording", ["missing", "rubbish"])
    def test_what_cannot_be_replayed_costs_no_older_file(self, tmp_path, recording):
        (tmp_path / "rubbish").write_text("rubbish")
        out = tmp_path / "out"
        out.write_text("kept")
        self.refused(tmp_path / recording, "--decisions", out)
        assert out.read_text() == "kept"

    @pytest.mark.parametrize("option", [("--decisions",), ("--scenario", "0")])
    def test_a_full_disk_is_told_once_and_without_a_traceback(self, file, option):
        result = run(file, "--quiet", *option, "/dev/full")
        assert result.exit_code == ExitCode.USAGE
        assert isinstance(result.exception, SystemExit)
        assert result.stderr == "/dev/full: cannot be written: No space left on device\n"

    def test_so_is_one_behind_standard_output(self, file):
        command = [sys.executable, "-c", "from k8s_scheduler.cli.main import main; main()"]
        with Path("/dev/full").open("wb") as full:
            result = subprocess.run(
                [*command, "replay", file], stdout=full, stderr=subprocess.PIPE, check=False
            )
        assert result.returncode == ExitCode.USAGE
        assert result.stderr == b"standard output: cannot be written: No space left on device\n"


class TestSegments:
    """Older segments come first; one that is missing is told."""

    @pytest.fixture
    def segments(self, tmp_path):
        async def make():
            tape = Tape(tmp_path / "tape", SETUP, max_bytes=1)
            running = asyncio.create_task(tape.recording.run())
            await asyncio.sleep(0)
            tape.put({"kind": "Node", **make_node("n").raw})
            for i in range(8):
                tape.put({"kind": "Pod", **make_pod(f"p{i}").raw})
                tape.settle()
                await asyncio.sleep(0)
            tape.recording.close()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

        asyncio.run(make())
        return tmp_path / "tape"

    def decided(self, result):
        return [line.split()[2] for line in result.stdout.splitlines()[:-1]]

    def test_all_are_replayed_oldest_first(self, segments):
        result = run(segments)
        assert result.exit_code == ExitCode.OK
        assert "in 4 segments" in result.stdout
        names = self.decided(result)
        assert names == sorted(names)
        assert len(names) == 4
        assert result.stderr == ""

    def test_one_can_be_replayed_alone(self, segments):
        every = self.decided(run(segments))
        assert self.decided(run(f"{segments}.2")) == every[1:2]
        assert self.decided(run(segments, "--alone")) == every[-1:]

    def test_a_gap_is_told(self, segments):
        segments.with_name("tape.2").unlink()
        result = run(segments)
        assert result.exit_code == ExitCode.OK
        assert f"{segments}.2: missing in the middle of the recording" in result.stderr
        assert "in 3 segments" in result.stdout

    def test_without_the_newest_the_next_is_offered(self, segments):
        segments.unlink()
        result = run(segments)
        assert result.exit_code == ExitCode.USAGE
        assert f"name {segments}.1" in result.stderr

    def test_a_foreign_segment_stops_before_anything_is_replayed(self, segments):
        segments.with_name("tape.1").write_bytes(b"nothing")
        result = run(segments)
        assert result.exit_code == ExitCode.USAGE
        assert f"{segments}.1: it is no recording" in result.stderr
        assert result.stdout == ""
