import subprocess
import sys
from pathlib import Path

import pytest

from testbed import guardian
from testbed.processes import ProcessId, myself
from testbed.registry import Record, Registry


@pytest.fixture
def owner():
    """A process that ends when its input does."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    yield process
    process.stdin.close()
    process.wait()


def _claim(root: Path, owner: ProcessId | None) -> Record:
    registry = Registry(root)
    record = Record(name="bed", state_dir=root / "bed", owner=owner)
    with registry.locked():
        registry.claim(record)
    return record


def test_waits_for_the_owner_then_removes_the_bed(tmp_path, owner):
    root = tmp_path / "registry"
    _claim(root, ProcessId.of(owner.pid))
    watching = subprocess.Popen([sys.executable, "-m", "testbed.guardian", root, "bed"])
    assert root.exists()
    owner.stdin.close()
    owner.wait()
    assert watching.wait(timeout=30) == 0
    assert not root.exists()


def test_detached_bed_is_none_of_its_business(tmp_path):
    record = _claim(tmp_path / "registry", None)
    guardian.main([str(tmp_path / "registry"), "bed"])
    assert record.state_dir.is_dir()


def test_bed_that_was_detached_meanwhile_stays(tmp_path, owner, monkeypatch):
    root = tmp_path / "registry"
    record = _claim(root, ProcessId.of(owner.pid))

    def detach_and_end(_process: ProcessId) -> None:
        Registry(root).save(Record(name="bed", state_dir=record.state_dir, owner=None))

    monkeypatch.setattr(guardian, "wait_for_end", detach_and_end)
    guardian.main([str(root), "bed"])
    assert record.state_dir.is_dir()


def test_bed_that_is_gone_already_is_no_trouble(tmp_path):
    guardian.main([str(tmp_path / "registry"), "bed"])


def test_process_that_ended_before_is_not_waited_for(owner):
    identity = ProcessId.of(owner.pid)
    owner.stdin.close()
    owner.wait()
    guardian.wait_for_end(identity)
    assert myself().is_alive()
