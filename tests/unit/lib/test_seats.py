"""Numbers are given out lowest first, and forgotten at the end."""

import random

from k8s_scheduler.lib.seats import Seats


def test_numbers_follow_each_other():
    seats = Seats()
    assert [seats.take() for _ in range(3)] == [0, 1, 2]
    assert len(seats) == 3


def test_the_lowest_free_number_comes_first():
    seats = Seats()
    for _ in range(5):
        seats.take()
    seats.leave(3)
    seats.leave(1)
    assert [seats.take() for _ in range(3)] == [1, 3, 5]


def test_free_numbers_at_the_end_are_forgotten():
    seats = Seats()
    for _ in range(5):
        seats.take()
    for number in (3, 1, 4):
        seats.leave(number)
    assert len(seats) == 3
    assert [seats.take(), seats.take()] == [1, 3]


def test_it_does_as_a_set_would():
    seats, taken, draw = Seats(), set(), random.Random(1)
    for _ in range(3000):
        if taken and draw.random() < 0.5:
            number = draw.choice(sorted(taken))
            taken.remove(number)
            seats.leave(number)
        else:
            number = seats.take()
            assert number == next(n for n in range(len(taken) + 1) if n not in taken)
            taken.add(number)
        assert len(seats) == max(taken, default=-1) + 1
