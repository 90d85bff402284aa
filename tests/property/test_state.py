"""Whatever happened, every index of the state equals a recount of the pods and nodes there are.

The histories are driven by a seeded generator: an interesting one needs many kinds of steps.
"""

import random
from collections import Counter

import msgspec
import numpy as np
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.api.selectors.labels import matches, requirements_of
from k8s_scheduler.api.selectors.types import LabelSelector
from k8s_scheduler.core.framework.dependencies import Declarations, Object, Row
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.cache import Cache, CacheError
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.terms.held_terms import TermKind, terms_of
from k8s_scheduler.core.state.terms.picked_terms import Purpose
from k8s_scheduler.core.state.volumes.user import volume_user
from tests.builders import Reading, make_pod
from tests.unit.core.state import random_pods
from tests.unit.core.state.random_pods import (
    CLAIMS,
    NAMESPACES,
    PORTS,
    PROTOCOLS,
    RESOURCES,
    random_labels,
    random_node,
    random_pod,
    random_selector,
)

STEPS = 40
NODES = ("n0", "n1", "n2", "n3")
EVERYTHING = (
    Row("allocatable/"),
    Row("requested/"),
    Row("non_zero/"),
    Row("pod_count"),
    Row("label/"),
    Row("ports"),
    Row("pods/"),
    Object(Kind.NAMESPACE),
)


class Placed:
    """What the history knows of a pod that takes room."""

    def __init__(self, pod, node, *, assumed):
        self.pod, self.node, self.assumed = pod, node, assumed

    @property
    def requests(self):
        return pod_requests(self.pod, from_status=not self.assumed)


class History:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.cache = Cache()
        self.nodes = {}
        self.pods = {}  # by uid, in the order they took their present room
        self.nominated = {}
        self.created = 0

    def run(self):
        for _ in range(STEPS):
            (step,) = self.rng.choices(list(WEIGHTS), WEIGHTS.values())
            step(self)
            check(self.cache, self.nodes, self.pods, self.nominated, self.rng)

    # Steps

    def put_node(self):
        node = random_node(self.rng, self.rng.choice(NODES))
        self.nodes[node.metadata.name] = node
        self.cache.put_node(node)

    def remove_node(self):
        name = self.rng.choice(NODES)
        self.nodes.pop(name, None)
        self.cache.remove_node(NodeName(name))

    def new_pod(self, node=""):
        self.created += 1
        # Few names: a pod is re-created under a name that is taken, as another pod.
        return random_pod(self.rng, f"p{self.created % 5}", uid=f"u{self.created}", node=node)

    def bind(self):
        pod = self.new_pod(self.rng.choice(NODES))
        self.cache.put_bound(pod)
        self.place(pod, pod.spec.node_name, assumed=False)

    def assume(self):
        name = self.rng.choice(sorted(self.nodes) or [""])
        if name:
            pod = self.new_pod()
            self.cache.assume(pod, self.cache.nodes.row_of(NodeName(name)))
            self.place(pod, name, assumed=True)

    def place(self, pod, node, *, assumed):
        self.pods.pop(pod.metadata.uid, None)
        self.pods[pod.metadata.uid] = Placed(pod, node, assumed=assumed)
        self.nominated.pop(pod.metadata.uid, None)

    def some(self, *, assumed=None):
        found = [u for u, p in self.pods.items() if assumed is None or p.assumed == assumed]
        return self.rng.choice(found) if found else None

    def forget(self):
        uid = self.some()
        if uid is None:
            return
        if self.pods[uid].assumed:
            self.cache.forget(PodUid(uid))
            del self.pods[uid]
        else:
            with pytest.raises(CacheError):
                self.cache.forget(PodUid(uid))

    def remove(self):
        uid = self.some() if self.rng.random() < 0.8 else "nobody"
        self.cache.remove_pod(PodUid(uid or "nobody"))
        self.pods.pop(uid, None)

    def see_again(self):
        """Let the watch show a pod with new facts, now and then on another node."""
        uid = self.some()
        if uid is None:
            return
        placed = self.pods[uid]
        raw = msgspec.to_builtins(placed.pod)
        if self.rng.random() < 0.7:
            random_pods.change_pod(self.rng, raw)
        node = self.rng.choice(NODES) if self.rng.random() < 0.2 else placed.node
        raw["spec"]["nodeName"] = node
        pod = msgspec.convert(raw, Pod)
        self.cache.put_bound(pod)
        if node == placed.node:
            placed.pod, placed.assumed = pod, False
        else:
            self.place(pod, node, assumed=False)

    def nominate(self):
        pod = self.new_pod()
        if self.nominated and self.rng.random() < 0.5:
            pod = self.rng.choice([pod for _, pod in self.nominated.values()])
        name = self.rng.choice(NODES)
        self.cache.nominate(pod, NodeName(name))
        self.nominated[pod.metadata.uid] = (name, pod)

    def end_nomination(self):
        uid = self.rng.choice([*self.nominated, "nobody"])
        self.cache.end_nomination(PodUid(uid))
        self.nominated.pop(uid, None)

    def place_a_nominated_pod(self):
        if self.nominated and self.nodes:
            uid = self.rng.choice(list(self.nominated))
            pod, name = self.nominated[uid][1], self.rng.choice(sorted(self.nodes))
            self.cache.assume(pod, self.cache.nodes.row_of(NodeName(name)))
            self.place(pod, name, assumed=True)


WEIGHTS = {
    History.put_node: 2,
    History.remove_node: 1,
    History.bind: 4,
    History.assume: 3,
    History.forget: 1,
    History.remove: 2,
    History.see_again: 5,
    History.nominate: 1,
    History.end_nomination: 0.5,
    History.place_a_nominated_pod: 0.5,
}


# What must hold


def check(cache, nodes, pods, nominated, rng):
    columns_are_sums(cache, nodes, pods)
    pods_are_where_they_are(cache, nodes, pods)
    ports_are_counted(cache, pods)
    selectors_count(cache, nodes, pods, rng)
    terms_are_held(cache, nodes, pods, rng)
    volumes_have_their_users(cache, nodes, pods)
    promises_are_kept(cache, nominated)


def view_of(cache, rows):
    return RowsView(
        cache,
        rows,
        reader=Reading("test", Declarations(EVERYTHING)),
        verdicts=VerdictTable(),
        delta=None,
    )


def columns_are_sums(cache, nodes, pods):
    table = cache.nodes
    assert {table.name_of(row) for row in table.present_rows().tolist()} == set(nodes)
    assert {name for _, name in table.used_rows()} == set(nodes) | {p.node for p in pods.values()}
    for row, name in table.used_rows():
        here = [p.requests for p in pods.values() if p.node == name]
        assert table.column("pod_count")[row] == len(here)
        assert table.column("non_zero/cpu")[row] == sum(r.non_zero_milli_cpu for r in here)
        assert table.column("non_zero/memory")[row] == sum(r.non_zero_memory_bytes for r in here)
        for resource in RESOURCES:
            found = table.column(f"requested/{resource}")[row]
            assert found == sum(r.amount(resource) for r in here)


def pods_are_where_they_are(cache, nodes, pods):
    assert cache.pod_count == len(pods)
    assert cache.assumed_count == sum(p.assumed for p in pods.values())
    for uid, placed in pods.items():
        assert cache.node_of(PodUid(uid)) == placed.node
        assert cache.is_assumed(PodUid(uid)) == placed.assumed
    for row, name in cache.nodes.used_rows():
        assert cache.pods_on(row) == [
            PlacedPod(p.pod, p.requests, host_ports(p.pod)) for p in pods.values() if p.node == name
        ]
    found = [(cache.nodes.name_of(row), pod, assumed) for row, pod, assumed in cache.placed_pods()]
    assert found == [(p.node, p.pod, p.assumed) for p in pods.values()]


def ports_are_counted(cache, pods):
    expected = Counter((p.node, port) for p in pods.values() for port in host_ports(p.pod))
    found = Counter()
    for protocol in PROTOCOLS:
        for port in PORTS:
            for row, addresses in cache.nodes.ports.users(protocol, port).items():
                assert addresses
                for ip, count in addresses.items():
                    assert count > 0
                    found[cache.nodes.name_of(row), (ip, protocol, port)] += count
    assert found == expected


def selectors_count(cache, nodes, pods, rng):
    rows = cache.nodes.present_rows()
    view = view_of(cache, rows)
    names = [cache.nodes.name_of(row) for row in rows.tolist()]
    # Every set is there as often as it has pods, and none is there without.
    sets = Counter(
        (p.pod.metadata.namespace, tuple(sorted((p.pod.metadata.labels or {}).items())))
        for p in pods.values()
    )
    assert np.count_nonzero(cache.pods.label_sets.match(None, ())) == len(sets)
    for _ in range(4):
        namespaces = rng.choice([None, [], ["a"], ["a", "b"], ["b", "nowhere"]])
        selector = random_selector(rng)
        requirements = requirements_of(
            None if selector is None else msgspec.convert(selector, LabelSelector)
        )
        picked = [
            p
            for p in pods.values()
            if (namespaces is None or p.pod.metadata.namespace in namespaces)
            and matches(requirements, p.pod.metadata.labels or {})
        ]
        listed = None if namespaces is None else tuple(sorted(namespaces))
        for with_terminating in (True, False):
            selection = SelectedPods(((listed, requirements),), with_terminating)
            counter = view.counter(selection)
            counts = Counter(
                p.node
                for p in picked
                if with_terminating or p.pod.metadata.deletion_timestamp is None
            )
            assert view.count_here(counter).tolist() == [counts[name] for name in names]
            for key in ("zone", "host"):
                domains = Counter()
                for name, count in counts.items():
                    labels = (nodes[name].metadata.labels or {}) if name in nodes else {}
                    if key in labels:
                        domains[labels[key]] += count
                assert by_value(view, view.count_by_domain(counter, key)) == domains


def terms_are_held(cache, nodes, pods, rng):
    rows = cache.nodes.present_rows()
    view = view_of(cache, rows)
    names = [cache.nodes.name_of(row) for row in rows.tolist()]
    held = [(p.node, term) for p in pods.values() for term in terms_of(p.pod)]
    newcomer = (rng.choice(NAMESPACES), rng.choice([{}, {"team": "red"}]), random_labels(rng))
    namespace, namespace_labels, labels = newcomer
    pod = make_pod("new").namespace(namespace).label(**labels).obj()
    terms = cache.pods.held_terms
    picking = terms.picking(*newcomer)
    assert len(picking) == len(set(picking))
    assert set(picking) == {term for _, term in held if term.picks(*newcomer)}
    picked = view.terms_picking(PodView(pod), namespace_labels)
    assert picked is terms.picked(*newcomer)
    assert len(picked) == len(picking)
    known = {key for node in nodes.values() for key in node.metadata.labels or {}}
    groups = {(purpose, key) for purpose, keys in picked.keys.items() for key in keys}
    # Keys that nodes have had may be among them, and then count nothing.
    assert groups <= set(map(group_of, picking))
    assert groups >= {(p, key) for p, key in map(group_of, picking) if key in known}
    for purpose, key in sorted(groups):
        counter = view.counter(TermHolders(picked, purpose, key))
        holders = Counter()
        for node, term in held:
            if term in picking and group_of(term) == (purpose, key):
                holders[node] += term.weight or 1
        assert view.count_here(counter).tolist() == [holders[name] for name in names]
        domains = Counter()
        for node, count in holders.items():
            value = (nodes[node].metadata.labels or {}).get(key) if node in nodes else None
            if value is not None:
                domains[value] += count
        assert by_value(view, view.count_by_domain(counter, key)) == domains


def group_of(term):
    return PURPOSES[term.kind], term.topology_key


PURPOSES = {
    TermKind.REQUIRED_AFFINITY: Purpose.NEEDING,
    TermKind.REQUIRED_ANTI_AFFINITY: Purpose.REFUSING,
    TermKind.PREFERRED_AFFINITY: Purpose.ATTRACTING,
    TermKind.PREFERRED_ANTI_AFFINITY: Purpose.REPELLING,
}


def by_value(view, sums):
    assert sums[-1] == 0
    return {view.label_value(i): int(n) for i, n in enumerate(sums[:-1].tolist()) if n}


def volumes_have_their_users(cache, nodes, pods):
    users = {uid: (p.node, volume_user(p.pod)) for uid, p in pods.items()}
    for row, name in cache.nodes.used_rows():
        expected = {uid: user for uid, (node, user) in users.items() if user and node == name}
        assert dict(cache.volumes.on(row)) == expected
    view = view_of(cache, cache.nodes.present_rows())
    for namespace in NAMESPACES:
        for claim in CLAIMS:
            using = Counter(
                p.node
                for p in pods.values()
                if p.pod.metadata.namespace == namespace
                for volume in p.pod.spec.volumes or ()
                if volume.persistent_volume_claim is not None
                and volume.persistent_volume_claim.claim_name == claim
            )
            found = cache.volumes.rows_using(namespace, claim)
            assert {cache.nodes.name_of(row): n for row, n in found.items()} == dict(using)
            present = sum(count for node, count in using.items() if node in nodes)
            assert view.users_of_claim(namespace, claim) == present


def promises_are_kept(cache, nominated):
    promises = cache.nominations
    assert len(promises) == len(nominated)
    assert promises.nodes() == tuple(sorted({node for node, _ in nominated.values()}))
    for uid, (node, _) in nominated.items():
        assert promises.node_of(PodUid(uid)) == node
    for node in NODES:
        expected = {uid: pod for uid, (name, pod) in nominated.items() if name == node}
        assert dict(promises.on(NodeName(node))) == expected


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_indexes_equal_a_recount(first):
    for seed in range(first, first + 20):
        try:
            History(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


# Trials of a row


def fresh(node, pods):
    cache = Cache()
    cache.put_node(node)
    for pod in pods:
        cache.put_bound(pod)
    return cache


def observe(cache, delta=None):
    """Return everything but ports that a plugin can see of row 0 and that pods on it make."""
    view = RowsView(
        cache,
        np.array([0]),
        reader=Reading("test", Declarations(EVERYTHING)),
        verdicts=VerdictTable(),
        delta=delta,
    )
    names = [f"requested/{r}" for r in (*RESOURCES, "nobody/has-it")]
    names += ["non_zero/cpu", "non_zero/memory", "pod_count"]
    return (
        {name: view.column(name).tolist() for name in names},
        dict(view.volume_users(0)),
        [(position, dict(users)) for position, users in view.volume_users_by_row()],
        view.count_volumes().tolist(),
    )


def ports_of(delta):
    """Return the ports that are held on the row."""
    return {
        (ip, protocol, port)
        for protocol in PROTOCOLS
        for port in PORTS
        for addresses in delta.port_users(protocol, port).values()
        for ip in addresses
    }


def placed_pod(pod):
    return PlacedPod(pod, pod_requests(pod, from_status=True), host_ports(pod))


@pytest.mark.parametrize("seed", range(100))
def test_a_trial_equals_the_row_with_the_pods_really_there(seed):
    rng = random.Random(seed)
    node = random_node(rng, "n")
    there = {f"u{i}": random_pod(rng, f"p{i}", uid=f"u{i}", node="n") for i in range(4)}
    others = {f"v{i}": random_pod(rng, f"q{i}", uid=f"v{i}", node="n") for i in range(3)}
    everybody = there | others
    cache = fresh(node, there.values())
    before = observe(cache)
    # As upstream, a port is held or it is not: who leaves takes it along, also from a twin.
    held = {port for pod in there.values() for port in host_ports(pod)}
    trials = [(cache.delta(0), set(there), held)]
    for _ in range(12):
        delta, present, held = rng.choice(trials)
        if rng.random() < 0.2:
            # A copy goes its own way from here.
            trials.append((delta.copy(), set(present), set(held)))
            continue
        uid = rng.choice(sorted(everybody))
        if uid in present:
            delta.remove(placed_pod(everybody[uid]))
            present.remove(uid)
            held -= set(host_ports(everybody[uid]))
        else:
            delta.add(placed_pod(everybody[uid]))
            present.add(uid)
            held |= set(host_ports(everybody[uid]))
        for tried, now, ports in trials:
            assert ports_of(tried) == ports
            assert observe(cache, tried) == observe(
                fresh(node, [everybody[u] for u in sorted(now)])
            )
    assert observe(cache) == before
