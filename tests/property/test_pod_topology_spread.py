"""PodTopologySpread by whole columns decides what it decides pod by pod and node by node."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import TopologySpreadConstraint
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.reference import pod_topology_spread as reference
from tests.reference.pod_topology_spread import HOSTNAME, ZONE
from tests.unit.core.plugins.plugin_bench import made

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
KEYS = [ZONE, HOSTNAME, "rack"]
value = st.sampled_from(["x", "y"])
# Most pods are alike, so that there is something to count.
pairs = st.sampled_from(
    [*4 * [{"app": "x", "tier": "x"}], {"app": "x", "tier": "y"}, {"app": "y"}, {"tier": "x"}, {}]
)
wanted = st.sampled_from([*5 * [{"app": "x"}], {"tier": "x"}, {"app": "y"}, {}])
policy = st.sampled_from([None, "Honor", "Ignore"])
# Many rules meet here; each takes some luck to matter.
often = settings(max_examples=200)
rarely = st.sampled_from([False, False, False, True])


@st.composite
def selectors(draw):
    selector = {"matchLabels": draw(wanted)}
    if draw(rarely):
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
        values = draw(st.lists(value, min_size=1)) if "In" in operator else []
        expression = {"key": draw(st.sampled_from(["app", "tier"])), "operator": operator}
        selector["matchExpressions"] = [{**expression, "values": values}]
    return selector


@st.composite
def constraints(draw, action=None, *, is_default=False):
    constraint = {
        "maxSkew": draw(st.sampled_from([1, 1, 1, 2, 3])),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": action or draw(st.sampled_from([HARD, SOFT])),
        "minDomains": draw(st.sampled_from([None, None, 1, 2, 3])),
        "nodeAffinityPolicy": draw(policy),
        "nodeTaintsPolicy": draw(policy),
    }
    if not is_default:
        constraint["labelSelector"] = None if draw(rarely) else draw(selectors())
        keys = [None, None, None, ["tier"], ["tier", "other"]]
        constraint["matchLabelKeys"] = draw(st.sampled_from(keys))
    return constraint


@st.composite
def nodes(draw, name):
    node = make_node(name)
    if not draw(rarely):
        node.label(**{ZONE: draw(st.sampled_from(["a", "b", "c", ""]))})
    if not draw(rarely):
        # Nothing keeps two nodes from having the same.
        node.label(**{HOSTNAME: draw(st.sampled_from([name, name, "same"]))})
    if draw(st.booleans()):
        node.label(rack=draw(value))
    if draw(st.booleans()):
        node.label(size=draw(value))
    if draw(rarely):
        effect = draw(st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]))
        node.taint(draw(st.sampled_from(["t1", "t2"])), effect=effect)
    return node.obj()


@st.composite
def placed(draw, name, node):
    pod = make_pod(name).label(**draw(pairs)).namespace(draw(st.sampled_from(["a", "a", "a", "b"])))
    pod.on(node)
    return (pod.deleting() if draw(rarely) else pod).obj()


@st.composite
def newcomers(draw, action):
    pod = make_pod("new").label(**draw(pairs)).namespace("a")
    spec = pod.raw["spec"]
    if not draw(rarely):
        spec["topologySpreadConstraints"] = [
            draw(constraints(action)),
            *draw(st.lists(constraints(), max_size=2)),
        ]
    if draw(rarely):
        spec["nodeSelector"] = {"size": draw(value)}
    if draw(rarely):
        expression = {"key": "size", "operator": draw(st.sampled_from(["Exists", "DoesNotExist"]))}
        terms = [{"matchExpressions": [expression]}]
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }
    if draw(rarely):
        pod.tolerates("t1", operator="Exists")
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["ReplicationController", "ReplicaSet", "StatefulSet"]))
        pod.raw["metadata"]["ownerReferences"] = [
            {
                "apiVersion": draw(st.sampled_from(["v1", "apps/v1", "apps/v1"])),
                "kind": kind,
                "name": draw(st.sampled_from(["o1", "o2"])),
                "controller": draw(st.sampled_from([True, True, False])),
            }
        ]
    return pod.obj()


@st.composite
def objects(draw):
    found = []
    for i in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(
                [
                    Kind.SERVICE,
                    Kind.SERVICE,
                    Kind.REPLICATION_CONTROLLER,
                    Kind.REPLICA_SET,
                    Kind.STATEFUL_SET,
                ]
            )
        )
        by_pairs = kind in (Kind.SERVICE, Kind.REPLICATION_CONTROLLER)
        selector = draw(st.one_of(wanted if by_pairs else selectors(), st.none()))
        name = f"s{i}" if kind is Kind.SERVICE else draw(st.sampled_from(["o1", "o2"]))
        metadata = {"name": name, "namespace": draw(st.sampled_from(["a", "a", "b"]))}
        raw = {"metadata": metadata, "spec": {"selector": selector}}
        found.append((kind, msgspec.convert(raw, kind.type)))
    return found


def _what_is_spread(constraint):
    return constraint["topologyKey"], constraint["whenUnsatisfiable"]


@st.composite
def worlds(draw):
    """Return a world, and the same in the state's form with the plugin."""
    cache = Cache()
    cluster = []
    for i in range(draw(st.sampled_from([1, 3, 4, 5, 6]))):
        node = draw(nodes(f"n{i}"))
        pods = [draw(placed(f"n{i}-{j}", f"n{i}")) for j in range(draw(st.integers(0, 4)))]
        cluster.append((node, pods))
        cache.put_node(node)
        for pod in pods:
            cache.put_bound(pod)
    by_key = {(k, o.metadata.namespace, o.metadata.name): o for k, o in draw(objects())}
    for key, found in by_key.items():
        cache.objects.put(*key, found)
    some = st.lists(constraints(is_default=True), max_size=2, unique_by=_what_is_spread)
    listed = draw(st.one_of(st.none(), some))
    args = {} if listed is None else {"defaultingType": "List", "defaultConstraints": listed}
    defaults = None if listed is None else msgspec.convert(listed, list[TopologySpreadConstraint])
    world = reference.World(cluster, list(by_key.values()), defaults)
    return world, cache, made("PodTopologySpread", **args)


VERDICTS = VerdictTable()


def view(cache, plugin, rows):
    return RowsView(
        cache,
        np.array(rows, dtype=np.int64),
        reader=Reading(plugin.name, Declarations(plugin.depends_on)),
        verdicts=VERDICTS,
    )


def said(code):
    if code == 0:
        return None
    verdict = VERDICTS[code]
    (reason,) = verdict.reasons
    return reason.text, verdict.resolvable


@often
@given(found=worlds(), pod=newcomers(HARD))
def test_filter_equals_the_scalar_reference(found, pod):
    world, cache, plugin = found
    rows = view(cache, plugin, cache.nodes.present_rows())
    term = plugin.prepare(PodView(pod), rows)
    expected = reference.Filter(pod, world)
    assert (term is SKIP) == expected.is_skipped
    if term is not SKIP:
        codes = plugin.filter(term, rows).tolist()
        assert [said(code) for code in codes] == [expected.rejection(n) for n, _ in world.nodes]


@often
@given(found=worlds(), pod=newcomers(HARD), data=st.data())
def test_pods_more_or_less_on_a_row_equal_the_scalar_reference(found, pod, data):
    world, cache, plugin = found
    rows = view(cache, plugin, cache.nodes.present_rows())
    term = plugin.prepare(PodView(pod), rows)
    if term is SKIP:
        return
    before = plugin.filter(term, rows).tolist()
    row = data.draw(st.integers(0, len(world.nodes) - 1))
    node, pods = world.nodes[row]
    one = view(cache, plugin, [row])
    expected = reference.Filter(pod, world)
    changed = term
    gone = data.draw(st.lists(st.sampled_from(pods), unique_by=id)) if pods else []
    come = [data.draw(placed(f"more-{i}", f"n{row}")) for i in range(data.draw(st.integers(0, 2)))]
    for other, difference in [(p, -1) for p in gone] + [(p, 1) for p in come]:
        step = plugin.remove_pod if difference < 0 else plugin.add_pod
        changed = step(changed, PodView(other), one)
        expected.change(node, other, difference)
        assert said(int(plugin.filter(changed, one)[0])) == expected.rejection(node)
    # Terms are never changed in place.
    assert plugin.filter(term, rows).tolist() == before


@often
@given(found=worlds(), pod=newcomers(SOFT), data=st.data())
def test_scores_equal_the_scalar_reference(found, pod, data):
    world, cache, plugin = found
    everybody = range(len(world.nodes))
    kept = sorted(data.draw(st.sets(st.sampled_from(everybody), min_size=1)))
    feasible = view(cache, plugin, kept)
    expected = reference.scores(pod, world, [world.nodes[row][0] for row in kept])
    term = plugin.pre_score(PodView(pod), feasible)
    assert (term is SKIP) == (expected is None)
    if term is not SKIP:
        assert plugin.normalize(plugin.score(term, feasible)).tolist() == expected


@often
@given(found=worlds(), hard=newcomers(HARD), soft=newcomers(SOFT), data=st.data())
def test_terms_stay_right_while_pods_come_and_go(found, hard, soft, data):
    world, cache, plugin = found
    rows = view(cache, plugin, cache.nodes.present_rows())
    term, wish = plugin.prepare(PodView(hard), rows), plugin.pre_score(PodView(soft), rows)
    there = [pod for _, pods in world.nodes for pod in pods]
    for i in range(data.draw(st.integers(1, 4))):
        # What is remembered of a judgement must not outlive it.
        if term is not SKIP:
            plugin.filter(term, rows)
        if wish is not SKIP:
            plugin.score(wish, rows)
        if there and data.draw(st.booleans()):
            gone = there.pop(data.draw(st.integers(0, len(there) - 1)))
            cache.remove_pod(gone.metadata.uid)
        else:
            node = data.draw(st.sampled_from(world.nodes))[0].metadata.name
            there.append(data.draw(placed(f"more-{i}", node)))
            cache.put_bound(there[-1])
    fresh = plugin.prepare(PodView(hard), rows)
    assert term == fresh
    if term is not SKIP:
        assert plugin.filter(term, rows).tolist() == plugin.filter(fresh, rows).tolist()
    again = plugin.pre_score(PodView(soft), rows)
    assert wish == again
    if wish is not SKIP:
        assert plugin.score(wish, rows).tolist() == plugin.score(again, rows).tolist()


@often
@given(found=worlds(), pod=newcomers(HARD), data=st.data())
def test_dry_runs_start_from_what_is_there_now(found, pod, data):
    """A dry run on a term that has served before equals one on a fresh term."""
    world, cache, plugin = found
    rows = view(cache, plugin, cache.nodes.present_rows())
    term = plugin.prepare(PodView(pod), rows)
    if term is SKIP:
        return
    row = data.draw(st.integers(0, len(world.nodes) - 1))
    one = view(cache, plugin, [row])
    other = PodView(data.draw(placed("other", f"n{row}")))
    plugin.filter(plugin.remove_pod(term, other, one), one)
    node = data.draw(st.sampled_from(world.nodes))[0].metadata.name
    cache.put_bound(data.draw(placed("more", node)))
    fresh = plugin.prepare(PodView(pod), rows)
    old, new = (plugin.remove_pod(each, other, one) for each in (term, fresh))
    assert plugin.filter(old, rows).tolist() == plugin.filter(new, rows).tolist()
