"""What one tenant's terms, constraints and labels cost: itself no more than their number, others
nothing that they notice, and nothing at all once they are gone.

Work is seen as calls of Python functions, which does not depend on the machine; where a call may do
more or less work, as the processor time of both in one run.
"""

import gc
import statistics
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.selectors.labels import pairs_of
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged, Schedule, Tick
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.counts.concerned import ConcernIndex
from k8s_scheduler.core.state.counts.live_counters import Counters
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders
from k8s_scheduler.core.state.terms.picked_terms import Purpose
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.call_counts import calls_of
from tests.inside import inside
from tests.property.kept_pods import HOST, PREFERRED, REQUIRED, SCHEDULERS, ZONE, setup

METRICS = Metrics().scheduler
EVERYWHERE = {"namespaceSelector": {}}


class Cluster:
    """A core and its nodes."""

    def __init__(self, nodes: int, **labels: str) -> None:
        profile = setup(SCHEDULERS[:1], preempts=True, keeps_evaluations=True)
        self.core = Scheduler(profile, metrics=METRICS)
        for number in range(nodes):
            own = {HOST: f"n{number}", ZONE: f"z{number % 3}"}
            node = make_node(f"n{number}").label(**own, **labels)
            self.core.handle(NodeChanged(0.0, NodeName(f"n{number}"), node.obj()))

    def put(self, pod) -> None:
        found = pod.scheduler(SCHEDULERS[0]).obj()
        self.core.handle(PodChanged(0.0, PodUid(found.metadata.uid), found))

    def drop(self, name: str) -> None:
        self.core.handle(PodChanged(0.0, PodUid(f"uid-{name}"), None))

    def decide(self, pod) -> int:
        """Return how many calls the decision takes."""
        self.put(pod)
        out = []
        calls = calls_of(lambda: out.extend(self.core.handle(Schedule(0.0, 1))))
        assert any(isinstance(instruction, Bind) for instruction in out)
        return calls

    def others(self, label: str, count: int = 6) -> int:
        """Return how many calls a decision of another tenant takes, of a shape that is known."""
        pods = [of_others(f"{label}{number}") for number in range(count)]
        return min([self.decide(pod) for pod in pods][2:])


def of_others(name: str):
    return make_pod(name).namespace("others").label(app="web").request(cpu="1m")


# Spread constraints

ACTIONS = ("ScheduleAnyway", "DoNotSchedule")


def constrained(name: str, count: int, action: str, prefix: str):
    pod = make_pod(name).label(app="x").request(cpu="1m")
    pod.raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": f"{prefix}{number}",
            "whenUnsatisfiable": action,
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        for number in range(count)
    ]
    return pod


@pytest.mark.parametrize("prefix", ["everywhere", "nowhere"])
@pytest.mark.parametrize("action", ACTIONS)
def test_the_work_for_spread_constraints_grows_as_their_number(action, prefix):
    cluster = Cluster(4, **{f"everywhere{number}": "v" for number in range(320)})
    calls = []
    for count in (80, 160, 320):
        for number in range(3):
            cluster.put(constrained(f"{count}-{number}", count, action, prefix))
            calls.append(calls_of(lambda: cluster.core.handle(Schedule(0.0, 1))))
    first, second, third = calls[0:3], calls[3:6], calls[6:9]
    for fewer, more in ((first, second), (second, third)):
        assert sum(more) < 2.3 * sum(fewer)


# Terms that pods of others hold


def expression(number: int, operator: str) -> dict:
    if operator == "NotIn":
        return {"key": "app", "operator": operator, "values": [f"v{number}"]}
    return {"key": f"k{number}", "operator": operator}


def holding(name: str, numbers: range, kind: str, operator: str, key: str = HOST):
    """Return a placed pod whose terms pick everybody."""
    terms = [
        {
            "topologyKey": key.format(number),
            "labelSelector": {"matchExpressions": [expression(number, operator)]},
            **EVERYWHERE,
        }
        for number in numbers
    ]
    wishes = [{"weight": 1 + i % 100, "podAffinityTerm": term} for i, term in enumerate(terms)]
    pod = make_pod(name).namespace("greedy").on("n0")
    held = {REQUIRED: terms} if kind == "required" else {PREFERRED: wishes}
    pod.raw["spec"]["affinity"] = {"podAntiAffinity": held}
    return pod


CASES = [
    pytest.param(kind, operator, key, one, id=f"{kind} {operator} {key} {'one' if one else 'many'}")
    for kind, operator, key, one in (
        ("required", "DoesNotExist", HOST, True),
        ("required", "DoesNotExist", HOST, False),
        ("preferred", "DoesNotExist", ZONE, True),
        ("preferred", "NotIn", HOST, False),
        ("required", "NotIn", "nobody-has-{}", True),
        ("preferred", "DoesNotExist", "nobody-has-{}", False),
    )
]


def place(cluster: Cluster, count: int, kind: str, operator: str, key: str, *, one: bool) -> list:
    parts = [range(count)] if one else [range(number, number + 1) for number in range(count)]
    for number, numbers in enumerate(parts):
        cluster.put(holding(f"greedy{number}", numbers, kind, operator, key))
    return [f"greedy{number}" for number in range(len(parts))]


@pytest.mark.parametrize(("kind", "operator", "key", "one"), CASES)
def test_held_terms_that_pick_everybody_cost_others_next_to_nothing(kind, operator, key, one):
    cluster = Cluster(8)
    before = cluster.others("before")
    # More than there are counters that are kept up to date.
    names = place(cluster, Counters.LIMIT + 500, kind, operator, key, one=one)
    first = cluster.decide(of_others("first"))
    during = cluster.others("during")
    for name in names:
        cluster.drop(name)
    cluster.others("meanwhile")
    after = cluster.others("after")
    assert during < 2 * before
    assert first < 8 * before
    assert after <= before + 5


def test_a_decision_takes_as_long_with_thousands_of_held_terms_as_with_none():
    cluster = Cluster(200)

    def took(label: str) -> float:
        found = []
        for number in range(40):
            cluster.put(of_others(f"{label}{number}"))
            started = time.process_time()
            cluster.core.handle(Schedule(0.0, 1))
            found.append(time.process_time() - started)
        return statistics.median(found)

    took("warm")
    before = took("before")
    cluster.put(holding("greedy", range(4000), "required", "DoesNotExist"))
    assert took("during") < 3 * before


def test_one_term_more_is_no_cliff():
    calls = []
    for count in (Counters.LIMIT - 1, Counters.LIMIT + 1):
        cluster = Cluster(4)
        place(cluster, count, "required", "DoesNotExist", HOST, one=True)
        calls.append(cluster.others("pod"))
    assert calls[1] <= calls[0] + 5


def test_pods_with_terms_that_come_and_go_are_not_work_for_each_shape_there_is():
    state = Cache()
    state.put_node(make_node("n0").label(**{HOST: "n0"}).obj())
    state.put_bound(holding("first", range(3), "required", "DoesNotExist").obj())
    terms = state.pods.held_terms
    work = []
    for looks in (5, 50):
        counters = []
        for number in range(looks):
            # Each is picked by a term of its own besides.
            own = make_pod(f"own{looks}-{number}").namespace("others").on("n0")
            term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": f"a{number}"}}}
            own.raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
            state.put_bound(own.obj())
        for number in range(looks):
            picked = terms.picked("others", {}, {"app": f"a{number}"})
            counter = state.pods.counters.get(TermHolders(picked, Purpose.REFUSING, HOST))
            assert counter.total(HOST) >= 4
            counters.append(counter)
        second = holding("second", range(3), "required", "DoesNotExist").obj()
        work.append(calls_of(lambda pod=second: state.put_bound(pod)))
        assert {counter.total(HOST) > 6 for counter in counters} == {True}
        state.remove_pod(PodUid("uid-second"))
    assert work[1] == work[0]


def test_terms_of_a_pending_pod_make_no_pod_of_others_dearer_for_long():
    """Counters of all pods are kept up to date for a while, and not when nobody asks."""
    state = Cache()
    state.put_node(make_node("n0").obj())
    web = ((None, pairs_of({"app": "web"})),)
    questions = [SelectedPods(((None, ()),), n) for n in (True, False)]
    everybody = [state.pods.counters.get(question) for question in questions]
    assert [counter.by_row[0] for counter in everybody] == [0, 0]
    other = state.pods.counters.get(SelectedPods(web, with_terminating=True))
    assert other.by_row[0] == 0
    count = other.IDLE + 1
    for number in range(count):
        state.put_bound(make_pod(f"p{number}").on("n0").obj())
    assert [counter.is_live for counter in (*everybody, other)] == [False, False, True]
    assert [int(counter.by_row[0]) for counter in everybody] == [count, count]
    for number in range(count):
        state.remove_pod(PodUid(f"uid-p{number}"))
        # Who is asked stays.
        assert everybody[0].by_row[0] == everybody[0].count_at(0) == count - number - 1
    assert [counter.is_live for counter in everybody] == [True, False]


def avoiding_everybody(name: str, numbers: range, kind: str):
    """Return a pod that waits: its terms pick the pods of all namespaces."""
    pod = make_pod(name).namespace("greedy").request(cpu="1m")
    terms = [
        {
            "topologyKey": HOST,
            "labelSelector": {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"}]},
            **EVERYWHERE,
        }
        for n in numbers
    ]
    wishes = [{"weight": 1 + n % 100, "podAffinityTerm": t} for n, t in enumerate(terms)]
    held = {REQUIRED: terms} if kind == "required" else {PREFERRED: wishes}
    pod.raw["spec"]["affinity"] = {"podAntiAffinity": held}
    return pod


@pytest.mark.parametrize("kind", ["required", "preferred"])
@pytest.mark.parametrize("each", [1, 100])
def test_terms_of_pods_that_wait_make_no_pod_of_others_dearer(kind, each):
    """However many there are, and however they are shared out."""
    calls = []
    for count in (0, 400):
        cluster = Cluster(4)
        for number in range(4):
            cluster.put(of_others(f"placed{number}").on(f"n{number}"))
        if kind == "preferred":
            # They are placed, and their counters are asked for by one that is not.
            cluster.put(avoiding_everybody("last", range(1), "required"))
        for number in range(0, count, each):
            cluster.put(avoiding_everybody(f"p{number}", range(number, number + each), kind))
            cluster.core.handle(Schedule(0.0, 1))
        seen = of_others("seen").on("n0")
        calls.append(calls_of(lambda pod=seen, to=cluster: to.put(pod)))
    assert calls[1] < calls[0] + 4 * ConcernIndex.TOLD


def test_counters_that_nobody_tells_are_dropped_once_nobody_asks():
    cluster = Cluster(4)
    counters = inside(cluster.core).cache.pods.counters
    cluster.put(of_others("placed").on("n0"))
    cluster.put(avoiding_everybody("p", range(200), "required"))
    cluster.core.handle(Schedule(0.0, 1))
    assert counters.readers == 1
    cluster.drop("p")
    cluster.put(of_others("next").on("n1"))
    for second in range(40):
        cluster.core.handle(Tick(float(second)))
    assert counters.readers == 0


def test_many_terms_of_one_pod_are_one_count():
    cluster = Cluster(4)
    counters = inside(cluster.core).cache.pods.counters
    before = len(counters)
    cluster.put(of_others("placed").on("n0"))
    cluster.put(avoiding_everybody("p", range(200), "required"))
    cluster.core.handle(Schedule(0.0, 1))
    assert len(counters) <= before + 2


# Memory


def traced(deed) -> int:
    """Return how many bytes a deed leaves allocated."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    deed()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


@pytest.fixture
def _tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_tracing")
@pytest.mark.parametrize("one", [True, False])
def test_memory_for_held_terms_is_given_back(one):
    state = Cache()
    state.put_node(make_node("n0").label(**{HOST: "n0"}).obj())
    parts = [range(1200)] if one else [range(number, number + 1) for number in range(1200)]
    pods = [
        holding(f"greedy{number}", numbers, "required", "DoesNotExist").obj()
        for number, numbers in enumerate(parts)
    ]

    def come() -> None:
        for pod in pods:
            state.put_bound(pod)
        picked = state.pods.held_terms.picked("others", {}, {})
        counter = state.pods.counters.get(TermHolders(picked, Purpose.REFUSING, HOST))
        assert counter.total(HOST) == len(picked) == 1200

    def go() -> None:
        for pod in pods:
            state.remove_pod(PodUid(pod.metadata.uid))

    grown = traced(come)
    left = grown + traced(go)
    assert grown < 1200 * 4096
    assert left < 0.4 * grown, "logs of bounded length, and room that will be used again"


def with_workloads(nodes: int) -> Cache:
    state = Cache()
    for number in range(nodes):
        state.put_node(make_node(f"n{number}").label(host=f"n{number}", zone="z").obj())
    return state


def count_everything(state: Cache, workloads: int) -> list[int]:
    found = []
    for number in range(workloads):
        selection = (("default",), pairs_of({"app": f"a{number}"}))
        counter = state.pods.counters.get(SelectedPods((selection,), with_terminating=False))
        found.append(counter.total("host"))
        found.append(counter.total("zone"))
    return found


def test_label_values_of_nodes_that_are_gone_are_given_back():
    state = with_workloads(100)
    for number in range(20):
        pod = make_pod(f"p{number}").label(app=f"a{number}").on(f"n{number}")
        state.put_bound(pod.obj())
    before = count_everything(state, 20)
    labels, counters = state.nodes.labels, state.pods.counters
    sizes = []
    for number in range(2000):
        name = f"passing{number}"
        state.put_node(make_node(name).label(host=name, zone="z").obj())
        if number % 100 == 0:
            assert count_everything(state, 20) == before
        state.remove_node(NodeName(name))
        if number % 500 == 499:
            sizes.append(sum(counter.nbytes for counter in counters._live.values()))
    assert labels.value_count <= 101 + labels.SPARE + 101 // 8 + 1
    assert len(labels._values) == len(labels._ids) == labels.value_count
    assert max(sizes) <= 20 * 8 * (labels.capacity + 2 * 1.2 * labels.value_count)
    assert max(sizes) < 1.5 * min(sizes)


def test_columns_of_a_node_with_many_labels_are_given_back():
    state = with_workloads(10)
    state.put_node(make_node("odd").label(**{f"k{n}": "v" for n in range(1000)}).obj())
    labels = state.nodes.labels
    for number in range(1000):
        labels.column(f"k{number}")
    epoch = labels.epoch
    state.remove_node(NodeName("odd"))
    assert labels._keys == []
    assert labels.epoch > epoch


def test_values_that_no_node_has_any_more_are_given_back():
    state = with_workloads(10)
    labels = state.nodes.labels
    epoch = labels.epoch
    for number in range(labels.SPARE + 50):
        name = f"passing{number}"
        state.put_node(make_node(name).label(host=name).obj())
        labels.column("host")
        state.remove_node(NodeName(name))
    assert labels.epoch > epoch
    assert len(labels._keys) <= 2


def test_columns_take_a_bounded_amount_of_memory(monkeypatch):
    monkeypatch.setattr(type(Cache().nodes.labels), "MAX_BYTES", 8 * 64 * 10)
    cluster = Cluster(4, **{f"everywhere{number}": "v" for number in range(40)})
    labels = inside(cluster.core).cache.nodes.labels
    cluster.put(constrained("p", 30, "ScheduleAnyway", "everywhere"))
    cluster.core.handle(Schedule(0.0, 1))
    assert len(labels._keys) > 10
    oldest = labels._keys[:2]
    cluster.others("pod")
    assert len(labels._keys) <= 10
    assert labels._keys[:2] == oldest, "what pods always ask for was asked for first"
    uses = Counter(i for key in labels._keys for i in labels.column(key).tolist() if i >= 0)
    assert uses == labels._uses


# The same of nodes


def test_a_node_with_many_labels_is_no_work_for_each_counter():
    calls = []
    for workloads in (1, 100):
        state = with_workloads(4)
        count_everything(state, workloads)
        many = make_node("odd").label(**{f"k{number}": "v" for number in range(2000)}).obj()
        calls.append(calls_of(lambda state=state, node=many: state.put_node(node)))
    assert calls[1] <= calls[0] + 10


def test_taints_of_a_node_and_tolerations_of_a_pod_do_not_multiply():
    calls = []
    for count in (100, 200):
        cluster = Cluster(3)
        node = make_node("odd").label(**{HOST: "odd"})
        pod = of_others("pod")
        for number in range(count):
            node.taint(f"k{number}", effect="PreferNoSchedule")
            pod.tolerates(f"k{number}", operator="Exists")
        cluster.core.handle(NodeChanged(0.0, NodeName("odd"), node.obj()))
        calls.append(cluster.decide(pod))
    assert calls[1] < 2.3 * calls[0]


def test_expressions_that_compare_numbers_read_each_value_once():
    calls = []
    for nodes in (20, 40):
        cluster = Cluster(nodes)
        pod = of_others("pod")
        expressions = [{"key": HOST, "operator": "Gt", "values": [str(n)]} for n in range(50)]
        preferred = [
            {"weight": 1, "preference": {"matchExpressions": [one]}} for one in expressions
        ]
        pod.raw["spec"]["affinity"] = {"nodeAffinity": {PREFERRED: preferred}}
        calls.append(cluster.decide(pod))
    # Each value is read once, not once for each expression.
    assert calls[1] < calls[0] + 200


def test_numbers_are_read_again_once_ids_mean_other_values():
    state = Cache()
    labels, numbers = state.nodes.labels, state.nodes.label_numbers
    for number in range(labels.SPARE + 20):
        state.put_node(make_node("n").label(gen=str(number)).obj())
        found, is_number = numbers.at(labels.column("gen")[:1])
        assert (int(found[0]), bool(is_number[0])) == (number, True)
    assert labels.epoch > 0
    state.put_node(make_node("n").label(gen="none").obj())
    assert not numbers.at(labels.column("gen")[:1])[1][0]
    assert not numbers.at(np.array([-1]))[1][0], "an absent label is no number"
