"""Memory that plugins use again and again: bounded, and given back."""

import numpy as np
import pytest

from k8s_scheduler.core.plugins.scoring import FLOATS, MASKS, Scratch


@pytest.fixture
def scratch():
    return Scratch()


def use(scratch, width, length, times=1):
    for _ in range(times):
        found = scratch.room(FLOATS, width, length)
    return found


def test_the_same_piece_is_handed_out_again(scratch):
    first = use(scratch, 3, 5000)
    assert first.shape == (3, 5000)
    assert np.shares_memory(first, use(scratch, 3, 5000))
    assert np.shares_memory(first, use(scratch, 2, 5000))


def test_kinds_have_memory_of_their_own(scratch):
    assert not np.shares_memory(use(scratch, 3, 5000), scratch.room(MASKS, 3, 5000))


def test_a_huge_piece_is_not_kept(scratch):
    use(scratch, 3, 5000)
    before = scratch.nbytes
    assert use(scratch, 300, 5000).shape == (300, 5000)
    assert scratch.nbytes == before


def test_memory_that_was_needed_once_is_given_back(scratch):
    use(scratch, 100, 5000)
    large = scratch.nbytes
    use(scratch, 3, 5000, times=3000)
    assert scratch.nbytes < large / 20


def test_memory_that_is_needed_now_and_then_is_kept(scratch):
    first = use(scratch, 100, 5000)
    for _ in range(20):
        use(scratch, 3, 5000, times=500)
        assert np.shares_memory(first, use(scratch, 100, 5000))


def test_memory_of_a_kind_that_nobody_asks_for_is_given_back(scratch):
    scratch.room(MASKS, 100, 5000)
    use(scratch, 3, 5000, times=3000)
    assert scratch.nbytes <= 8 * 3 * 5008
