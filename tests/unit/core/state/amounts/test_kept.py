"""What is kept of amounts, in views: to those who declared what it is made of, and taken down."""

import numpy as np
import pytest

from k8s_scheduler.core.engine.shapes.groups import Groups
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.dependencies import Declarations, Row
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView, UndeclaredReadError
from k8s_scheduler.core.state.amounts.amounts import MANY
from k8s_scheduler.core.state.amounts.kept import RowFormula
from k8s_scheduler.core.state.amounts.names import OFFERED_AND_TAKEN, TAKEN_IN_SCORES
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod

RESOURCES = ("cpu", "memory")
FAMILIES = ("allocatable/", "requested/", "non_zero/")
FORMULAS = [
    RowFormula(
        families,
        lambda offered, taken: offered - taken,
        lambda offered, taken: [most - less for most, less in zip(offered, taken, strict=True)],
    )
    for families in (OFFERED_AND_TAKEN, TAKEN_IN_SCORES)
]


@pytest.fixture(scope="module")
def cache():
    found = Cache()
    for number in range(MANY + 2):
        found.put_node(make_node(f"n{number}").obj())
    found.put_bound(make_pod("p").on("n1").obj())
    return found


def view(cache, *columns, rows=None, reads=None, wide=False, delta=None):
    return RowsView(
        cache,
        cache.nodes.present_rows() if rows is None else rows,
        reader=Reading("test", Declarations(map(Row, columns))),
        verdicts=VerdictTable(),
        reads=reads,
        delta=delta,
    ).seen_as(wide=wide)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("wide", [False, True])
def test_whatever_it_is_made_of_is_taken_down(cache, formula, wide):
    expected, found = Reads(), Reads()
    columns = ("allocatable/", "requested/", "non_zero/")
    view(cache, *columns, reads=expected, wide=wide).block(formula.families, RESOURCES)
    assert view(cache, *columns, reads=found, wide=wide).kept(formula, RESOURCES) is not None
    assert (found.facts, found.wide_facts, found.narrow) == (
        expected.facts,
        expected.wide_facts,
        expected.narrow,
    )
    assert found.wide_facts if wide else found.narrow


@pytest.mark.parametrize(
    ("formula", "declared", "missing"),
    [
        (FORMULAS[0], "allocatable/", "requested/cpu"),
        (FORMULAS[1], "allocatable/", "non_zero/cpu"),
        (FORMULAS[1], "non_zero/", "allocatable/cpu"),
    ],
)
def test_all_it_is_made_of_has_to_be_declared(cache, formula, declared, missing):
    with pytest.raises(UndeclaredReadError, match=missing):
        view(cache, declared).kept(formula, RESOURCES)


@pytest.mark.parametrize("formula", FORMULAS)
def test_rows_in_view_are_shown_and_nobody_writes_to_them(cache, formula):
    rows = np.array([*range(MANY, -1, -1)])
    columns = ("allocatable/", "requested/", "non_zero/")
    everything, least = view(cache, *columns).kept(formula, RESOURCES)
    some, same = view(cache, *columns, rows=rows).kept(formula, RESOURCES)
    assert some.tolist() == everything[:, rows].tolist()
    assert least == same == everything.min(axis=1).tolist()
    with pytest.raises(ValueError, match="read-only"):
        everything[0, 0] = 1


def test_nothing_is_kept_for_a_few_rows_or_as_they_would_be(cache):
    columns = ("allocatable/", "requested/")
    few = np.arange(MANY - 1)
    assert view(cache, *columns, rows=few).kept(FORMULAS[0], RESOURCES) is None
    many = np.arange(MANY)
    assert view(cache, *columns, rows=many).kept(FORMULAS[0], RESOURCES) is not None
    delta = cache.delta(1)
    assert view(cache, *columns, rows=many, delta=delta).kept(FORMULAS[0], RESOURCES) is None


class TestManyResources:
    """Pods may ask for any number: what is read of them is taken down by families of columns."""

    MANY_NAMES = tuple(f"example.com/{number}" for number in range(30))

    @pytest.mark.parametrize("families", [OFFERED_AND_TAKEN, TAKEN_IN_SCORES])
    def test_reads_stay_few(self, families):
        reads = Reads()
        view(Cache(), *FAMILIES, reads=reads).block(families, self.MANY_NAMES)
        assert set(reads.narrow) <= {*FAMILIES, "pod_count"}
        assert set(families.names) <= set(reads.narrow)

    def test_whoever_declared_families_may_read_any(self):
        declared = Declarations(Row(name) for name in FAMILIES)
        for families in (OFFERED_AND_TAKEN, TAKEN_IN_SCORES):
            assert declared.cover_block(families, self.MANY_NAMES)
            assert not declared.cover_block(families, ("pods", *self.MANY_NAMES))

    def test_whoever_declared_columns_may_read_these(self):
        declared = Declarations([Row("allocatable/cpu"), Row("requested/cpu")])
        assert declared.cover_block(OFFERED_AND_TAKEN, ("cpu",))
        assert not declared.cover_block(OFFERED_AND_TAKEN, ("cpu", "memory"))
        with pytest.raises(UndeclaredReadError, match=r"requested/example\.com/0"):
            view(Cache(), "allocatable/").block(OFFERED_AND_TAKEN, self.MANY_NAMES)

    def test_rows_are_not_grouped_by_columns_that_have_no_name(self):
        with pytest.raises(NotKeptError, match="many_columns"):
            Groups(Cache()).add_keys({"allocatable/": None})
