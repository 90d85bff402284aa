import dataclasses
import tempfile

import pytest

from testbed import cli
from testbed.bed import DETACHED
from testbed.processes import myself
from testbed.registry import Record, Registry


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Keep away from beds that really run on this machine."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _register(**fields) -> Record:
    registry = Registry()
    defaults = {"name": DETACHED, "state_dir": registry.root / DETACHED, "owner": None}
    record = Record(**(defaults | fields))
    with registry.locked():
        registry.claim(record)
    return record


@pytest.mark.parametrize("command", [[], ["build"], ["up"], ["status"], ["down"]])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "--help"])
    assert end.value.code == 0
    assert "usage: python -m testbed" in capsys.readouterr().out


def test_no_command_is_misuse(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_unknown_component_is_misuse_and_named(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["up", "--with", "kubelet"])
    assert end.value.code == 2
    assert "kubelet: not one of kube-controller-manager" in capsys.readouterr().err


def test_nothing_up_is_said_and_is_not_well(capsys):
    assert cli.main(["status"]) == 1
    assert "no bed is up" in capsys.readouterr().out


def test_down_with_nothing_up_is_fine_and_makes_no_file(capsys, tmp_path):
    assert cli.main(["down"]) == 0
    assert capsys.readouterr().out == "no bed is up\n"
    assert list(tmp_path.iterdir()) == []


def test_down_removes_what_dead_owners_left(capsys, tmp_path):
    gone = dataclasses.replace(myself(), start_ticks=1)
    _register(name="bed-1", state_dir=Registry().root / "bed-1", owner=gone)
    assert cli.main(["down"]) == 0
    assert "removed bed bed-1" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_down_leaves_a_bed_alone_that_is_just_being_started(capsys):
    record = _register(owner=myself())
    assert cli.main(["down"]) == 1
    assert "still starting" in capsys.readouterr().err
    assert record.state_dir.is_dir()


def test_down_ends_a_detached_bed_whose_processes_are_gone(capsys, tmp_path):
    _register()
    assert cli.main(["down"]) == 0
    assert "no process and no file is left" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_up_refuses_while_another_up_is_at_work(capsys):
    _register(owner=myself())
    assert cli.main(["up"]) == 1
    assert "is starting a bed right now" in capsys.readouterr().err
