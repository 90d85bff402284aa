"""A recording holds every input, and any segment of it can be replayed alone."""

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.workloads import DeviceClass
from k8s_scheduler.app.driver.recording import Recording
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import ObjectChanged, Reconfigure, Restore
from k8s_scheduler.core.messages.recording import End, RecordingError, frame, read_segment
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.lib.slices import silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, profile

SETUP = Setup(profiles=(profile(),))


def full_disk():
    return Path("/dev/full").open("wb", buffering=0)


class Tape:
    """A harness whose messages are recorded."""

    def __init__(self, path, *, max_bytes=1 << 20):
        self.path = path
        self.metrics = Metrics()
        self.h = Harness(SETUP)
        self.recording = Recording(
            path,
            self.h.core,
            max_bytes=max_bytes,
            clock=lambda: self.h.now,
            meter=silent_meter(),
            metrics=self.metrics.recording,
        )
        inner = self.h.tell

        def tell(message):
            self.recording.write(message)
            return inner(message)

        self.h.tell = tell

    @property
    def is_active(self):
        return self.metrics.registry.get_sample_value("k8s_scheduler_recording_active")

    @property
    def written_bytes(self):
        return self.metrics.registry.get_sample_value("k8s_scheduler_recording_bytes_total")


def replay(path):
    """Return the instructions of a segment, from its checkpoint on."""
    core = Scheduler(SETUP)
    messages = list(read_segment(path.read_bytes()).messages)
    return messages, [i for m in messages for i in core.handle(m)]


async def test_a_replay_decides_the_same(tmp_path):
    tape = Tape(tmp_path / "tape")
    for i in range(5):
        tape.h.node(make_node(f"n{i}").obj())
    for i in range(30):
        pod = make_pod(f"p{i}").request(cpu="1")
        pod.raw["spec"]["containers"][0]["resources"]["limits"] = {"cpu": f"{i + 1}"}
        tape.h.pod(pod.obj())
    for bind in tape.h.binds():
        tape.h.result(bind)
    tape.recording.close()
    messages, out = replay(tmp_path / "tape")
    assert isinstance(messages[0], Restore)
    assert messages[1:] == tape.h.told
    assert out == tape.h.out


async def test_nobody_else_on_the_machine_may_read_it(tmp_path):
    """It holds every pod and node of the cluster."""
    before = os.umask(0o022)
    try:
        Tape(tmp_path / "tape").recording.close()
    finally:
        os.umask(before)
    assert stat.filemode((tmp_path / "tape").stat().st_mode) == "-rw-------"


async def test_a_full_segment_is_rotated_and_the_next_one_stands_alone(tmp_path):
    path = tmp_path / "tape"
    tape = Tape(path, max_bytes=4000)
    running = asyncio.create_task(tape.recording.run())
    for i in range(60):
        tape.h.node(make_node(f"n{i}").obj())
        tape.h.pod(make_pod(f"p{i}").request(cpu="3").obj())
        tape.h.schedule()
        await asyncio.sleep(0)
    tape.recording.close()
    running.cancel()
    segments = sorted(p.name for p in tmp_path.iterdir())
    assert segments == ["tape", "tape.1", "tape.2", "tape.3"]
    told, out = [], []
    for name in reversed(segments):
        messages, instructions = replay(tmp_path / name)
        told += messages[1:]
        out += instructions
    assert told == tape.h.told[-len(told) :]
    assert out == tape.h.out[-len(out) :]


async def test_each_segment_is_headed_by_the_configuration_it_begins_with(tmp_path):
    tape = Tape(tmp_path / "tape", max_bytes=1)
    running = asyncio.create_task(tape.recording.run())
    await asyncio.sleep(0)
    changed = Reconfigure(tape.h.now, (profile(), profile("other")), settings_of(SETUP.queue))
    tape.h.tell(changed)
    await asyncio.sleep(0)
    tape.h.pod(make_pod("p").scheduler("other").obj())
    tape.recording.close()
    running.cancel()
    first, last = (read_segment((tmp_path / n).read_bytes()) for n in ("tape.1", "tape"))
    assert [p["scheduler_name"] for p in first.header.profiles] == ["default-scheduler"]
    assert list(first.messages)[1:] == [changed]
    found = msgspec.convert(last.header.profiles, tuple[ResolvedProfile, ...])
    core = Scheduler(Setup(profiles=found))
    for message in last.messages:
        core.handle(message)
    assert len(inside(core).queue) == len(inside(tape.h.core).queue) == 1


async def test_objects_of_other_kinds_are_in_the_checkpoint_of_the_next_segment(tmp_path):
    tape = Tape(tmp_path / "tape", max_bytes=1)
    running = asyncio.create_task(tape.recording.run())
    await asyncio.sleep(0)
    raw = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    kept = msgspec.convert(raw, DeviceClass)
    for name, told in (("gpu", kept), ("fpga", kept), ("fpga", None)):
        tape.h.tell(ObjectChanged(tape.h.now, Kind.DEVICE_CLASS, "", name, told))
        await asyncio.sleep(0)
    tape.h.tick(1)
    tape.recording.close()
    running.cancel()
    newest, _ = replay(tmp_path / "tape")
    assert [type(m).__name__ for m in newest] == ["Restore", "Tick"]
    core = Scheduler(SETUP)
    core.handle(newest[0])
    assert core.checkpoint().objects == tape.h.core.checkpoint().objects
    assert [(o.kind, o.name, o.object) for o in core.checkpoint().objects] == [
        (Kind.DEVICE_CLASS, "gpu", kept)
    ]


async def test_a_new_start_keeps_what_the_last_run_left(tmp_path):
    first = Tape(tmp_path / "tape")
    first.h.node(make_node("n0").obj())
    first.recording.close()
    left = (tmp_path / "tape").read_bytes()
    Tape(tmp_path / "tape").recording.close()
    assert (tmp_path / "tape.1").read_bytes() == left


async def test_a_checkpoint_larger_than_a_segment_does_not_fill_it(tmp_path):
    tape = Tape(tmp_path / "tape", max_bytes=4000)
    running = asyncio.create_task(tape.recording.run())
    await asyncio.sleep(0)
    for i in range(100):
        tape.h.node(make_node(f"n{i}").obj())
        await asyncio.sleep(0)
    before = sum(1 for _ in tmp_path.iterdir())
    for _ in range(20):
        tape.h.tick(1)
        await asyncio.sleep(0)
    assert sum(1 for _ in tmp_path.iterdir()) == before
    tape.recording.close()
    running.cancel()
    messages, _ = replay(tmp_path / "tape")
    assert len(messages) > 20


async def test_messages_wait_for_the_checkpoint_before_them(tmp_path):
    path = tmp_path / "tape"
    tape = Tape(path, max_bytes=1 << 20)
    tape.h.node(make_node("n0").obj())
    tape.recording.close()
    messages, _ = replay(path)
    assert [type(m).__name__ for m in messages] == ["Restore", "NodeChanged"]


async def test_a_full_disk_stops_the_recording_and_nothing_else(tmp_path, caplog):
    tape = Tape(tmp_path / "tape")
    assert tape.is_active == 1
    tape.recording._file.close()
    tape.recording._file = full_disk()
    tape.recording._behind = None
    tape.h.node(make_node("n0").obj())
    tape.h.pod(make_pod("p").obj())
    assert len(tape.h.binds()) == 1
    assert tape.is_active == 0
    assert "Recording stopped; scheduling goes on" in caplog.text
    tape.recording.close()


async def test_bytes_that_no_file_takes_are_not_counted(tmp_path):
    """Neither those that the disk refuses nor any after them, however full the segment was."""
    tape = Tape(tmp_path / "tape", max_bytes=1)
    running = asyncio.create_task(tape.recording.run())
    await asyncio.sleep(0)
    tape.recording._file.close()
    tape.recording._file = full_disk()
    written = tape.written_bytes
    assert written > 0
    tape.recording._size = 2
    for _ in range(10):
        tape.h.tick(1)
    tape.recording.close()
    assert tape.written_bytes == written
    running.cancel()


async def test_every_byte_in_the_file_is_counted(tmp_path):
    tape = Tape(tmp_path / "tape")
    tape.h.node(make_node("n0").obj())
    tape.recording.close()
    assert tape.written_bytes == (tmp_path / "tape").stat().st_size


async def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(OSError, match=r"cannot record to .*/missing/tape: No such file"):
        Tape(tmp_path / "missing" / "tape")


async def test_a_torn_end_is_read_as_far_as_it_goes(tmp_path):
    tape = Tape(tmp_path / "tape")
    tape.h.node(make_node("n0").obj())
    tape.h.node(make_node("n1").obj())
    tape.recording.close()
    data = (tmp_path / "tape").read_bytes()
    end = len(frame(End()))
    for cut, count in ((0, 3), (3, 3), (end, 3), (end + 3, 2)):
        segment = read_segment(data[: len(data) - cut])
        assert len(list(segment.messages)) == count
        assert segment.is_whole is (cut == 0)
        assert (segment.read_bytes == segment.total_bytes) is (cut in (0, end))


async def test_the_last_message_of_a_torn_segment_has_no_answer(tmp_path):
    """It may have been answered: nobody knows."""
    tape = Tape(tmp_path / "tape")
    tape.h.node(make_node("n0").obj())
    tape.recording.close()
    data = (tmp_path / "tape").read_bytes()
    assert [e.summaries for e in read_segment(data).entries()] == [(), ()]
    torn = read_segment(data[: -len(frame(End()))])
    assert [e.summaries for e in torn.entries()] == [(), None]


async def test_answers_and_versions_stand_with_their_message(tmp_path):
    tape = Tape(tmp_path / "tape")
    reached = {"pods": "5", "nodes": "3"}
    tape.recording.follow(reached.items)
    tape.h.node(make_node("n0").obj())
    for name in ("a", "b", "c"):
        tape.h.pod(make_pod(name).obj())
        tape.recording.answered(tape.h.schedule())
        reached["pods"] = {"a": "5", "b": "9", "c": "9"}[name]
    tape.recording.close()
    entries = [
        (type(e.message).__name__, e.versions, [(d.verb, d.uid, d.detail) for d in e.summaries])
        for e in read_segment((tmp_path / "tape").read_bytes()).entries()
    ]
    assert [e for e in entries if e[0] == "Schedule"] == [
        ("Schedule", {"pods": "5", "nodes": "3"}, [("bind to", "uid-a", "n0")]),
        ("Schedule", {}, [("bind to", "uid-b", "n0")]),
        ("Schedule", {"pods": "9"}, [("bind to", "uid-c", "n0")]),
    ]
    assert all(e[1:] == ({}, []) for e in entries if e[0] != "Schedule")


@pytest.mark.parametrize("data", [b"", b"something else", b"k8s-scheduler recording 1\n"])
def test_what_is_no_recording_is_refused(data):
    with pytest.raises(RecordingError):
        list(read_segment(data).messages)
