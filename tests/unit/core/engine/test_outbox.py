"""The outbox: one order for all that a message brings about, also where callbacks speak."""

import pytest

from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.messages.outgoing import Log, Nominate, RecordEvent, Severity
from tests.builders import make_node
from tests.unit.core.engine.sagas import SagaHarness, hold, no, send
from tests.unit.core.harness import only


def line(text: str) -> Log:
    return Log(Severity.INFO, text, {})


def texts(instructions) -> list[str]:
    return [instruction.event for instruction in instructions]


@pytest.fixture
def bench():
    bench = SagaHarness("One", "Two", "Three")
    bench.node(make_node("n1").obj())
    return bench


def test_instructions_come_in_order_and_remarks_after_them():
    out = Outbox()
    out.append(line("first"))
    out.remark(line("by the way"))
    out.append(line("second"))
    out.remark(line("also"))
    assert texts(out.drain()) == ["first", "second", "by the way", "also"]


def test_everything_is_given_once():
    out = Outbox()
    out.append(line("first"))
    out.remark(line("by the way"))
    drained = out.drain()
    assert out.drain() == []
    out.append(line("second"))
    assert texts(out.drain()) == ["second"]
    assert texts(drained) == ["first", "by the way"]


def test_a_plugin_that_fails_in_a_callback_is_told_last_and_once(bench):
    bench["One"].line("unreserve", ValueError("broken"))
    bench["Two"].line("reserve", no())
    out = send(bench, "a")
    assert len(only(RecordEvent, out)) == 1
    last = out[-1]
    assert isinstance(last, Log)
    assert last.fields["plugin"] == "One"
    assert last.fields["extension_point"] == "Unreserve"
    bench.tick()
    assert only(Log, bench.out) == [last]


def test_what_plugins_say_of_waiting_pods_is_done_after_the_message(bench):
    """A plugin that is asked about one pod lets another go: that one's steps come second."""
    bench["One"].line("permit", hold(), pod="a")
    send(bench, "a")

    def let_go(_pod):
        for uid in bench["One"].waiting.uids("One"):
            bench["One"].waiting.reject(uid, "One", "no more")

    bench["Two"].line("permit", let_go, pod="b")
    bench["Three"].line("permit", hold(), pod="b")
    out = [i for i in send(bench, "b") if not isinstance(i, Log)]
    assert [type(i) for i in out][:2] == [Nominate, RecordEvent]
    assert [i.name for i in out][:2] == ["b", "a"]
