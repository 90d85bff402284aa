"""The plugins of volumes by whole columns decide what they decide node by node."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.kinds import kind_named
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP, Reject, Same
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.node_volume_limits import NodeVolumeLimits
from k8s_scheduler.core.plugins.volume_binding import VolumeBinding
from k8s_scheduler.core.plugins.volume_restrictions import VolumeRestrictions
from k8s_scheduler.core.plugins.volume_zone import VolumeZone
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading
from tests.property.storage_strategies import Drawing, clusters, crowded_stocks
from tests.reference import node_volume_limits, volume_binding, volume_restrictions, volume_zone
from tests.unit.core.plugins.plugin_bench import made

SHAPES = [
    [(0, 10), (100, 0)],
    [(0, 0), (100, 10)],
    [(0, 10), (37, 3), (80, 7)],
]


class Bench:
    """A cluster and one plugin."""

    def __init__(self, cluster, plugin):
        self.plugin = plugin
        self.verdicts = VerdictTable()
        self.cache = Cache()
        for raw in cluster["nodes"]:
            self.cache.put_node(msgspec.convert(raw, Node))
        for raw in cluster["objects"]:
            self.put(raw)
        for raw in cluster["pods"]:
            self.cache.put_bound(msgspec.convert(raw, Pod))
        self.pod = view_of(cluster["pod"])

    def put(self, raw):
        kind = kind_named(raw["kind"])
        found = msgspec.convert(raw, kind.type)
        self.cache.objects.put(kind, found.metadata.namespace, found.metadata.name, found)

    def view(self, *names, delta=None):
        rows = [self.cache.nodes.row_of(name) for name in names]
        return RowsView(
            self.cache,
            np.array(rows) if names else self.cache.nodes.present_rows(),
            reader=Reading(self.plugin.name, Declarations(self.plugin.depends_on)),
            verdicts=self.verdicts,
            delta=delta,
        )

    def prepare(self):
        return self.plugin.prepare(self.pod, self.view())

    def judge(self, term, *names, delta=None):
        """Return for each node None or (texts, resolvable)."""
        codes = self.plugin.filter(term, self.view(*names, delta=delta)).tolist()
        verdicts = [self.verdicts[code] if code else None for code in codes]
        return [v and ([r.text for r in v.reasons], v.resolvable) for v in verdicts]


def view_of(raw):
    return PodView(msgspec.convert(raw, Pod))


def names_of(cluster):
    return [node["metadata"]["name"] for node in cluster["nodes"]]


def pods_on(cluster, node):
    return [p for p in cluster["pods"] if p["spec"]["nodeName"] == node["metadata"]["name"]]


def rejected_with(prepared):
    assert isinstance(prepared, Reject)
    assert not prepared.resolvable
    return prepared.reasons[0].text


def one_by_one(bench, term, cluster):
    """Judge all nodes together and each alone: it must come to the same."""
    together = bench.judge(term)
    assert together == [bench.judge(term, name)[0] for name in names_of(cluster)]
    return together


@given(cluster=clusters())
def test_volume_zone(cluster):
    bench = Bench(cluster, VolumeZone())
    prepared = bench.prepare()
    found = volume_zone.pre_filter(cluster["pod"], cluster)
    if isinstance(found, str):
        assert rejected_with(prepared) == found
        return
    said = volume_zone.constraints(found)
    if not said:
        assert prepared is SKIP
        return
    wanted = [volume_zone.rejection(said, node) for node in cluster["nodes"]]
    assert one_by_one(bench, prepared, cluster) == [w and ([w], False) for w in wanted]


@given(cluster=clusters(), data=st.data())
def test_volume_restrictions(cluster, data):
    bench = Bench(cluster, VolumeRestrictions())
    prepared = bench.prepare()
    conflicts = volume_restrictions.pre_filter(cluster["pod"], cluster)
    if isinstance(conflicts, str):
        assert rejected_with(prepared) == conflicts
        return
    if conflicts is None:
        assert prepared is SKIP
        return
    wanted = [
        volume_restrictions.rejection(cluster["pod"], pods_on(cluster, node), conflicts)
        for node in cluster["nodes"]
    ]
    assert one_by_one(bench, prepared, cluster) == [w and ([w], True) for w in wanted]
    # One pod of one node goes, another comes.
    node = data.draw(st.sampled_from(cluster["nodes"]))
    left = pods_on(cluster, node)
    exclusive = volume_restrictions.exclusive_claims(cluster["pod"], cluster)
    name = node["metadata"]["name"]
    delta = bench.cache.delta(bench.cache.nodes.row_of(name))
    if left:
        gone = left.pop(data.draw(st.integers(0, len(left) - 1)))
        delta.remove(placed_pod(bench, gone))
        prepared = bench.plugin.remove_pod(prepared, view_of(gone), bench.view(name, delta=delta))
        conflicts -= volume_restrictions.references(gone, exclusive)
    if data.draw(st.booleans()):
        come = Drawing(data.draw).pod("new", [], node=name)
        left.append(come)
        bench.cache.put_bound(msgspec.convert(come, Pod))
        delta.add(placed_pod(bench, come))
        bench.cache.remove_pod("uid-new")
        prepared = bench.plugin.add_pod(prepared, view_of(come), bench.view(name, delta=delta))
        conflicts += volume_restrictions.references(come, exclusive)
    expected = volume_restrictions.rejection(cluster["pod"], left, conflicts)
    assert bench.judge(prepared, name, delta=delta) == [expected and ([expected], True)]


def placed_pod(bench, raw):
    row = bench.cache.nodes.row_of(raw["spec"]["nodeName"])
    return next(p for p in bench.cache.pods_on(row) if p.uid == raw["metadata"]["uid"])


@given(cluster=clusters(), data=st.data())
def test_node_volume_limits(cluster, data):
    bench = Bench(cluster, NodeVolumeLimits())
    prepared = bench.prepare()
    pod = cluster["pod"]
    if node_volume_limits.is_skipped(pod):
        assert prepared is SKIP
        return
    for node in cluster["nodes"]:
        name = node["metadata"]["name"]
        left = pods_on(cluster, node)
        delta = bench.cache.delta(bench.cache.nodes.row_of(name))
        if left and data.draw(st.booleans()):
            delta.remove(placed_pod(bench, left.pop()))
        try:
            wanted = node_volume_limits.rejection(pod, node, left, cluster)
        except ValueError:
            with pytest.raises(StatusError, match=r"not owner|inline to csi"):
                bench.judge(prepared, name, delta=delta)
            continue
        found = wanted and ([wanted[0]], wanted[1])
        assert bench.judge(prepared, name, delta=delta) == [found]


@given(cluster=clusters())
def test_node_volume_limits_of_many_nodes_at_once(cluster):
    bench = Bench(cluster, NodeVolumeLimits())
    prepared = bench.prepare()
    if prepared is SKIP:
        return
    try:
        alone = [bench.judge(prepared, name)[0] for name in names_of(cluster)]
    except ValueError:
        with pytest.raises(StatusError, match=r"not owner|inline to csi"):
            bench.judge(prepared)
        return
    assert bench.judge(prepared) == alone


@given(cluster=clusters() | crowded_stocks(), shape=st.sampled_from(SHAPES))
def test_volume_binding(cluster, shape):
    arguments = {"shape": [{"utilization": u, "score": s} for u, s in shape]}
    bench = Bench(cluster, made("VolumeBinding", **arguments))
    prepared = bench.prepare()
    claims = volume_binding.pre_filter(cluster["pod"], cluster)
    if claims is None:
        assert prepared is SKIP
        return
    if isinstance(claims, str):
        assert rejected_with(prepared) == claims
        return
    try:
        found = [volume_binding.judge(claims, node, cluster) for node in cluster["nodes"]]
    except ValueError:
        with pytest.raises(StatusError, match="could not translate pv"):
            bench.judge(prepared)
        return
    wanted = [(f.reasons, False) if f.reasons else None for f in found]
    assert one_by_one(bench, prepared, cluster) == wanted
    feasible = [
        (name, f) for name, f in zip(names_of(cluster), found, strict=True) if not f.reasons
    ]
    for name, node in feasible:
        volumes = bench.plugin.volumes_on(prepared, bench.view(name))
        assert names_in(volumes.bindings) == names_in(node.bindings)
        assert names_in(volumes.provisions) == names_in(node.provisions)
    if feasible:
        view = bench.view(*(name for name, _ in feasible))
        scores = bench.plugin.score(bench.plugin.pre_score(bench.pod, view), view)
        assert scores.tolist() == [volume_binding.score(node, shape) for _, node in feasible]


def names_in(pairs):
    return [tuple(part and name_of(part) for part in pair) for pair in pairs]


def name_of(found):
    return found["metadata"]["name"] if isinstance(found, dict) else found.metadata.name


MAKERS = [lambda: made("VolumeBinding"), NodeVolumeLimits]


@given(cluster=clusters() | crowded_stocks())
def test_what_is_remembered_is_right_for_other_rows(cluster):
    """The same objects on nodes in other rows: nothing is remembered that no longer holds."""
    turned = cluster | {"nodes": cluster["nodes"][::-1]}
    for make in MAKERS:
        shared = make()
        for asked in (cluster, turned):
            assert outcome(Bench(asked, shared)) == outcome(Bench(asked, make()))


@given(cluster=clusters() | crowded_stocks(), later=clusters() | crowded_stocks(), data=st.data())
def test_what_is_remembered_is_right_after_any_change(cluster, later, data):
    """Nodes, their labels and objects change one after the other, in a cluster that lives on."""
    changes = [("nodes", raw) for raw in later["nodes"]]
    changes += [("objects", raw) for raw in later["objects"]]
    changes += [("gone", raw) for raw in cluster["objects"]]
    # Some are looked at at once, some together.
    chosen = data.draw(
        st.lists(st.tuples(st.sampled_from(changes), st.booleans()), min_size=1, max_size=6)
    )
    for make in MAKERS:
        bench = Bench(cluster, make())
        outcome(bench)
        for (change, raw), is_looked_at in chosen:
            _apply(bench, change, raw)
            if is_looked_at:
                _check_against_a_new_plugin(bench, make)
        _check_against_a_new_plugin(bench, make)


def _apply(bench, change, raw):
    if change == "nodes":
        bench.cache.put_node(msgspec.convert(raw, Node))
    elif change == "objects":
        bench.put(raw)
    else:
        metadata = raw["metadata"]
        bench.cache.objects.remove(
            kind_named(raw["kind"]), metadata.get("namespace", ""), metadata["name"]
        )


def _check_against_a_new_plugin(bench, make):
    living, found = bench.plugin, outcome(bench)
    bench.plugin = make()
    assert outcome(bench) == found
    bench.plugin = living


def outcome(bench):
    """Return what a plugin says of all nodes, and which volumes it would take on them."""
    prepared = bench.prepare()
    if prepared is SKIP or isinstance(prepared, Reject):
        return prepared
    try:
        judged = bench.judge(prepared)
    except StatusError as error:
        return str(error)
    rows = bench.cache.nodes.present_rows().tolist()
    names = [bench.cache.nodes.name_of(row) for row in rows]
    passed = [name for name, why in zip(names, judged, strict=True) if why is None]
    if not isinstance(bench.plugin, VolumeBinding) or not passed:
        return judged
    taken = [bench.plugin.volumes_on(prepared, bench.view(name)) for name in passed]
    view = bench.view(*passed)
    term = bench.plugin.pre_score(bench.pod, view)
    scores = term if isinstance(term, Same) else bench.plugin.score(term, view).tolist()
    volumes = [(names_in(found.bindings), names_in(found.provisions)) for found in taken]
    return judged, volumes, scores
