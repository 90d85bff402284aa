"""Whatever happened, what is kept of a shape is what would be found from scratch.

Codes of every node, every plugin's weighted score, totals, the choice, the message and what
preemption would do. Histories are in `kept_world`, driven by a seeded generator as in `test_core`;
limits are made small in most of them, so that logs overrun, groups go by counts and evaluations
are made anew.
"""

import pytest

from tests.property.kept_pods import SCHEDULERS
from tests.property.kept_tuning import TUNINGS
from tests.property.kept_world import LOOKED_AT, run

CHUNK = 54
# Seeds and steps.
HISTORIES = [(300_164, 20), (501_031, 40), (501_713, 40), (701_127, 20)]


@pytest.mark.parametrize("first", range(0, 1512, CHUNK))
def test_what_is_kept_is_what_would_be_found(first):
    asked = kept = 0
    for seed in range(first, first + CHUNK):
        # The first are those in which `test_planted_staleness` looks for mistakes.
        history = run(seed) if seed < LOOKED_AT else run(seed, steps=7)
        asked, kept = asked + history.checks, kept + history.kept
    # Otherwise there was nothing to become stale. Far from all can be kept: filters have an order
    # of their own, volumes are still to be found, limits are small.
    assert kept > 0.4 * asked


@pytest.mark.parametrize("first", range(0, 432, CHUNK))
def test_what_goes_for_all_kin_goes_for_each(first):
    akin = 0
    for seed in range(first, first + CHUNK):
        history = run(seed, has_kin=True)
        akin += history.tally["akin"]
    assert akin > 4 * CHUNK


@pytest.mark.parametrize("has_kin", [False, True], ids=["shapes", "kin"])
@pytest.mark.parametrize("first", range(0, 216, CHUNK))
def test_promises_are_counted_in_on_top_of_what_is_kept(first, has_kin):
    asked = kept = withheld = 0
    for seed in range(first, first + CHUNK):
        history = run(seed, has_kin=has_kin, has_promises=True)
        asked, kept = asked + history.checks, kept + history.kept
        withheld += history.withheld
    # Otherwise promises changed nothing that is kept.
    assert kept > 0.3 * asked
    assert withheld > CHUNK // 8


@pytest.mark.parametrize("seed", range(100_000, 100_010))
def test_long_histories(seed):
    history = run(seed, steps=60)
    assert history.checks == 122


@pytest.mark.parametrize(("seed", "steps"), HISTORIES)
def test_histories_that_once_went_wrong(seed, steps):
    """Questions that came up while an evaluation was made anew; terms that nobody filters by."""
    assert run(seed, steps=steps).checks


def test_most_answers_are_kept_ones():
    answered = repeated = 0
    for seed in range(0, 40 * len(TUNINGS), len(TUNINGS)):
        history = run(seed, scheduler=SCHEDULERS[0], volumes=False)
        answered += history.tally["answered"]
        repeated += history.tally["repeated"]
    assert answered > 0.6 * repeated
