import subprocess
from pathlib import Path

import pytest

from testbed import status
from testbed.commands import needed_ports
from testbed.options import KWOK, BedOptions
from testbed.processes import ProcessId
from testbed.registry import Record


@pytest.fixture
def record():
    """A bed of which only etcd runs."""
    child = subprocess.Popen(["sleep", "60"])
    options = BedOptions(components=(KWOK,))
    yield Record(
        name="up",
        state_dir=Path("/state"),
        owner=None,
        ports={name: 20_000 + index for index, name in enumerate(needed_ports(options))},
        processes={"etcd": ProcessId.of(child.pid)},
    )
    child.kill()
    child.wait()


def test_plan_of_a_recorded_bed_has_its_components_and_ports(record):
    plan = status.plan_of(record)
    assert plan.options.all_components == ("etcd", "kube-apiserver", "kwok")
    assert plan.url("kube-apiserver") == "https://127.0.0.1:20001"


def test_running_and_dead_components_are_told_apart(record, monkeypatch):
    monkeypatch.setattr(status.health, "complaint", lambda *_: "500: [-]etcd failed")
    etcd, api_server, _ = status.inspect(record)
    assert (etcd.pid, etcd.trouble) == (record.processes["etcd"].pid, "500: [-]etcd failed")
    assert etcd.rss_bytes > 0
    assert (api_server.pid, api_server.trouble) == (None, "down")


def test_table_is_aligned_and_says_ok_when_nothing_is_wrong():
    lines = [
        status.ComponentStatus("etcd", 12, rss_bytes=110 * 2**20, port=20000, trouble=""),
        status.ComponentStatus("kube-apiserver", None, rss_bytes=0, port=20001, trouble="down"),
    ]
    assert list(status.table(lines)) == [
        "COMPONENT       PID  RSS      PORT   HEALTH",
        "etcd            12   110 MiB  20000  ok",
        "kube-apiserver  -    -        20001  down",
    ]
