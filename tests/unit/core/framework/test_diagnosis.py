"""The text of a pod that fits nowhere: kube-scheduler's, unless it is very long."""

import pytest

from k8s_scheduler.core.framework.diagnosis import MESSAGE_BYTES, Diagnosis
from k8s_scheduler.core.framework.reasons import Reason, Verdict


def verdict(texts):
    reasons = tuple(Reason(f"P/{number}", text) for number, text in enumerate(texts))
    return Verdict("P", reasons, resolvable=True)


def texts_of(size, letter="x"):
    """Return texts of which the list with `1 ` before each, and commas, has so many bytes."""
    count, rest = divmod(size + 2, 100)
    texts = [f"{number:04}".ljust(96, letter) for number in range(count)]
    return [*texts, *(["9999".ljust(rest - 4, letter)] if rest else [])]


@pytest.mark.parametrize("extra", [-1, 0])
def test_a_list_of_32_kib_is_shown_as_it_is(extra):
    texts = texts_of(MESSAGE_BYTES + extra)
    message = Diagnosis(node_count=1, verdicts=((verdict(texts), 1),)).message()
    listed = ", ".join(f"1 {text}" for text in texts)
    assert message == f"0/1 nodes are available: {listed}."
    assert len(listed) == MESSAGE_BYTES + extra


def test_one_byte_more_is_counted():
    texts = texts_of(MESSAGE_BYTES + 1)
    message = Diagnosis(node_count=1, verdicts=((verdict(texts), 1),)).message()
    assert message.endswith(f"{texts[-2]}, ... and 1 more.")


@pytest.mark.parametrize("letter", ["x", "é", "語"])
def test_bytes_are_counted_not_letters(letter):
    texts = texts_of(100_000, letter)
    message = Diagnosis(node_count=1, verdicts=((verdict(texts), 1),)).message()
    assert len(message.encode()) < MESSAGE_BYTES + 100
    shown = message.count(", ")
    assert message.endswith(f", ... and {len(texts) - shown} more.")


def test_what_is_said_before_nodes_are_looked_at_is_no_longer():
    texts = texts_of(100_000)
    found = Diagnosis(node_count=3, verdicts=(), pre_filter=verdict(texts)).message()
    assert found.startswith(f"0/3 nodes are available: {texts[0]}, ")
    assert " more." in found
    assert len(found) < MESSAGE_BYTES + 100
