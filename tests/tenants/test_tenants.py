"""What one tenant does costs the others no more than is promised: the table, in a small cluster.

`make tenants` does all of it, with more of everything, at 5,000 nodes, and looks at memory.
"""

import functools
import importlib
from pathlib import Path

import pytest

from tests.tenants import crowding
from tests.tenants.delays import delayed
from tests.tenants.elsewhere import ELSEWHERE
from tests.tenants.table import ROWS
from tests.tenants.tenant import NodeIs, PodIs, Tenant
from tests.tenants.world import World
from tests.tenants.yardstick import LATER_SECONDS, Finding, cost, lease_seconds

NODES = 120
TIMES = 12
# One way of each kind.
BRIEF = list({row.case: row for row in reversed(ROWS) if row.brief}.values())[::-1]
TREE = Path(__file__).parents[2]


@functools.cache
def worlds(*, raised: bool) -> tuple[World, World]:
    """Return two worlds for all rows with the same limits: each leaves them as they were."""
    return World(NODES), World(NODES)


@pytest.mark.parametrize("row", BRIEF, ids=lambda row: row.name)
def test_one_tenant_costs_others_no_more_than_is_promised(row):
    found = cost(row, *worlds(raised=row.raised), count=row.brief, times=TIMES)
    assert found.failures() == []


def test_others_wait_hardly_longer_while_many_shapes_of_one_tenant_do():
    found = delayed(World(NODES), crowding.parked("too large"), count=1000, seconds=4.0)
    # So few pods have no 99th percentile: `make tenants` looks at that.
    assert found[1] < LATER_SECONDS


class TestYardstick:
    """It sees what it has to see."""

    def test_each_thing_that_does_not_hold_is_a_failure(self):
        assert Finding("r").failures() == []
        assert "took 1.50 s" in Finding("r", longest_seconds=1.5).failures()[0]
        assert "lease" in Finding("r", raw_seconds=lease_seconds() + 1).failures()[0]
        assert "3.5 times" in Finding("r", ratios={"a": 1.0, "b": 3.5}).failures()[0]
        assert "memory" in Finding("r", memory=1.2).failures()[0]
        assert "60 ms longer" in Finding("r", delays=(0.0, 0.0, 0.06)).failures()[0]
        assert Finding("r", error="it broke").failures() == ["it broke"]

    def test_a_world_is_as_it_was_once_the_harm_is_undone(self):
        found = World(20)
        before = found.core.checkpoint()
        tenant = Tenant(found)
        for row in ROWS:
            if row.brief:
                deeds = [d for d in row.harm(3) if isinstance(d, PodIs | NodeIs)]
                tenant.do(deeds[:3])
        tenant.undo()
        after = found.core.checkpoint()
        assert {e.pod.metadata.uid for e in after.pods} == {e.pod.metadata.uid for e in before.pods}
        assert {e.name: e.node for e in after.nodes} == {e.name: e.node for e in before.nodes}
        assert after.queue == ()


@pytest.mark.parametrize("case", ELSEWHERE, ids=lambda case: case.what)
def test_what_is_no_matter_of_the_core_is_tested_where_it_is(case):
    module = case.file.removesuffix(".py").replace("/", ".")
    text = (TREE / case.file).read_text()
    assert module
    assert importlib.util.find_spec(module) is not None
    assert f"def {case.test}(" in text
