"""InterPodAffinity by whole columns decides what it decides pod by pod and node by node."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.workloads import Namespace
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.reference import inter_pod_affinity as reference
from tests.unit.core.plugins.plugin_bench import made

TOPOLOGIES = ["zone", "rack", "host"]
# One namespace is nowhere to be found.
SPACES = ["a", "b", "c", "unknown"]

pod_labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
space_labels = st.dictionaries(st.just("team"), st.sampled_from(["x", "y"]))


def selectors(keys: list[str]):
    return st.one_of(
        st.just({}),
        st.fixed_dictionaries(
            {"matchLabels": st.dictionaries(st.sampled_from(keys), st.sampled_from(["x", "y"]))}
        ),
        st.builds(
            lambda key, operator, values: {
                "matchExpressions": [
                    {"key": key, "operator": operator, "values": values}
                    if operator in ("In", "NotIn")
                    else {"key": key, "operator": operator}
                ]
            },
            st.sampled_from(keys),
            st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
            st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=2),
        ),
    )


@st.composite
def terms(draw):
    term = {"topologyKey": draw(st.sampled_from(TOPOLOGIES))}
    if draw(st.integers(0, 9)):
        term["labelSelector"] = draw(selectors(["app", "tier"]))
    if draw(st.integers(0, 3)) == 0:
        term["namespaces"] = draw(st.lists(st.sampled_from(SPACES), max_size=2))
    if draw(st.integers(0, 3)) == 0:
        term["namespaceSelector"] = draw(selectors(["team"]))
    return term


wishes = st.fixed_dictionaries(
    {"weight": st.sampled_from([1, 5, 5, 50, 100]), "podAffinityTerm": terms()}
)


@st.composite
def pods(draw, name: str):
    pod = make_pod(name).namespace(draw(st.sampled_from(SPACES)))
    pod.label(**draw(pod_labels))
    affinity = {}
    for side in ("podAffinity", "podAntiAffinity"):
        kinds = {}
        if draw(st.integers(0, 2)) == 0:
            required = draw(st.lists(terms(), min_size=1, max_size=2))
            kinds["requiredDuringSchedulingIgnoredDuringExecution"] = required
        if draw(st.integers(0, 2)) == 0:
            preferred = draw(st.lists(wishes, min_size=1, max_size=2))
            kinds["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
        if kinds:
            affinity[side] = kinds
    if affinity:
        pod.raw["spec"]["affinity"] = affinity
    return pod.deleting() if draw(st.integers(0, 5)) == 0 else pod


@st.composite
def clusters(draw):
    found = []
    for i in range(draw(st.integers(1, 5))):
        node = make_node(f"n{i}")
        for key in TOPOLOGIES:
            if draw(st.integers(0, 4)):
                node.label(**{key: f"n{i}" if key == "host" else draw(st.sampled_from(["1", "2"]))})
        placed = [
            draw(pods(f"n{i}-p{j}")).on(f"n{i}").obj() for j in range(draw(st.integers(0, 3)))
        ]
        found.append((node.obj(), placed))
    return found


spaces_of_cluster = st.dictionaries(st.sampled_from(SPACES[:3]), space_labels)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "hardPodAffinityWeight": st.sampled_from([0, 1, 5, 100]),
        "ignorePreferredTermsOfExistingPods": st.booleans(),
    },
)


class Columns:
    """The plugin on a state."""

    def __init__(self, cluster, spaces, arguments=None):
        self.plugin = made("InterPodAffinity", **(arguments or {}))
        self.cache = Cache()
        self.verdicts = VerdictTable()
        for node, placed in cluster:
            self.cache.put_node(node)
            for pod in placed:
                self.cache.put_bound(pod)
        for name, labels in spaces.items():
            space = msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
            self.cache.objects.put(Kind.NAMESPACE, "", name, space)

    def view(self, rows=None):
        return RowsView(
            self.cache,
            self.cache.nodes.present_rows() if rows is None else np.array(rows),
            reader=Reading(self.plugin.name, Declarations(self.plugin.depends_on)),
            verdicts=self.verdicts,
        )

    def row(self, name):
        return self.cache.nodes.row_of(name)

    def prepare(self, pod):
        return self.plugin.prepare(PodView(pod), self.view())

    def rejections(self, term, rows=None):
        if term is SKIP:
            return [None] * len(self.view(rows))
        found = self.plugin.filter(term, self.view(rows)).tolist()
        verdicts = [self.verdicts[code] if code else None for code in found]
        return [v and (v.reasons[0].text, v.resolvable) for v in verdicts]

    def scores(self, pod, rows):
        view = self.view(rows)
        term = self.plugin.pre_score(PodView(pod), view)
        if term is SKIP:
            return None
        return self.plugin.normalize(self.plugin.score(term, view)).tolist()


@given(cluster=clusters(), spaces=spaces_of_cluster, newcomer=pods("new"), stray=pods("stray"))
def test_filter_equals_the_scalar_reference(cluster, spaces, newcomer, stray):
    pod = newcomer.obj()
    columns = Columns(cluster, spaces)
    # A pod on a node that is gone counts nowhere.
    columns.cache.put_bound(stray.on("gone").obj())
    expected = reference.Required(pod, cluster, spaces)
    term = columns.prepare(pod)
    assert (term is SKIP) == expected.is_skipped
    assert columns.rejections(term) == [expected.rejection(node) for node, _ in cluster]


@given(
    cluster=clusters(),
    spaces=spaces_of_cluster,
    newcomer=pods("new"),
    arguments=arguments,
    feasible=st.sets(st.integers(0, 4), min_size=1),
)
def test_scores_equal_the_scalar_reference(cluster, spaces, newcomer, arguments, feasible):
    pod = newcomer.obj()
    columns = Columns(cluster, spaces, arguments)
    kept = [cluster[i][0] for i in sorted(feasible) if i < len(cluster)] or [cluster[0][0]]
    rows = [columns.row(node.metadata.name) for node in kept]
    assert columns.scores(pod, rows) == reference.scores(
        pod,
        cluster,
        kept,
        spaces,
        hard_weight=arguments.get("hardPodAffinityWeight", 1),
        ignores_existing=arguments.get("ignorePreferredTermsOfExistingPods", False),
    )


@given(
    cluster=clusters(),
    spaces=spaces_of_cluster,
    newcomer=pods("new"),
    added=st.lists(pods("added"), max_size=2),
    position=st.integers(0, 4),
    leaving=st.integers(0, 7),
)
def test_one_pod_more_or_less(*, cluster, spaces, newcomer, added, position, leaving):
    pod = newcomer.obj()
    columns = Columns(cluster, spaces)
    term = columns.prepare(pod)
    if term is SKIP:
        # kube-scheduler does not ask a skipped plugin about added pods either.
        return
    node, placed = cluster[position % len(cluster)]
    here = columns.view([columns.row(node.metadata.name)])
    expected = reference.Required(pod, cluster, spaces)
    gone = [other for i, other in enumerate(placed) if leaving >> i & 1]
    come = [other.on(node.metadata.name).uid(f"u{i}").obj() for i, other in enumerate(added)]
    before = columns.rejections(term)
    changed = term
    for other in gone:
        changed = columns.plugin.remove_pod(changed, PodView(other), here)
        expected.count(other, node, -1)
    for other in come:
        changed = columns.plugin.add_pod(changed, PodView(other), here)
        expected.count(other, node, 1)
    wanted = [expected.rejection(each) for each, _ in cluster]
    assert columns.rejections(changed) == wanted
    row = columns.row(node.metadata.name)
    assert columns.rejections(changed, [row]) == [wanted[position % len(cluster)]]
    assert columns.rejections(term) == before, "the term at hand stays as it was"
    left = [other for other in placed if other not in gone] + come
    fresh = [(n, left if n is node else pods) for n, pods in cluster]
    again = Columns(fresh, spaces)
    assert again.rejections(again.prepare(pod)) == wanted


def without_terms(builder):
    builder.raw["spec"].pop("affinity", None)
    return builder


@given(
    cluster=clusters(),
    spaces=spaces_of_cluster,
    newcomer=pods("new"),
    added=st.lists(pods("added").map(without_terms), min_size=1, max_size=3),
    leaving=st.integers(0, 31),
    position=st.integers(0, 4),
)
def test_terms_stay_right_while_pods_come_and_go(
    *, cluster, spaces, newcomer, added, leaving, position
):
    """As long as the same terms are held: what pods without terms do is read when nodes are."""
    pod = newcomer.obj()
    columns = Columns(cluster, spaces)
    plugin, rows = columns.plugin, columns.view()
    term, wish = columns.prepare(pod), plugin.pre_score(PodView(pod), rows)
    columns.rejections(term)
    plain = [p for _, placed in cluster for p in placed if p.spec.affinity is None]
    for i, gone in enumerate(plain):
        if leaving >> i & 1:
            columns.cache.remove_pod(gone.metadata.uid)
    node = cluster[position % len(cluster)][0].metadata.name
    for i, builder in enumerate(added):
        columns.cache.put_bound(builder.on(node).uid(f"u{i}").obj())
    fresh = columns.prepare(pod)
    assert term == fresh
    assert columns.rejections(term) == columns.rejections(fresh)
    again = plugin.pre_score(PodView(pod), rows)
    if SKIP not in (wish, again):
        assert wish == again
        assert plugin.score(wish, rows).tolist() == plugin.score(again, rows).tolist()
