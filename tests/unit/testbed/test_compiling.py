import io

from testbed.compiling import Progress, elapsed


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_durations_read_as_people_say_them():
    assert [elapsed(s) for s in (0, 42.9, 60, 425)] == ["0s", "42s", "1m00s", "7m05s"]


def test_terminal_line_is_rewritten_each_second_with_the_time_elapsed(terminal):
    clock = Clock()
    progress = Progress(terminal, clock=clock)
    for now in (0.5, 1.0, 1.5, 2.1):
        clock.now = now
        progress.tick("compiled 1 of up to 3 packages")
    shown = terminal.getvalue().split("\r\x1b[K")
    assert shown == [
        "",
        "testbed: compiled 1 of up to 3 packages, 1s",
        "testbed: compiled 1 of up to 3 packages, 2s",
    ]


def test_log_gets_a_line_every_twenty_seconds_only():
    clock, log = Clock(), io.StringIO()
    progress = Progress(log, clock=clock)
    for second in range(1, 61):
        clock.now = float(second)
        progress.tick("working")
    assert log.getvalue().splitlines() == [
        "testbed: working, 20s",
        "testbed: working, 40s",
        "testbed: working, 1m00s",
    ]


def test_line_of_its_own_does_not_run_into_a_rewritten_one(terminal):
    clock = Clock()
    progress = Progress(terminal, clock=clock)
    clock.now = 5.0
    progress.tick("working")
    progress.say("done")
    assert terminal.getvalue().endswith("working, 5s\ntestbed: done\n")
