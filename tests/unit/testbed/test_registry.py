import dataclasses
import subprocess
from pathlib import Path

import pytest

from testbed.errors import BedExistsError, TestbedError
from testbed.processes import ProcessId, myself
from testbed.registry import MARKER, Record, Registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def dead(child) -> ProcessId:
    """The identity of a process that is gone."""
    return dataclasses.replace(ProcessId.of(child.pid), start_ticks=1)


def claim(registry: Registry, **fields) -> Record:
    defaults = {"name": "bed", "state_dir": registry.root / "bed", "owner": myself()}
    record = Record(**(defaults | fields))
    with registry.locked():
        registry.claim(record)
    return record


def test_record_is_read_back_as_it_was_written(registry, child):
    process = ProcessId.of(child.pid)
    record = claim(registry, ports={"etcd": 20001}, processes={"etcd": process})
    assert registry.load("bed") == record
    assert registry.load_all() == [record]


def test_name_is_given_once(registry):
    claim(registry)
    with pytest.raises(BedExistsError, match="bed named bed"):
        claim(registry)


def test_folder_with_files_in_it_is_refused_as_state_folder(registry, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(TestbedError, match="not empty"):
        claim(registry, state_dir=tmp_path / "mine")
    assert not registry.root.exists()


def test_process_that_started_or_ended_is_in_the_record(registry, child):
    record = claim(registry)
    started = record.with_process("etcd", ProcessId.of(child.pid))
    registry.save(started)
    assert registry.load("bed").is_running()
    registry.save(started.with_process("etcd", None))
    assert not registry.load("bed").is_running()


class TestDiscarding:
    """Processes, files, record, and at last the folder of the registry itself."""

    def test_leaves_nothing(self, registry, child):
        record = claim(registry, processes={"etcd": ProcessId.of(child.pid)})
        (record.state_dir / "etcd").mkdir()
        registry.discard(record)
        assert child.wait() == -9
        assert not registry.root.exists()

    def test_can_be_repeated(self, registry):
        record = claim(registry)
        registry.discard(record)
        registry.discard(record)
        assert not registry.root.exists()

    def test_keeps_the_folder_while_another_bed_is_registered(self, registry):
        record = claim(registry)
        other = claim(registry, name="other", state_dir=registry.root / "other")
        registry.discard(record)
        assert registry.load_all() == [other]
        assert other.state_dir.is_dir()

    def test_reused_pid_is_not_killed(self, registry, child, dead):
        registry.discard(claim(registry, processes={"etcd": dead}))
        assert child.poll() is None

    @pytest.mark.parametrize("marker", [None, "another bed"])
    def test_folder_without_the_beds_own_marker_is_not_removed(self, registry, tmp_path, marker):
        record = claim(registry, state_dir=tmp_path / "state")
        precious = tmp_path / "precious"
        precious.mkdir()
        if marker:
            (precious / MARKER).write_text(marker)
        registry.discard(dataclasses.replace(record, state_dir=precious))
        assert precious.is_dir()


class TestOrphans:
    """A bed is an orphan when its owner is gone, and only then."""

    def test_bed_of_a_dead_owner_is_removed(self, registry, dead):
        record = claim(registry, owner=dead)
        assert registry.discard_orphans() == [record]
        assert not registry.root.exists()

    def test_bed_of_a_living_owner_stays(self, registry):
        claim(registry)
        assert registry.discard_orphans() == []
        assert registry.load("bed") is not None

    def test_detached_bed_stays(self, registry):
        claim(registry, owner=None)
        assert registry.discard_orphans() == []
        assert registry.load("bed") is not None

    def test_looking_for_orphans_makes_no_folder(self, registry):
        assert registry.discard_orphans() == []
        assert not registry.root.exists()


def test_folder_of_somebody_else_is_refused(registry, monkeypatch):
    registry.root.mkdir()
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with pytest.raises(TestbedError, match="belongs to somebody else"), registry.locked():
        pytest.fail("must not get here")


def test_lock_on_a_file_that_was_removed_meanwhile_is_not_a_lock(registry):
    """The holder before us removed folder and file: we must end up with a file that is there."""
    with registry.locked():
        claimed = Record(name="bed", state_dir=registry.root / "bed", owner=myself())
        registry.claim(claimed)
    registry.discard(claimed)
    with registry.locked():
        assert (registry.root / ".lock").exists()
    assert not registry.root.exists()
