"""How often a request is repeated, and after which waits."""

from k8s_scheduler.kube.errors import NotSent, TooManyRequests
from k8s_scheduler.kube.http.caller import Retries, RetryPolicy

LOST = NotSent("refused")


def busy(retry_after_seconds):
    return TooManyRequests("slow", status=429, retry_after_seconds=retry_after_seconds)


def waits(policy, *problems, uniform=0.0):
    retries = Retries(policy, lambda: uniform)
    return [retries.next_wait_seconds(problem) for problem in problems]


def test_the_first_try_counts():
    assert waits(RetryPolicy(tries=3), LOST, LOST, LOST) == [0.2, 0.4, None]


def test_waits_double_up_to_the_longest():
    policy = RetryPolicy(tries=6, first_wait_seconds=1.0, longest_wait_seconds=5.0)
    assert waits(policy, *[LOST] * 6) == [1.0, 2.0, 4.0, 5.0, 5.0, None]


def test_waits_are_stretched_by_chance():
    assert waits(RetryPolicy(tries=2), LOST, uniform=0.5) == [0.2 * 1.5]


def test_a_server_that_asks_for_more_time_gets_it_within_reason():
    policy = RetryPolicy(tries=9, longest_retry_after_seconds=30.0)
    assert waits(policy, busy(7.0), busy(0.0), busy(1e9)) == [7.0, 0.4, 30.0]


def test_the_header_can_be_ignored():
    policy = RetryPolicy(tries=9, longest_retry_after_seconds=0.0)
    assert waits(policy, busy(7.0)) == [0.2]


def test_without_a_number_of_tries_patience_is_the_limit():
    policy = RetryPolicy(tries=None, first_wait_seconds=1.0, patience_seconds=6.5)
    assert waits(policy, *[LOST] * 5) == [1.0, 2.0, 4.0, None, None]
