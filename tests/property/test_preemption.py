"""Preemption on columns and trials finds what the plain rules find, node by node."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_scheduler.api.kinds import Kind, as_text
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.preemption.evaluator import Evaluator, UnplacedCase
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.preemption import DryRunError
from k8s_scheduler.core.framework.views.pod_view import PodView
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.reference import preemption as reference
from tests.unit.core.engine.cores import FullHarness

ONE_IN_FOUR = st.sampled_from([True, False, False, False])
SMALL = st.integers(0, 2)
NAMESPACE = st.sampled_from(["default", "default", "default", "other"])


@st.composite
def small_pods(draw, name):
    pod = make_pod(name).namespace(draw(NAMESPACE))
    pod.request(cpu=draw(st.sampled_from(["0", "1", "1", "2"])))
    pod.priority(draw(st.integers(-1, 2)))
    if not draw(ONE_IN_FOUR):
        pod.label(app=draw(st.sampled_from("xxy")))
    if draw(ONE_IN_FOUR):
        pod.tolerates("k", operator="Exists")
    return pod


def take_port(draw, pod, number):
    """Give a pod a port of the node, mostly none."""
    address = draw(st.sampled_from(["", "10.0.0.1"]))
    pod.raw["spec"]["containers"][0]["ports"] = [{"hostPort": number, "hostIP": address}]


@st.composite
def small_nodes(draw, name):
    node = make_node(name).label(zone=draw(st.sampled_from("ab")))
    node.offers(cpu=draw(st.sampled_from(["2", "3", "3", "4"])), pods=str(draw(st.integers(2, 5))))
    if draw(ONE_IN_FOUR):
        node.taint("k")
    return node.obj()


@st.composite
def placed_pods(draw, node):
    """Return pods on a node that started one after the other; one may not have started."""
    count = draw(st.sampled_from([0, 2, 3, 3, 4]))
    seconds = draw(st.permutations(range(count)))
    unstarted = draw(st.integers(-3, max(count - 1, 0)))
    # No two pods of a node have the same port: who leaves would take it from both.
    holder = draw(st.integers(-4, max(count - 1, 0)))
    found = []
    for number in range(count):
        pod = draw(small_pods(f"{node}-p{number}")).on(node)
        if number == holder:
            take_port(draw, pod, 80)
        if number != unstarted:
            pod.raw["status"]["startTime"] = f"2026-01-01T00:00:0{seconds[number]}Z"
        if draw(ONE_IN_FOUR):
            pod.deleting()
            pod.raw["status"]["conditions"] = [
                {
                    "type": draw(
                        st.sampled_from(["DisruptionTarget", "DisruptionTarget", "Ready"])
                    ),
                    "status": draw(st.sampled_from(["True", "True", "True", "False"])),
                    "reason": draw(st.sampled_from([OURS, OURS, "EvictionByEvictionAPI"])),
                }
            ]
        found.append(pod.obj())
    return found


@st.composite
def budgets(draw, name):
    selector = draw(st.sampled_from([None, {}, X, X, EXISTS, EXISTS]))
    disrupted = draw(st.lists(st.sampled_from(["n0-p0", "n1-p1"]), max_size=1))
    return {
        "metadata": {"name": name, "namespace": draw(NAMESPACE)},
        "spec": {} if selector is None else {"selector": selector},
        "status": {
            "disruptionsAllowed": draw(st.sampled_from([0, 0, 1, 2])),
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }


OURS = "PreemptionByScheduler"
X = {"matchLabels": {"app": "x"}}
EXISTS = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


@st.composite
def worlds(draw):
    world = reference.World()
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        world.nodes[name] = draw(small_nodes(name))
        world.pods[name] = draw(placed_pods(name))
        world.promised[name] = []
        if draw(ONE_IN_FOUR):
            promised = draw(small_pods(f"vip{number}"))
            promised.raw["status"]["nominatedNodeName"] = name
            if draw(ONE_IN_FOUR):
                take_port(draw, promised, 80)
            world.promised[name].append(promised.obj())
    drawn = [draw(budgets(f"b{i}")) for i in range(draw(st.integers(0, 3)))]
    drawn.sort(key=lambda b: (b["metadata"]["namespace"], b["metadata"]["name"]))
    return world, drawn


@st.composite
def preemptors(draw):
    pod = draw(small_pods("preemptor")).priority(draw(st.sampled_from([0, 2, 3])))
    pod.request(cpu=draw(st.sampled_from(["1", "1500m"])))
    if draw(ONE_IN_FOUR):
        take_port(draw, pod, draw(st.sampled_from([80, 80, 81])))
    if draw(ONE_IN_FOUR):
        pod.raw["spec"]["nodeSelector"] = {"zone": draw(st.sampled_from("ab"))}
    if draw(st.booleans()):
        pod.raw["status"]["nominatedNodeName"] = draw(st.sampled_from(["n0", "n0", "n1", "gone"]))
    if draw(st.integers(0, 19)) == 7:
        pod.raw["spec"]["preemptionPolicy"] = "Never"
    return pod.obj()


def core_of(world, drawn_budgets):
    h = FullHarness()
    for name, node in world.nodes.items():
        h.node(node)
        for pod in (*world.pods[name], *world.promised[name]):
            h.pod(pod)
    for budget in drawn_budgets:
        metadata = budget["metadata"]
        parts = {part: budget[part] for part in ("spec", "status")}
        h.object(
            Kind.POD_DISRUPTION_BUDGET, metadata["name"], namespace=metadata["namespace"], **parts
        )
        world.budgets.append(
            inside(h.core).cache.objects.get(
                Kind.POD_DISRUPTION_BUDGET, metadata["namespace"], metadata["name"]
            )
        )
    return h.core


def names(pods):
    return tuple(f"{p.metadata.namespace}/{p.metadata.name}" for p in pods)


@settings(max_examples=300)
@given(drawn=worlds(), pod=preemptors())
def test_candidates_victims_and_the_pick_equal_the_reference(drawn, pod):
    world, drawn_budgets = drawn
    core = core_of(world, drawn_budgets)
    judgement = core.judge(pod)
    feasible = [
        name
        for name in world.nodes
        if reference.rejection(world, pod, name, world.pods[name]) is None
    ]
    assert list(judgement.feasible) == feasible
    if feasible:
        assert judgement.preemption is None
        return
    found = judgement.preemption
    refusal = reference.not_eligible(world, pod)
    assert found.not_eligible == refusal
    if refusal:
        assert (found.candidates, found.picks) == ({}, ())
        return
    tried = reference.try_all(world, pod)
    candidates = {n: c for n, c in tried.items() if isinstance(c, reference.Candidate)}
    assert {node: (c.victims, c.pdb_violations) for node, c in found.candidates.items()} == {
        node: (names(c.victims), c.violations) for node, c in candidates.items()
    }
    assert len(found.picks) == (1 if candidates else 0)
    assert set(found.picks) <= reference.best(candidates)


def stuck_of(core, pod, seed, at_once=1):
    profile = inside(core).profiles[pod.spec.scheduler_name]
    cache, runtime = inside(core).cache, inside(core).judge._runtime
    rows = cache.nodes.present_rows()
    nominated = Nominees(cache).counting_for(pod)
    (step,) = (step for step in profile.post_filters if step.name == "DefaultPreemption")
    filtered = runtime.run_filters(profile, PodView(pod), rows, nominated)
    case = UnplacedCase(
        profile, step, pod, rows, filtered, nominated=nominated, seed=seed, at_once=at_once
    )
    return step.plugin, Evaluator(cache, runtime, inside(core).judge._verdicts, case)


def outcome_of(stuck, node):
    try:
        return stuck.dry_run(node)
    except DryRunError as error:
        return str(error)


@settings(max_examples=300)
@given(drawn=worlds(), pod=preemptors(), at_once=st.sampled_from([2, 128]))
def test_nodes_tried_together_come_out_as_each_by_itself(drawn, pod, at_once):
    world, drawn_budgets = drawn
    core = core_of(world, drawn_budgets)
    if core.judge(pod).feasible:
        return
    _, alone = stuck_of(core, pod, 0)
    _, together = stuck_of(core, pod, 0, at_once)
    nodes = alone.nodes_with_lesser()
    assert [outcome_of(together, node) for node in nodes] == [outcome_of(alone, n) for n in nodes]
    assert together.failures == alone.failures


@settings(max_examples=200)
@given(drawn=worlds(), pod=preemptors(), seed=st.integers(0, 2**32 - 1))
def test_what_post_filter_says(drawn, pod, seed):
    world, drawn_budgets = drawn
    core = core_of(world, drawn_budgets)
    if core.judge(pod).feasible:
        return
    before = msgspec.msgpack.encode(core.checkpoint(), enc_hook=as_text)
    plugin, stuck = stuck_of(core, pod, seed)
    result = plugin.post_filter(CycleState(), pod, stuck)
    assert msgspec.msgpack.encode(core.checkpoint(), enc_hook=as_text) == before
    refusal = reference.not_eligible(world, pod)
    tried = reference.try_all(world, pod)
    candidates = {n: c for n, c in tried.items() if isinstance(c, reference.Candidate)}
    if refusal:
        assert (result.message, result.nominated) == (f"preemption: {refusal}", None)
        assert not result.clear
    elif not candidates:
        assert result.message == reference.no_candidate_text(world, tried)
        assert (result.nominated, result.clear) == (None, True)
    else:
        assert result.nominated in reference.best(candidates)
        victims = candidates[result.nominated].victims
        assert result.victims.pods == victims
        assert result.message == (
            "preemption: found a potential placement for pod on node "
            f"{result.nominated}, preempting {len(victims)} victims"
        )
        assert NodeName(result.nominated) in world.nodes
