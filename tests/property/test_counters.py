"""Whatever happened, a counter says what counting afresh would say, and its log leaves nothing out.

The histories are those of `test_state`: pods come, go, get other labels and terms, terminate; nodes
come, go, come back, and get other labels; rows are used again. Counters are few enough to be
dropped all the time, and asked so seldom that much happens in between.
"""

from collections import Counter as Bag

import msgspec
import numpy as np
import pytest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.selectors.labels import requirements_of
from k8s_scheduler.api.selectors.types import LabelSelector
from k8s_scheduler.core.state.counts.concerned import ConcernIndex
from k8s_scheduler.core.state.counts.live_counters import Counters
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.counts.questions import SelectedPods, TermHolders, WeighedPods
from k8s_scheduler.core.state.terms.held_terms import terms_of
from tests.property.test_state import NODES, WEIGHTS, History, group_of
from tests.unit.core.state import random_pods
from tests.unit.core.state.random_pods import NAMESPACES, random_labels, random_selector

STEPS = 60
QUESTIONS = 10
# Nobody ever has the last one; of the second, no node may have it for a while.
KEYS = ("zone", "host", "nobody-has-it")


def random_question(rng):
    """Return something to count."""
    selections = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        raw = random_selector(rng)
        wanted = requirements_of(None if raw is None else msgspec.convert(raw, LabelSelector))
        selections.append((rng.choice([None, (), ("a",), ("a", "b"), ("b", "nowhere")]), wanted))
    if rng.random() < 0.3:
        return WeighedPods(tuple((selection, rng.randint(1, 100)) for selection in selections))
    return SelectedPods(tuple(selections), with_terminating=rng.random() < 0.5)


def times(question, pod, cache):
    """Return how often a pod counts."""
    if isinstance(question, TermHolders):
        terms = cache.pods.held_terms
        return sum(
            term.weight or 1
            for term in terms_of(pod)
            if group_of(term) == question.group
            # A term that is held again is another one.
            and terms._table.number_at[terms._table.place_of(term)] in question.picked.terms
        )
    if isinstance(question, WeighedPods):
        return sum(
            weight
            for selection, weight in question.selections
            if SelectedPods((selection,), with_terminating=True).picks(
                pod.metadata.namespace, pod.metadata.labels or {}
            )
        )
    if pod.metadata.deletion_timestamp is not None and not question.with_terminating:
        return 0
    return int(question.picks(pod.metadata.namespace, pod.metadata.labels or {}))


class Seen:
    """What a counter said, and when."""

    def __init__(self, cache, counter):
        self.version = counter.version
        self.by_row = counter.by_row.copy()
        self.by_domain = {key: counter.by_domain(key).copy() for key in KEYS}
        self.labels = {key: cache.nodes.labels.column(key).copy() for key in KEYS}


class CountedHistory(History):
    """A history with counters that are asked now and then."""

    def __init__(self, seed):
        super().__init__(seed)
        # Terms that pods really hold are learnt on the way.
        self.questions = [random_question(self.rng) for _ in range(QUESTIONS)]
        self.counters = {}
        self.seen = {}

    def run(self):
        for _ in range(STEPS):
            (step,) = self.rng.choices(list(STEP_WEIGHTS), STEP_WEIGHTS.values())
            step(self)
            if self.rng.random() < 0.3:
                self.learn()
            for question in self.rng.sample(self.questions, self.rng.randint(0, 3)):
                self.ask(question)
        for question in self.questions:
            self.ask(question)

    def terminate(self):
        """Let nothing of a pod change but that it is on its way out, or is after all not."""
        uid = self.some(assumed=False)
        if uid is not None:
            raw = msgspec.to_builtins(self.pods[uid].pod)
            leaving = raw["metadata"].get("deletionTimestamp")
            raw["metadata"]["deletionTimestamp"] = None if leaving else "2026-01-01T00:00:00Z"
            pod = self.pods[uid].pod = msgspec.convert(raw, Pod)
            self.cache.put_bound(pod)

    def hold_twice(self):
        """Let a pod come that says everything twice."""
        pod = self.new_pod(self.rng.choice(NODES))
        raw = msgspec.to_builtins(pod)
        for part in (raw["spec"].get("affinity") or {}).values():
            for name, listed in (part or {}).items():
                part[name] = 2 * (listed or [])
        pod = msgspec.convert(raw, Pod)
        self.cache.put_bound(pod)
        self.place(pod, pod.spec.node_name, assumed=False)

    def learn(self):
        """Ask what the terms that pick a newcomer are to it, instead of something else."""
        rng = self.rng
        namespace_labels = rng.choice([{}, {"team": "red"}])
        newcomer = rng.choice(NAMESPACES), namespace_labels, random_labels(rng)
        picked = self.cache.pods.held_terms.picked(*newcomer)
        groups = [(purpose, key) for purpose, keys in picked.keys.items() for key in keys]
        if groups:
            question = TermHolders(picked, *rng.choice(groups))
            if question not in self.questions:
                self.replace_question(question)

    def replace_question(self, question):
        forgotten = self.questions.pop(self.rng.randrange(QUESTIONS))
        self.counters.pop(forgotten, None)
        self.seen.pop(forgotten, None)
        self.questions.append(question)

    def ask(self, question):
        counters = self.cache.pods.counters
        # Some keep their counter for good, some get it anew each time.
        if question not in self.counters or self.rng.random() < 0.2:
            self.counters[question] = counters.get(question)
        counter = self.counters[question]
        assert counter is counters.get(question)
        if question in self.seen:
            self.catch_up(counter, self.seen[question])
        self.recount(question, counter)
        self.seen[question] = Seen(self.cache, counter)
        assert len(counters) <= Counters.LIMIT

    def recount(self, question, counter):
        expected = Bag()
        for placed in self.pods.values():
            expected[placed.node] += times(question, placed.pod, self.cache)
        table = self.cache.nodes
        by_row = {name: int(counter.by_row[row]) for row, name in table.used_rows()}
        assert by_row == {name: expected[name] for name in by_row}
        assert by_row == {name: counter.count_at(row) for row, name in table.used_rows()}
        assert int(counter.by_row.sum()) == sum(expected.values()), "free rows count nothing"
        for key in self.rng.sample(KEYS, self.rng.randint(1, len(KEYS))):
            domains = Bag()
            for name, node in self.nodes.items():
                value = (node.metadata.labels or {}).get(key)
                if value is not None:
                    domains[value] += expected[name]
            sums = counter.by_domain(key).tolist()
            assert len(sums) == table.labels.value_count + 1
            assert {table.labels.value(i): n for i, n in enumerate(sums[:-1]) if n} == +domains
            assert sums[-1] == 0
            assert counter.total(key) == sum(domains.values())
            values = [(node.metadata.labels or {}).get(key) for node in self.nodes.values()]
            having = [value for value in values if value is not None]
            in_use = table.labels.ids_in_use(key).tolist()
            assert sorted(map(table.labels.value, in_use)) == sorted(set(having))
            assert table.labels.holder_count(key) == len(having)

    def catch_up(self, counter, seen):
        """Compare what changed with what the log says."""
        touched = counter.rows_since(seen.version)
        if counter.version == seen.version:
            assert touched == []
        if touched is None:
            return
        now = Seen(self.cache, counter)
        assert set(changed(seen.by_row, now.by_row)) <= set(touched)
        for key in KEYS:
            domains = {int(now.labels[key][row]) for row in touched}
            assert set(changed(seen.by_domain[key], now.by_domain[key])) <= domains


class ComingAndGoing(CountedHistory):
    """A history in which labels and namespaces are new ones all the time, and old ones return."""

    def __init__(self, seed, monkeypatch):
        self.monkeypatch = monkeypatch
        super().__init__(seed)

    def learn(self):
        """Let other labels be in fashion, and something be asked about them."""
        fashion = self.rng.randrange(6)
        self.monkeypatch.setattr(random_pods, "KEYS", ("app", f"key-{fashion}"))
        self.monkeypatch.setattr(random_pods, "VALUES", ("x", f"v{fashion}", f"v{fashion + 1}"))
        self.monkeypatch.setattr(random_pods, "NAMESPACES", ("a", f"space-{fashion}"))
        self.replace_question(random_question(self.rng))

    def ask(self, question):
        super().ask(question)
        self.look_at_what_is_kept()

    def look_at_what_is_kept(self):
        """Find nothing that only pods had that are gone."""
        metadata = [placed.pod.metadata for placed in self.pods.values()]
        pairs = {pair for each in metadata for pair in (each.labels or {}).items()}
        sets = self.cache.pods.label_sets
        labels = sets._labels
        assert set(labels._keys) <= {key for key, _ in pairs}
        assert set(labels._ids) == {value for key, value in pairs if key in labels._keys}
        assert {labels.value(found) for found in labels._uses} == set(labels._ids)
        assert {name for _, name in sets._namespaces.items()} - {""} == {
            each.namespace for each in metadata
        }


STEP_WEIGHTS = {**WEIGHTS, CountedHistory.terminate: 2, CountedHistory.hold_twice: 1}


def changed(before, after):
    size = max(len(before), len(after))
    one, other = (np.pad(counts, (0, size - len(counts))) for counts in (before, after))
    return np.flatnonzero(one != other).tolist()


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_counters_equal_a_recount(first, monkeypatch):
    for seed in range(first, first + 40):
        # Few counters at a time, and short memories, for every other history.
        monkeypatch.setattr(Counters, "LIMIT", 3 if seed % 2 else 1024)
        monkeypatch.setattr(PodCounter, "LOGGED", 3 if seed % 3 else 1024)
        # Told of pods are all, some or none.
        monkeypatch.setattr(ConcernIndex, "TOLD", (32, 2, 0)[seed % 5 % 3])
        try:
            CountedHistory(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_counters_equal_a_recount_while_labels_come_and_go(first, monkeypatch):
    for seed in range(first, first + 30):
        monkeypatch.setattr(Counters, "LIMIT", 3 if seed % 2 else 1024)
        monkeypatch.setattr(ConcernIndex, "TOLD", (32, 2, 0)[seed % 5 % 3])
        try:
            ComingAndGoing(seed, monkeypatch).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
