import pytest

from testbed.waiting import eventually


class FakeTime:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def wait():
    fake = FakeTime()

    def run(predicate, timeout_seconds=1.0, message=""):
        return eventually(predicate, timeout_seconds, message, clock=fake.clock, sleep=fake.sleep)

    return run


def test_first_true_value_is_returned(wait):
    values = iter([0, "", "yes", "later"])
    assert wait(lambda: next(values)) == "yes"


def test_time_out_says_what_was_waited_for_and_what_was_seen(wait):
    with pytest.raises(AssertionError, match="not within 1 s: pod is bound; last seen: None"):
        wait(lambda: None, message="pod is bound")


def test_failing_assertion_and_missing_key_count_as_not_yet(wait):
    attempts = iter([AssertionError("not 3"), KeyError("nodeName"), None])

    def predicate():
        error = next(attempts)
        if error:
            raise error
        return True

    assert wait(predicate) is True


def test_lasting_failure_is_shown(wait):
    def predicate():
        raise KeyError("nodeName")

    with pytest.raises(AssertionError, match="nodeName"):
        wait(predicate)


def test_other_errors_are_not_swallowed(wait):
    def predicate():
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        wait(predicate)
