"""Every recorded decision of kube-scheduler, made again by the engine behind `evaluate`."""

import pytest

from tests.conformance.oracle.compare import Tally, describe
from tests.conformance.recorded_sets import SCENARIOS, SEQUENCES, compared

SHOWN = 3


@pytest.mark.parametrize("recorded", [SCENARIOS, SEQUENCES], ids=lambda r: r.name)
def test_every_decision_is_the_recorded_one(recorded):
    tally, examples = Tally(), []
    for decision in compared(recorded):
        parts = tally.add(decision.key, decision.want, decision.got)
        if parts and len(examples) < SHOWN:
            examples += [" ".join(decision.key), *describe(decision.want, decision.got, parts)]
    assert tally.agrees, "\n".join([*examples, *tally.table()])
    assert tally.total.total() == recorded.size
