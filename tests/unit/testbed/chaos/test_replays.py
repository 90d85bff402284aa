from testbed.chaos.archive import read_evidence
from testbed.chaos.replays import Answer, replay_recordings


class Program:
    """A `k8s-scheduler`, and what it was asked."""

    def __init__(self, *, code=0):
        self._code = code
        self.asked = []

    def __call__(self, arguments):
        self.asked.append(arguments)
        return Answer(self._code, "decided otherwise")


def recordings(folder, *names):
    (folder / "record").mkdir()
    for name in names:
        (folder / "record" / f"{name}.tape").touch()
    return folder


def test_every_recording_is_replayed_and_checked(tmp_path):
    program = Program()
    replay_recordings(recordings(tmp_path, "a-1", "b-1"), ask=program)
    tapes = [(asked[1].rpartition("/")[2], "--check" in asked) for asked in program.asked]
    assert tapes == [("a-1.tape", True), ("b-1.tape", True)]


def test_what_came_of_it_is_evidence(tmp_path):
    program = Program(code=1)
    replay_recordings(recordings(tmp_path, "a-1"), ask=program)
    times = '"lease_seconds": 1, "write_seconds": 1, "quiet_from": 1, "ended_at": 1'
    (tmp_path / "run.json").write_text(f'{{"seed": 1, "scheduler": "s", {times}}}')
    [replayed] = read_evidence(tmp_path).replayed
    assert (replayed.process, replayed.code, replayed.words) == ("a-1", 1, "decided otherwise")
