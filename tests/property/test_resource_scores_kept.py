"""What NodeResources plugins keep from pod to pod never shows: a large table that changes.

The same answers as from plugins that have never been asked before, about a few nodes at a time.
"""

from unittest.mock import patch

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.node_resources_balanced_allocation import (
    SHIFT,
)
from k8s_scheduler.core.plugins.node_resources_fit import NodeResourcesFit
from k8s_scheduler.core.state.amounts import column_grants
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.unit.core.plugins.plugin_bench import made

# More than any plugin works out anew rather than look for what has changed, and not a round number.
SIZE = 2101
# Every so many nodes, one has a pod from the beginning.
BUSY = 8
EXTENDED = "example.com/a"
# Offered by some nodes, and at first by none.
RARE = "example.com/rare"
SCORED = [{"name": "cpu"}, {"name": "memory"}]


def node_of(place, cpu, gib, extended=3, rare=0):
    node = make_node(f"n{place}")
    node.raw["status"]["allocatable"] = {
        "pods": "110",
        "cpu": str(cpu),
        "memory": f"{gib}Gi",
        EXTENDED: str(extended),
        RARE: str(rare),
    }
    return node.obj()


def pod_of(name, requests):
    pod = make_pod(name)
    pod.raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": requests}}]
    return pod


def plugins():
    return [
        made("NodeResourcesFit"),
        made("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": SCORED}),
        made(
            "NodeResourcesFit",
            scoringStrategy={
                "type": "LeastAllocated",
                "resources": [{**SCORED[0], "weight": 3}],
            },
        ),
        made(
            "NodeResourcesFit",
            scoringStrategy={
                "type": "LeastAllocated",
                "resources": [*SCORED, {"name": EXTENDED}],
            },
        ),
        made("NodeResourcesBalancedAllocation"),
        # Two of them are left, or three: as the pod asks.
        made("NodeResourcesBalancedAllocation", resources=[*SCORED, {"name": EXTENDED}]),
        made("NodeResourcesBalancedAllocation", resources=[{"name": EXTENDED}, SCORED[0]]),
        made("NodeResourcesBalancedAllocation", resources=[{"name": RARE}, SCORED[0]]),
    ]


def answers(plugin, cache, rows, pod):
    """Return the texts of what is short on each row, and the scores."""
    verdicts = VerdictTable()
    declared = Declarations(plugin.depends_on)
    view = RowsView(cache, rows, reader=Reading(plugin.name, declared), verdicts=verdicts)
    short = []
    if isinstance(plugin, NodeResourcesFit):
        codes = plugin.filter(plugin.prepare(pod, view), view)
        short = [verdicts[code] if code else None for code in codes.tolist()]
    term = plugin.pre_score(pod, view)
    return short, None if term is SKIP else plugin.score(term, view).tolist()


changes = st.one_of(
    st.tuples(
        st.just("place"), st.integers(0, SIZE - 1), st.integers(0, 70_000), st.integers(0, 2**38)
    ),
    st.tuples(
        st.just("renew"),
        st.integers(0, (SIZE - 1) // BUSY).map(lambda n: n * BUSY),
        st.integers(1, 64),
        st.integers(1, 256),
    ),
    # So many that looking for them does not pay.
    st.tuples(st.just("fill"), st.integers(0, 1900), st.integers(30, 200), st.integers(1, 5000)),
    st.tuples(st.just("remove"), st.integers(0, SIZE - 1), st.just(0), st.just(0)),
    st.tuples(st.just("add"), st.integers(0, 3), st.integers(1, 64), st.integers(1, 256)),
    # Back to what was before one of the steps.
    st.tuples(st.just("leave"), st.integers(0, 4), st.just(0), st.just(0)),
    # A resource comes to a few nodes, or goes from the last; one that all have goes from one.
    st.tuples(st.just("rare"), st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("take"), st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)),
    # More than floats show exactly.
    st.tuples(st.just("huge"), st.integers(0, SIZE - 1), st.just(0), st.just(0)),
)
asked = st.fixed_dictionaries(
    {"cpu": st.integers(1, 20_000).map(lambda n: f"{n}m")},
    optional={
        "memory": st.integers(0, 2**36).map(str),
        EXTENDED: st.integers(1, 3).map(str),
        RARE: st.integers(1, 2).map(str),
    },
)


def change(cache, number, what):
    kind, place, first, second = what
    if kind == "place":
        pod = pod_of(f"p{number}", {"cpu": f"{first}m", "memory": str(second)})
        cache.put_bound(pod.on(f"n{place}").obj())
    elif kind == "renew":
        cache.put_node(node_of(place, first, second))
    elif kind == "fill":
        for each in range(place, place + first):
            pod = pod_of(f"p{number}-{each}", {"cpu": f"{second}m"})
            cache.put_bound(pod.on(f"n{each}").obj())
    elif kind == "leave":
        cache.remove_pod(pod_of(f"p{place}", {}).obj().metadata.uid)
    elif kind == "remove":
        cache.remove_node(f"n{place}")
    elif kind == "add":
        cache.put_node(node_of(SIZE + place, first, second))
    elif kind == "rare":
        cache.put_node(node_of(place, 4, 8, extended=3 * second, rare=first))
    elif kind == "take":
        pod = pod_of(f"p{number}", {RARE: str(first), EXTENDED: str(second)})
        cache.put_bound(pod.on(f"n{place}").obj())
    else:
        cache.put_node(node_of(place, 2**50, 2**20))


@settings(max_examples=15, deadline=None)
@example([(("renew", BUSY, 3, 5), {"cpu": "1m"})])
@example(
    [
        (("place", 1, 500, 0), {"cpu": "1m"}),
        (("leave", 0, 0, 0), {"cpu": "1m"}),
    ]
)
@example(
    [
        (("rare", 0, 2, 1), {"cpu": "1m", RARE: "1"}),
        (("take", 0, 1, 3), {"cpu": "1m", RARE: "1"}),
        (("rare", 0, 0, 1), {"cpu": "1m", RARE: "1"}),
        (("take", 1, 1, 1), {"cpu": "1m", EXTENDED: "3"}),
        (("rare", 1, 1, 0), {"cpu": "1m", RARE: "1"}),
    ]
)
@given(st.lists(st.tuples(changes, asked), min_size=1, max_size=6))
def test_nothing_of_the_past_shows(steps):
    for columns in (1, 59) if any(what[0] in ("rare", "take") for what, _ in steps) else (59,):
        with patch.object(column_grants, "MOST_COLUMNS", columns):
            check_history(steps)


def check_history(steps):
    cache = Cache()
    for place in range(SIZE):
        cache.put_node(node_of(place, 1 + place % 61, 1 + place % 97))
    for place in range(0, SIZE, BUSY):
        cache.put_bound(pod_of(f"old{place}", {"cpu": "1", "memory": "1"}).on(f"n{place}").obj())
    kept = plugins()
    for number, (what, requests) in enumerate(steps):
        # Twice before and after the change, so that everything is kept that may be.
        pod = PodView(pod_of("newcomer", requests).obj())
        for plugin in kept:
            answers(plugin, cache, cache.nodes.present_rows(), pod)
        change(cache, number, what)
        rows = cache.nodes.present_rows()
        for plugin, fresh in zip(kept, plugins(), strict=True):
            pieces = [
                answers(fresh, cache, piece, pod) for piece in np.array_split(rows, 1 + SIZE // 500)
            ]
            short = [verdict for piece in pieces for verdict in piece[0]]
            scores = (
                None if pieces[0][1] is None else [each for piece in pieces for each in piece[1]]
            )
            assert answers(plugin, cache, rows, pod) == (short, scores)
            assert answers(plugin, cache, rows, pod) == (short, scores)


def both_ways(formula, offered, taken):
    """Return what is worked out of one row, which is the same alone and among others."""
    alone = list(formula.of_one([float(n) for n in offered], [float(n) for n in taken]))
    columns = [np.array([[float(n), 1.0] for n in each]) for each in (offered, taken)]
    assert formula.of_all(*columns)[:, 0].tolist() == alone
    return alone


share = st.tuples(st.integers(1, 2**45), st.integers(0, 2**45))


@given(share, share)
def test_balance_is_the_same_alone_and_among_others(first, second):
    (shift,) = both_ways(SHIFT, *zip(first, second, strict=True))
    used = [min(taken / offered, 1.0) for offered, taken in (first, second)]
    assert shift == 150 - int((1 - abs(used[0] - used[1]) / 2) * 100)


def test_a_large_node_gets_a_whole_percentage():
    # 80 percent are left, exactly; a factor that is rounded would make it 79.
    memory, asked = 67_144_816_112_855, 13_428_963_222_571
    pod = PodView(pod_of("p", {"cpu": "5", "memory": str(asked)}).obj())
    cache = Cache()
    for place in range(SIZE):
        cache.put_node(node_of(place, 10, 1))
    plugin = made("NodeResourcesFit")
    before = answers(plugin, cache, cache.nodes.present_rows(), pod)[1]
    assert before == [(50 + 0) // 2] * SIZE
    large = node_of(1, 10, 1)
    large.status.allocatable["memory"] = str(memory)
    cache.put_node(large)
    found = answers(plugin, cache, cache.nodes.present_rows(), pod)[1]
    assert found == [before[0], (50 + 80) // 2, *before[2:]]
