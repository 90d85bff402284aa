"""What is remembered of dry runs is what a fresh search would find, whatever has happened since.

Histories as in `test_kept_evaluations`, with budgets and with pods that start. After each step the
nodes are tried for a few kinds of pods twice: with what the core remembers, and on another state
that was filled a moment ago. With a mistake planted the same histories have to fail.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.nominated import Nominees
from k8s_scheduler.core.engine.preemption import outcomes
from k8s_scheduler.core.engine.preemption.evaluator import AT_ONCE, Evaluator, UnplacedCase
from k8s_scheduler.core.engine.preemption.outcomes import Outcomes
from k8s_scheduler.core.engine.preemption.searches import Search, kind_of
from k8s_scheduler.core.engine.preemption.work import WorkLeft
from k8s_scheduler.core.framework.preemption import DryRunError, Victims
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.cache import Cache
from tests.inside import inside
from tests.property.kept_checks import Scratch, StaleError, profile_of
from tests.property.kept_pods import APPS, NAMESPACES, NODES, random_node
from tests.property.kept_world import History

SEEDS = range(240)
PLENTY = 10**9


class Trying(History):
    """A history in which nodes are tried for pods that are more important than most."""

    def __init__(self, seed: int, met: Counter[str]) -> None:
        super().__init__(seed, steps=8, preempts=True, volumes=seed % 3 == 0)
        self.met = met

    def run(self) -> None:
        steps = self.weights()
        for name in self.rng.sample(NODES, k=3):
            self.server.put_node(random_node(self.rng, name))
        if self.volumes:
            self.begin_volumes()
        for _ in range(3):
            self.place_pods()
        self.deliver()
        self.look()
        for _ in range(self.steps):
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            step(self)
            self.deliver()
            self.look()

    def weights(self) -> dict[Any, float]:
        return {**super().weights(), **MORE_STEPS}

    def change_budget(self) -> None:
        allowed = self.rng.choice([0, 0, 1])
        selector = {"matchLabels": {"app": self.rng.choice(APPS)}}
        raw = {"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}
        name = self.rng.choice("ab")
        self._change(Kind.POD_DISRUPTION_BUDGET, self.rng.choice(NAMESPACES), name, raw)

    def start_pod(self) -> None:
        pod = self.some_pod(placed=True)
        if pod is not None:
            pod["status"]["startTime"] = f"2026-01-01T00:00:0{self.rng.randint(0, 9)}Z"
            self.server.put_pod(pod)

    def look(self) -> None:
        scratch = Scratch(self.core)
        for template in self.templates[:2]:
            raw = self.replica_of(template, "probe", 0)
            raw["spec"]["priority"] = 1 + self.rng.randint(0, 1)
            pod = msgspec.convert(raw, Pod)
            other = profile_of(pod.spec.scheduler_name, preempts=True)
            fresh = tried(fresh_stuck(scratch, other, pod))
            known = tried(self.remembering(pod))
            if known != fresh:
                raise StaleError(f"remembered {known}\nfresh      {fresh}")
            self.met.update(kind for kind, _ in known.values())

    def remembering(self, pod: Pod) -> Evaluator:
        core = self.core
        profile = inside(core).profiles[pod.spec.scheduler_name]
        kind = kind_of(profile, QueuedPod(pod, timestamp=0.0))
        search = Counting(inside(core).post_filter.searches.memory.of(kind), WorkLeft(PLENTY))
        search.met = self.met
        return stuck_of(inside(core).cache, inside(core).judge, profile, pod, search)


MORE_STEPS: dict[Any, float] = {
    Trying.change_budget: 4,
    Trying.start_pod: 3,
    Trying.promise: 4,
}


class Counting(Search):
    """A search that tells how often it knew."""

    met: Counter[str]

    def recall(self, *asked: Any) -> Any:
        found = Search.recall(self, *asked)
        self.met["remembered"] += found is not None
        self.met["tried"] += found is None
        return found


def fresh_stuck(scratch: Scratch, profile: Profile, pod: Pod) -> Evaluator:
    return stuck_of(scratch._state, scratch, profile, pod, None)


def stuck_of(
    state: Cache, tools: Any, profile: Profile, pod: Pod, search: Search | None
) -> Evaluator:
    rows = state.nodes.present_rows()
    nominated = Nominees(state).counting_for(pod)
    runtime = tools._runtime
    (step,) = (step for step in profile.post_filters if step.preempts)
    filtered = runtime.run_filters(profile, PodView(pod), rows, nominated)
    # Which nodes come next is known only of a pod that none takes.
    at_once = 1 if len(filtered.feasible) else AT_ONCE
    case = UnplacedCase(
        profile, step, pod, rows, filtered, nominated=nominated, seed=0, at_once=at_once
    )
    return Evaluator(state, runtime, tools._verdicts, case, search=search)


def tried(stuck: Evaluator) -> dict[str, tuple[str, Any]]:
    """Return what comes of every node, resolvable or not."""
    found: dict[str, tuple[str, Any]] = {}
    nodes = stuck._state.nodes
    for row in stuck._rows.tolist():
        name = NodeName(nodes.name_of(row))
        try:
            outcome = stuck.dry_run(name)
        except DryRunError as error:
            found[name] = ("error", str(error))
            continue
        if isinstance(outcome, Victims):
            leaving = [pod.metadata.uid for pod in outcome.pods]
            started = [pod.status.start_time for pod in outcome.pods]
            found[name] = ("victims", (leaving, started, outcome.pdb_violations))
        else:
            found[name] = ("verdict", str(outcome))
    return found


def run_all(seeds: Iterable[int]) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        try:
            Trying(seed, met).run()
        except StaleError as error:
            error.add_note(f"seed {seed}")
            raise
    return met


@pytest.mark.parametrize("first", range(0, SEEDS.stop, 80))
def test_remembered_outcomes_are_those_of_a_fresh_search(first):
    met = run_all(range(first, first + 80))
    assert met["victims"] > 100
    assert met["verdict"] > 100
    # It is no use if nothing is ever remembered.
    assert met["remembered"] > met["tried"] / 4


def keeps_rows(monkeypatch):
    monkeypatch.setattr(Outcomes, "_forget", lambda *_: None)


def keeps_counts(monkeypatch):
    original = Outcomes._counts_near
    monkeypatch.setattr(Outcomes, "_counts_near", lambda *a: original(*a) * 0)


def keeps_terms(monkeypatch):
    monkeypatch.setattr(outcomes, "are_equal", lambda *_: True)


def keeps_pods(monkeypatch):
    monkeypatch.setattr(Cache, "pods_version", lambda *_: 0)


def keeps_budgets(monkeypatch):
    original = Outcomes._with_inputs
    monkeypatch.setattr(Outcomes, "_with_inputs", lambda *a: original(*a)._replace(budgets=()))


@pytest.mark.parametrize(
    ("plant", "first"),
    [
        (keeps_rows, 0),
        (keeps_counts, 170),
        (keeps_terms, 60),
        (keeps_pods, 25),
        (keeps_budgets, 90),
    ],
)
def test_a_planted_mistake_is_found(plant, first, monkeypatch):
    """Where it was found once is only where the hunt begins: histories may change."""
    plant(monkeypatch)
    with pytest.raises(StaleError):
        run_all([*range(first, SEEDS.stop), *range(first)])
