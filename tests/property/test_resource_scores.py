"""Resources of any size are compared and scored as Go's 64-bit numbers, in floats or not."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from k8s_scheduler.api.resources import allocatable, is_scalar, pod_requests
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins import node_resources_fit
from k8s_scheduler.core.state.amounts import column_grants
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.delta import Deltas
from tests.builders import Reading, make_node, make_pod
from tests.reference import resource_scores
from tests.unit.core.plugins.plugin_bench import made

RESOURCES = ["cpu", "memory", "ephemeral-storage", "example.com/a", "example.com/b"]
# Around the sizes at which floats stop to be exact, and where 64 bits end.
EDGES = [2**46, 2**53, 2**56, 2**62, 2**63]
small = st.integers(0, 300)
usual = st.integers(0, 2**40)
amount = st.one_of(
    small,
    usual,
    st.tuples(st.sampled_from(EDGES), st.integers(-3, 3)).map(
        lambda edge: min(edge[0] + edge[1], 2**63 - 1)
    ),
)


def quantity(resource, number):
    return f"{number}m" if resource == "cpu" else str(number)


def some(numbers):
    amounts = st.dictionaries(st.sampled_from(RESOURCES), numbers)
    return amounts.map(lambda found: {name: quantity(name, n) for name, n in found.items()})


def node_of(name, offered):
    node = make_node(name)
    node.raw["status"]["allocatable"] = {"pods": "2", **offered}
    return node.obj()


def pod_of(name, requested):
    pod = make_pod(name)
    pod.raw["spec"]["containers"] = [{"name": "c", "resources": {"requests": requested}}]
    return pod


@st.composite
def clusters(draw):
    """Return [(node, its pods)] and a newcomer; half of them have no large number at all."""
    numbers = draw(st.sampled_from([usual, small, amount, amount]))
    found = [
        (
            node_of(f"n{i}", draw(some(numbers))),
            [
                pod_of(f"n{i}-p{j}", draw(some(numbers))).on(f"n{i}").obj()
                for j in range(draw(st.integers(0, 2)))
            ],
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    return found, pod_of("newcomer", draw(some(numbers))).obj()


def cache_of(cluster, *, columns):
    """Return a cache in which so many resources, besides native ones, have a column."""
    cache = Cache()
    with patch.object(column_grants, "MOST_COLUMNS", columns):
        for node, placed in cluster:
            cache.put_node(node)
            for pod in placed:
                cache.put_bound(pod)
    return cache


def views(plugin, cluster):
    """Yield (view, which nodes it shows): all, some, and each alone; with few columns and many."""
    declared, verdicts = Declarations(plugin.depends_on), VerdictTable()
    for columns in (1, 59):
        cache = cache_of(cluster, columns=columns)
        everything = cache.nodes.present_rows()
        alone = [np.array([row]) for row in range(len(cluster))]
        for rows in (everything, everything[1:], *alone):
            view = RowsView(cache, rows, reader=Reading(plugin.name, declared), verdicts=verdicts)
            yield view, [cluster[row] for row in rows.tolist()], verdicts


def taken(placed, resource):
    total = sum(pod_requests(p, from_status=True).amount(resource) for p in placed)
    return resource_scores.wrapped(total)


def asking_many(at_least):
    """Let pods that ask for so many resources be judged as those that ask for any number."""
    return patch.object(node_resources_fit, "FEW_RESOURCES", at_least - 1)


@pytest.mark.parametrize("many", [0, 100])
@given(found=clusters())
def test_what_is_short(found, many):
    with asking_many(many):
        check_shortages(*found)


def check_shortages(cluster, pod):
    plugin = made("NodeResourcesFit")
    wanted = pod_requests(pod).amounts
    for view, nodes, verdicts in views(plugin, cluster):
        codes = plugin.filter(plugin.prepare(PodView(pod), view), view).tolist()
        for (node, placed), code in zip(nodes, codes, strict=True):
            offered = allocatable(node.status.allocatable)
            texts = ["Too many pods"] if len(placed) == 2 else []
            for name, number in wanted:
                free = resource_scores.wrapped(offered.get(name, 0) - taken(placed, name))
                if number > free:
                    texts.append(f"Insufficient {name}")
            verdict = verdicts[code] if code else None
            assert texts == ([r.text for r in verdict.reasons] if verdict else [])
            if verdict:
                fits_empty = all(number <= offered.get(name, 0) for name, number in wanted)
                assert verdict.resolvable == fits_empty


@given(clusters(), st.lists(st.booleans(), min_size=5, max_size=5), st.sampled_from([1, 59]))
def test_what_is_short_with_other_pods_there(found, come, columns):
    """Whatever a pod asks for: dry runs and promises, of one row and of several."""
    cluster, pod = found
    cache = cache_of(cluster, columns=columns)
    plugin, verdicts = made("NodeResourcesFit"), VerdictTable()
    deltas = []
    for row, comes in zip(cache.nodes.present_rows().tolist(), come, strict=False):
        delta = cache.delta(row)
        if comes:
            for other in cache.pods_on(0):
                delta.add(other)
        else:
            for other in cache.pods_on(row):
                delta.remove(other)
        deltas.append(delta)
    views = [(np.array([delta.row]), delta) for delta in deltas]
    for rows, delta in (*views, (cache.nodes.present_rows(), Deltas(deltas))):
        codes = []
        for many in (0, 100):
            view = RowsView(
                cache,
                rows,
                reader=Reading(plugin.name, Declarations(plugin.depends_on)),
                verdicts=verdicts,
                delta=delta,
            )
            with asking_many(many):
                codes.append(plugin.filter(plugin.prepare(PodView(pod), view), view).tolist())
        assert codes[0] == codes[1]


@given(
    clusters(),
    st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]),
    st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 100), min_size=1),
)
def test_how_much_is_left(found, kind, weights):
    cluster, pod = found
    shape = [(0, 10), (40, 3), (100, 7)]
    strategy = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in weights.items()],
    }
    if kind == "RequestedToCapacityRatio":
        points = [{"utilization": u, "score": score} for u, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    scaled = [(u, 10 * score) for u, score in shape]
    plugin = made("NodeResourcesFit", scoringStrategy=strategy)
    for view, nodes, _ in views(plugin, cluster):
        scores = plugin.score(plugin.pre_score(PodView(pod), view), view)
        assert scores.dtype == np.int64
        for (node, placed), score in zip(nodes, scores.tolist(), strict=True):
            everybody = [pod_requests(p, from_status=True) for p in placed] + [pod_requests(pod)]
            requested = {
                "cpu": sum(r.non_zero_milli_cpu for r in everybody),
                "memory": sum(r.non_zero_memory_bytes for r in everybody),
            }
            for name in RESOURCES[2:]:
                if everybody[-1].amount(name) or not is_scalar(name):
                    requested[name] = sum(r.amount(name) for r in everybody)
            # Sums that 64 bits don't hold are rejected before they are scored.
            assume(all(number < 2**63 for number in requested.values()))
            offered = allocatable(node.status.allocatable)
            expected = resource_scores.fit(kind, scaled, weights, requested, offered)
            note(f"{node.metadata.name}: {requested} of {offered}")
            assert score == expected


@given(
    capacity=st.one_of(st.integers(2**40, 2**58), st.integers(2**46, 2**50), amount),
    percent=st.integers(0, 100),
    off_by=st.integers(-2, 2),
    kind=st.sampled_from(["LeastAllocated", "MostAllocated"]),
)
def test_shares_that_nearly_are_whole_percents(capacity, percent, off_by, kind):
    assume(capacity)
    requested = max(0, min(capacity * percent // 100 + off_by, 2**63 - 1))
    strategy = {"type": kind, "resources": [{"name": "example.com/a"}]}
    plugin = made("NodeResourcesFit", scoringStrategy=strategy)
    node = node_of("n0", {"example.com/a": str(capacity)})
    placed, newcomer = requested - requested // 3, requested // 3
    pods = [pod_of("old", {"example.com/a": str(placed)}).on("n0").obj()]
    pod = pod_of("new", {"example.com/a": str(newcomer)}).obj()
    scored = {"example.com/a": requested} if newcomer else {}
    expected = resource_scores.fit(
        kind, (), {"example.com/a": 1}, scored, {"example.com/a": capacity}
    )
    for view, nodes, _ in views(plugin, [(node, pods)]):
        scores = plugin.score(plugin.pre_score(PodView(pod), view), view)
        assert scores.tolist() == [expected] * len(nodes)


@given(
    clusters(),
    st.lists(st.sampled_from(RESOURCES), min_size=1, max_size=4, unique=True),
)
def test_how_even_it_is(found, resources):
    cluster, pod = found
    plugin = made("NodeResourcesBalancedAllocation", resources=[{"name": n} for n in resources])
    wanted = pod_requests(pod)
    counted = [n for n in resources if wanted.amount(n) or not is_scalar(n)]
    for view, nodes, _ in views(plugin, cluster):
        term = plugin.pre_score(PodView(pod), view)
        if not any(wanted.amount(n) for n in resources):
            assert term is SKIP
            continue
        scores = plugin.score(term, view)
        assert scores.dtype == np.int64
        for (node, placed), score in zip(nodes, scores.tolist(), strict=True):
            offered = allocatable(node.status.allocatable)
            capacities = [offered.get(n, 0) for n in counted]
            before = [taken(placed, n) for n in counted]
            after = [b + wanted.amount(n) for b, n in zip(before, counted, strict=True)]
            assume(all(b >= 0 and a < 2**63 for b, a in zip(before, after, strict=True)))
            gained = resource_scores.balanced(after, capacities) - resource_scores.balanced(
                before, capacities
            )
            assert score == 50 + (50 + gained) // 2
