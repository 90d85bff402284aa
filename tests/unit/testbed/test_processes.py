import dataclasses
import os
import signal
import subprocess
import threading

import pytest

from testbed import processes
from testbed.processes import ProcessId, end_all, myself, start_process


@pytest.fixture
def child():
    """A process that sleeps until it is ended."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


class TestIdentity:
    """A pid is not a process: a reused pid is somebody else."""

    def test_this_process_is_alive(self):
        assert myself().is_alive()
        assert myself().rss_bytes() > 2**20

    def test_pid_without_a_process_has_no_identity(self, child):
        child.kill()
        child.wait()
        assert ProcessId.of(child.pid) is None

    def test_zombie_is_not_alive(self, child):
        identity = ProcessId.of(child.pid)
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessId.of(child.pid) is not None
        assert not identity.is_alive()
        assert identity.rss_bytes() == 0

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"start_ticks": 1}, id="started at another time"),
            pytest.param({"boot_id": "another"}, id="before the machine was started again"),
        ],
    )
    def test_reused_pid_is_neither_alive_nor_signalled(self, child, change):
        former = dataclasses.replace(ProcessId.of(child.pid), **change)
        assert not former.is_alive()
        assert former.send(signal.SIGKILL) is False
        assert child.poll() is None

    def test_signal_reaches_the_process_and_a_second_one_finds_it_gone(self, child):
        identity = ProcessId.of(child.pid)
        assert identity.send(signal.SIGTERM) is True
        assert child.wait() == -signal.SIGTERM
        assert identity.send(signal.SIGTERM) is False

    def test_name_with_spaces_and_brackets_does_not_confuse(self, tmp_path):
        odd = tmp_path / "a) Z (b"
        odd.symlink_to("/bin/sleep")
        process = subprocess.Popen([odd, "60"])
        try:
            assert ProcessId.of(process.pid).is_alive()
        finally:
            process.kill()
            process.wait()


class TestEnding:
    """SIGTERM first; SIGKILL only for those who do not listen."""

    def test_willing_process_ends_by_sigterm(self, child):
        end_all([ProcessId.of(child.pid)], grace_seconds=30)
        assert child.wait() == -signal.SIGTERM

    def test_stubborn_process_is_killed_when_its_time_is_over(self):
        stubborn = subprocess.Popen(
            ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"],
            stdout=subprocess.PIPE,
        )
        stubborn.stdout.readline()
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        end_all([ProcessId.of(stubborn.pid)], grace_seconds=5, clock=lambda: now[0], sleep=sleep)
        assert stubborn.wait() == -signal.SIGKILL
        assert now[0] >= 5
        stubborn.stdout.close()

    def test_gone_processes_are_no_trouble(self, child):
        identity = ProcessId.of(child.pid)
        child.kill()
        child.wait()
        end_all([identity], grace_seconds=0)


class TestStarting:
    """Owned children die with this process, and not before."""

    def start(self, tmp_path, *, owned: bool, command: str) -> subprocess.Popen:
        return start_process(
            ["/bin/sh", "-c", command],
            log=tmp_path / "log",
            env={"MARK": "yes"},
            cwd=tmp_path,
            owned=owned,
        )

    @pytest.mark.parametrize("owned", [True, False])
    def test_output_is_appended_and_only_the_given_environment_is_there(self, tmp_path, owned):
        (tmp_path / "log").write_text("before\n")
        child = self.start(tmp_path, owned=owned, command="echo $MARK $HOME.; pwd; echo no >&2")
        assert child.wait() == 0
        assert (tmp_path / "log").read_text() == f"before\nyes .\n{tmp_path}\nno\n"

    def test_child_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(self, tmp_path):
        child = self.start(tmp_path, owned=True, command="exec sleep 60")
        try:
            assert os.getsid(child.pid) == child.pid
        finally:
            child.kill()
            child.wait()

    def test_owned_child_outlives_the_thread_that_asked_for_it(self, tmp_path):
        children: list[subprocess.Popen] = []
        asking = threading.Thread(
            target=lambda: children.append(
                self.start(tmp_path, owned=True, command="echo up; exec sleep 60")
            )
        )
        asking.start()
        asking.join()
        (child,) = children
        try:
            while not (tmp_path / "log").read_text():  # past the trampoline
                os.sched_yield()
            assert child.poll() is None
        finally:
            child.kill()
            child.wait()

    def test_trampoline_refuses_to_start_for_a_parent_that_is_gone(self, tmp_path):
        wrapped = processes.dying_with_us(["/bin/echo", "started"])
        wrapped[4] = "1"  # not our pid
        done = subprocess.run(wrapped, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert "the parent is gone" in done.stderr

    def test_program_that_is_not_there_is_an_error_here_too(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            start_process(
                ["/no/such/program"], log=tmp_path / "log", env={}, cwd=tmp_path, owned=False
            )
