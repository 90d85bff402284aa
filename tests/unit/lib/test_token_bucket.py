"""Tokens come back at a rate, up to a burst."""

from k8s_scheduler.lib.token_bucket import TokenBucket


def test_a_reservation_says_how_long_to_wait():
    bucket = TokenBucket(2.0, 2.0, 0.0)
    assert [bucket.reserve(0.0, longest_seconds=9) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]
    assert bucket.reserve(10.0, longest_seconds=9) == 0.0


def test_what_would_take_too_long_is_not_taken():
    bucket = TokenBucket(1.0, 1.0, 0.0)
    assert bucket.take(0.0)
    assert bucket.reserve(0.0, longest_seconds=0.5) is None
    assert bucket.reserve(0.0, longest_seconds=1.0) == 1.0


def test_a_clock_that_goes_back_brings_no_tokens():
    bucket = TokenBucket(1.0, 1.0, 10.0)
    assert bucket.take(10.0)
    assert not bucket.take(5.0)
