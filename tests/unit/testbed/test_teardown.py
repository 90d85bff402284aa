from pathlib import Path

from testbed import teardown
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD, KWOK, BedOptions
from testbed.processes import ProcessId
from testbed.registry import Record, Registry


def test_clients_stop_first_then_the_api_server_then_etcd():
    components = BedOptions(components=(CONTROLLER_MANAGER, KWOK)).all_components
    assert teardown.stop_order(components) == (
        (CONTROLLER_MANAGER, KWOK),
        (API_SERVER,),
        (ETCD,),
    )


def test_bed_of_another_process_is_taken_down_in_that_order(tmp_path: Path, monkeypatch):
    registry = Registry(tmp_path / "registry")
    names = {1: ETCD, 2: API_SERVER, 3: KWOK}
    processes = {
        name: ProcessId(pid=2**22 + number, start_ticks=1, boot_id="gone")
        for number, name in names.items()
    }
    record = Record(name="up", state_dir=tmp_path / "s", owner=None, processes=processes)
    with registry.locked():
        registry.claim(record)
    ended: list[list[ProcessId]] = []
    monkeypatch.setattr(teardown, "end_all", lambda group, **_: ended.append(list(group)))

    teardown.take_down(record, registry=registry)

    assert ended == [[processes[KWOK]], [processes[API_SERVER]], [processes[ETCD]]]
    assert list(tmp_path.iterdir()) == []
