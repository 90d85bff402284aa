"""What NodeResources plugins keep from pod to pod never shows: a large table that changes.

The same answers as from plugins that have never been asked before, about a few nodes at a time.
"""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views import RowsView
from k8s_scheduler.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from k8s_scheduler.core.plugins.node_resources_fit import NodeResourcesFit
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod

# More than any plugin works out anew rather than look for what has changed, and not a round number.
SIZE = 2101
# Every so many nodes, one has a pod from the beginning.
BUSY = 8
EXTENDED = "example.com/a"
SCORED = [{"name": "cpu"}, {"name": "memory"}]


def node_of(place, cpu, gib, extended=3):
    node = make_node(f"n{place}")
    node.raw["status"]["allocatable"] = {
        "pods": "110",
        "cpu": str(cpu),
        "memory": f"{gib}Gi",
        EXTENDED: str(extended),
    }
    return node.obj()


def pod_of(name, requests):
    pod = make_pod(name)
    pod.raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": requests}}]
    return pod


def plugins():
    return [
        NodeResourcesFit({}),
        NodeResourcesFit({"scoringStrategy": {"type": "MostAllocated", "resources": SCORED}}),
        NodeResourcesFit(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{**SCORED[0], "weight": 3}],
                }
            }
        ),
        NodeResourcesFit(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [*SCORED, {"name": EXTENDED}],
                }
            }
        ),
        NodeResourcesBalancedAllocation({}),
        # Two of them are left, or three: as the pod asks.
        NodeResourcesBalancedAllocation({"resources": [*SCORED, {"name": EXTENDED}]}),
        NodeResourcesBalancedAllocation({"resources": [{"name": EXTENDED}, SCORED[0]]}),
    ]


def answers(plugin, cache, rows, pod):
    """Return the texts of what is short on each row, and the scores."""
    verdicts = VerdictTable()
    declared = Declarations(plugin.depends_on)
    view = RowsView(cache, rows, plugin=plugin.name, declared=declared, verdicts=verdicts)
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
    # More than floats show exactly.
    st.tuples(st.just("huge"), st.integers(0, SIZE - 1), st.just(0), st.just(0)),
)
asked = st.fixed_dictionaries(
    {"cpu": st.integers(1, 20_000).map(lambda n: f"{n}m")},
    optional={"memory": st.integers(0, 2**36).map(str), EXTENDED: st.integers(1, 3).map(str)},
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
@given(st.lists(st.tuples(changes, asked), min_size=1, max_size=6))
def test_nothing_of_the_past_shows(steps):
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
