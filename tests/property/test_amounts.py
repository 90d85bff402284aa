"""The block of amounts shows what nodes offer and pods take, however it is read."""

from unittest.mock import patch

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from k8s_scheduler.api.resources import Requests
from k8s_scheduler.core.state.amounts import column_grants
from k8s_scheduler.core.state.amounts.amounts import Amounts
from k8s_scheduler.core.state.amounts.kept import EXACT_BELOW, RowFormula
from k8s_scheduler.core.state.amounts.names import OFFERED_AND_TAKEN, TAKEN_IN_SCORES
from tests.reference.resource_scores import wrapped

# More than there are slots at first; a pod may also name what nobody has.
RESOURCES = ["pods", "cpu", "memory", "ephemeral-storage", *(f"example.com/{i}" for i in range(7))]
ABSENT = "example.com/absent"
ROWS = [0, 1, 2, 63, 64, 200]

amount = st.one_of(
    st.integers(0, 10),
    st.sampled_from([EXACT_BELOW - 1, EXACT_BELOW, 2**53 + 1, 2**62, 2**63 - 1]),
)
offers = st.dictionaries(st.sampled_from(RESOURCES), amount, max_size=5)
requests = st.builds(
    lambda asked, cpu, memory: Requests(tuple(asked.items()), cpu, memory),
    st.dictionaries(st.sampled_from(RESOURCES[1:]), amount, max_size=4),
    amount,
    amount,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.sampled_from(ROWS), offers),
        st.tuples(st.just("gone"), st.sampled_from(ROWS), st.none()),
        st.tuples(st.sampled_from(["comes", "goes"]), st.sampled_from(ROWS), requests),
    ),
    max_size=25,
)
# How many resources besides the native ones have a column; the usual number is more than there are.
limits = st.sampled_from([1, 2, 3, 59])
asked = st.lists(st.sampled_from([*RESOURCES, ABSENT]), min_size=1, max_size=5, unique=True)


class Model:
    """The same in dictionaries."""

    def __init__(self):
        self.offered = {}
        self.columns = {}

    def note(self, column, row, value):
        self.columns[column, row] = value

    def offer(self, row, offered):
        known = self.offered.get(row, {})
        for resource in {*known, *offered}:
            self.note(f"allocatable/{resource}", row, offered.get(resource, 0))
        self.offered[row] = offered

    def take(self, row, taken, sign):
        counted = [(f"requested/{name}", n) for name, n in taken.amounts]
        counted += [
            ("non_zero/cpu", taken.non_zero_milli_cpu),
            ("non_zero/memory", taken.non_zero_memory_bytes),
            ("pod_count", 1),
        ]
        for column, number in counted:
            before = self.columns.get((column, row), 0)
            self.note(column, row, wrapped(before + sign * number))

    def column(self, family, resource):
        if family != "allocatable" and resource == "pods":
            return "pod_count"
        if family == "non_zero" and resource not in ("cpu", "memory"):
            family = "requested"
        return f"{family}/{resource}"

    def is_small(self, resource):
        return all(
            abs(value) < EXACT_BELOW
            for (column, _), value in self.columns.items()
            if (column.partition("/")[2] or "pods") == resource
        )

    def numbers(self, row, resources):
        """Return everything that is known of some resources on a row."""
        families = ("allocatable", "requested", "non_zero")
        columns = [self.column(family, r) for family in families for r in resources]
        return tuple(self.columns.get((column, row), 0) for column in columns)

    def offering(self, resource):
        """Return how many nodes offer a resource."""
        return sum(offered.get(resource, 0) > 0 for offered in self.offered.values())


def run(chain, *, limit=59, look=lambda amounts, model: None):
    """Tell both; the number of columns is limited, and `look` is called after each step."""
    amounts, model = Amounts(), Model()
    with patch.object(column_grants, "MOST_COLUMNS", limit):
        for step in chain:
            tell(amounts, model, *step)
            look(amounts, model)
    return amounts, model


def tell(amounts, model, what, row, argument):
    amounts.reserve(row + 1)
    if what == "offer":
        changed = amounts.offer(row, argument)
        known = {n: v for n, v in model.offered.get(row, {}).items() if v}
        assert changed == (known != {n: v for n, v in argument.items() if v})
        model.offer(row, argument)
    elif what == "gone":
        amounts.offer(row, {})
        model.offer(row, {})
        del model.offered[row]
    else:
        sign = 1 if what == "comes" else -1
        amounts.take(row, argument, pods=sign)
        model.take(row, argument, sign)
    amounts.count_nodes(len(model.offered))


@given(steps, asked, limits)
def test_every_number_is_where_it_belongs(chain, resources, limit):
    amounts, model = run(chain, limit=limit)
    amounts.reserve(max(ROWS) + 1)
    resources = tuple(resources)
    layout = amounts.layout(resources)
    has_columns = amounts.with_columns(resources) == resources
    assert layout.is_small == (has_columns and all(map(model.is_small, resources)))
    for resource in (*RESOURCES, ABSENT):
        offering = [offered.get(resource, 0) > 0 for offered in model.offered.values()]
        assert amounts.layout((resource,)).is_everywhere == all(offering)
    assert layout.is_everywhere == all(
        amounts.layout((resource,)).is_everywhere for resource in resources
    )
    for families, names in (
        (TAKEN_IN_SCORES, ("non_zero", "allocatable")),
        (OFFERED_AND_TAKEN, ("allocatable", "requested")),
    ):
        columns = [[model.column(name, r) for r in resources] for name in names]
        assert families.columns(resources) == tuple(column for part in columns for column in part)
        expected = [
            [[model.columns.get((column, row), 0) for row in ROWS] for column in part]
            for part in columns
        ]
        for part, numbers in zip(columns, expected, strict=True):
            for column, found in zip(part, numbers, strict=True):
                assert amounts.column(column)[ROWS].tolist() == found
        rows = np.array(ROWS)
        many = np.tile(rows, 200)
        whole = amounts.whole(families, layout, max(ROWS) + 1, exact=True)
        assert whole[:, :, ROWS].tolist() == expected
        assert amounts.part(families, layout, rows, exact=True).tolist() == expected
        repeated = amounts.part(families, layout, many, exact=True)
        assert repeated[:, :, -len(ROWS) :].tolist() == expected
        if layout.is_small:
            for floats in (
                amounts.whole(families, layout, max(ROWS) + 1, exact=False)[:, :, ROWS],
                amounts.part(families, layout, rows, exact=False),
            ):
                assert floats.dtype == np.float64
                assert floats.tolist() == expected


def test_nobody_writes_to_the_state_through_what_is_shown():
    amounts = Amounts()
    amounts.offer(0, {"cpu": 5})
    layout = amounts.layout(("cpu",))
    assert not amounts.column("allocatable/cpu").flags.writeable
    assert not amounts.whole(OFFERED_AND_TAKEN, layout, 1, exact=True).flags.writeable


def test_asking_makes_no_slot():
    amounts = Amounts()
    before = len(amounts._slots)
    for i in range(2000):
        amounts.layout((f"example.com/{i}",))
        assert amounts.column(f"requested/example.com/{i}")[0] == 0
    assert len(amounts._slots) == before
    assert len(amounts._layouts) <= 256


def check_columns(limit):
    """Return what looks at which resources have columns."""

    def look(amounts, model):
        offered = {name for found in model.offered.values() for name, n in found.items() if n > 0}
        extended = [name for name in RESOURCES if name.startswith("example.com/")]
        held = amounts.with_columns(extended)
        waiting = offered.intersection(extended).difference(held)
        assert set(held) <= offered
        assert len(held) == min(limit, len(offered.intersection(extended)))
        # One that waits is not offered by twice as many nodes as one that has a column.
        least = min(map(model.offering, held), default=0)
        assert all(model.offering(name) < 2 * least or least == 0 for name in waiting)
        # A cell is there as long as it says something.
        for row in ROWS:
            for name, cell in amounts.cells_on(row).items():
                assert name not in held
                assert cell[0] or cell[1]
                assert cell == [
                    model.columns.get((f"{family}/{name}", row), 0)
                    for family in ("allocatable", "requested")
                ]

    return look


@given(steps, limits)
def test_columns_are_for_what_most_nodes_offer(chain, limit):
    run(chain, limit=limit, look=check_columns(limit))


@given(steps, asked, limits)
def test_rows_have_the_same_key_if_they_have_the_same_amounts(chain, resources, limit):
    """Also before and after a resource got or lost its column, as long as it is told apart."""
    seen = {}

    def look(amounts, model):
        amounts.reserve(max(ROWS) + 1)
        now = {}
        for row in ROWS:
            key, numbers = amounts.key(row, tuple(resources)), model.numbers(row, resources)
            assert seen.setdefault(key, numbers) == numbers
            assert now.setdefault(numbers, key) == key

    run(chain, limit=limit, look=look)


@given(steps, limits)
def test_nothing_is_left_when_all_are_gone(chain, limit):
    amounts, model = run(chain, limit=limit)
    with patch.object(column_grants, "MOST_COLUMNS", limit):
        for what, row, argument in reversed(chain):
            if what in ("comes", "goes"):
                tell(amounts, model, "goes" if what == "comes" else "comes", row, argument)
        for row in list(model.offered):
            tell(amounts, model, "gone", row, None)
    extended = [name for name in RESOURCES if name.startswith("example.com/")]
    assert amounts.with_columns(extended) == ()
    assert not any(amounts.cells_on(row) for row in ROWS)
    assert not any(
        amounts.column(f"{f}/{n}").any() for f in ("requested", "non_zero") for n in RESOURCES
    )
    assert not amounts._offers
    assert not amounts._large
    assert amounts._slot_count == 8


@given(steps, st.lists(requests, max_size=3), limits)
def test_a_recount_finds_what_was_counted_wrong(chain, here, limit):
    amounts, _ = run(chain, limit=limit)
    amounts.reserve(max(ROWS) + 1)
    amounts.recount(0, here)
    assert not amounts.recount(0, here)
    amounts.take(0, Requests((("example.com/0", 1),), 0, 0), pods=1)
    assert amounts.recount(0, here)
    assert not amounts.recount(0, here)


# What is kept of it. Floats must do, so that anything is kept.
KEPT_ROWS = 120
few_rows = st.sampled_from([0, 1, KEPT_ROWS - 1])
small = st.integers(0, 2**40)
writes = st.one_of(
    st.tuples(st.just("offer"), few_rows, st.tuples(small, small)),
    st.tuples(st.sampled_from(["comes", "goes"]), few_rows, st.tuples(small, small)),
    # More rows than are worked out one by one, and more writes than anybody remembers.
    st.tuples(st.just("everywhere"), st.just(0), st.tuples(small, small)),
    st.tuples(st.just("often"), few_rows, st.tuples(small, small)),
    # A row behind those that are asked about, more of them, and other resources.
    st.tuples(st.just("behind"), st.just(KEPT_ROWS), st.tuples(small, small)),
    st.tuples(st.just("grows"), st.just(0), st.tuples(small, small)),
    st.tuples(st.just("other"), few_rows, st.tuples(small, small)),
)


LAST = (("comes", KEPT_ROWS - 1, (2**39, 2**39)), True)


def both_ways(families):
    """Return a formula that shows everything it is given."""
    return RowFormula(
        families,
        lambda offered, taken: np.concatenate((offered, taken)),
        lambda offered, taken: offered + taken,
    )


def write(amounts, what, row, first, second):
    requests = Requests((("cpu", first), ("memory", second)), first + 1, second + 2)
    if what == "offer":
        amounts.offer(row, {"cpu": first, "memory": second})
    elif what in ("comes", "behind"):
        amounts.take(row, requests, pods=1)
    elif what == "goes":
        amounts.take(row, requests, pods=-1)
    elif what == "everywhere":
        for each in range(KEPT_ROWS):
            amounts.take(each, requests, pods=1)
    elif what == "often":
        for number in range(999):
            amounts.take(row, requests, pods=-1 if number % 2 else 1)
    elif what == "grows":
        amounts.reserve(10 * KEPT_ROWS)
    else:
        amounts.offer(row, {f"example.com/{first}": 1})


@example([(("often", 0, (1, 1)), False)])
@example([(("often", 1, (1, 1)), True)])
@example([(("everywhere", 0, (1, 1)), True), (("goes", 1, (1, 1)), True)])
@given(st.lists(st.tuples(writes, st.booleans()), max_size=8))
def test_what_is_kept_is_as_of_now(chain):
    amounts = Amounts()
    amounts.reserve(KEPT_ROWS + 1)
    for row in range(KEPT_ROWS):
        amounts.offer(row, {"cpu": 2**30, "memory": 2**41})
    resources = ("cpu", "memory")
    formulas = [both_ways(families) for families in (TAKEN_IN_SCORES, OFFERED_AND_TAKEN)]
    for (what, row, (first, second)), asks in [(("comes", 0, (1, 1)), True), *chain, LAST]:
        write(amounts, what, row, first, second)
        for formula in formulas if asks else ():
            kept = amounts.kept(formula, resources, KEPT_ROWS)
            block = amounts.whole(
                formula.families, amounts.layout(resources), KEPT_ROWS, exact=False
            )
            offered, taken = block[formula.families.offered], block[1 - formula.families.offered]
            # At least one of everything, where there is nothing.
            assert kept.shown.tolist() == [*np.maximum(offered, 1).tolist(), *taken.tolist()]
            for least, most, less in zip(kept.least_free, offered, taken, strict=True):
                assert all(least <= free for free in (most - less)[most > 0])


def test_nothing_is_kept_beyond_a_limit():
    amounts = Amounts()
    formula = RowFormula(TAKEN_IN_SCORES, lambda offered, _: offered, lambda offered, _: offered)
    amounts.reserve(64)
    amounts.offer(3, {"cpu": 7})
    assert amounts.kept(formula, ("cpu",), 64).shown[0, 3] == 7
    amounts.offer(4, {"cpu": EXACT_BELOW})
    assert amounts.kept(formula, ("cpu",), 64) is None
    assert Amounts().kept(formula, ("memory", "cpu"), 64) is None
