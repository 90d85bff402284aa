"""Pods of one spec: which of them are of one shape, though their labels differ.

Every pod of a StatefulSet has a label of its own, and none is judged differently for it. What
plugins asked about a pod's labels is known; pods that give the same answers share an evaluation.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.label_selectors import matches
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.shapes.evaluation import Evaluation
from k8s_scheduler.core.framework.pod_view import Questions
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.held_terms import PodTerm

Answers = tuple[Hashable, ...]
# As many answers are remembered.
_REMEMBERED: Final = 256


@dataclass(slots=True)
class Family:
    """The shapes of one spec."""

    questions: Questions = field(default_factory=Questions)
    members: dict[Answers, Evaluation] = field(default_factory=dict)
    # Answers that were given once; the second time a shape is worth keeping.
    seen: dict[Answers, int] = field(default_factory=dict)
    # As many questions the answers are to, and the labels that they look at.
    _asked: int = 0
    _keys: tuple[str, ...] = ()
    # By the values of these labels, and of those that held terms look at.
    _remembered: dict[Hashable, tuple[object, object, Answers]] = field(default_factory=dict)

    def answers(self, state: Cache, queued: QueuedPod) -> Answers:
        """Return what the pod answers to all questions."""
        pod, questions = queued.pod, self.questions
        if questions.count != self._asked:
            # Something was asked that nobody was asked before: all have to answer anew.
            self._asked = questions.count
            self._keys = _keys_of(questions)
            self.members.clear()
            self.seen.clear()
            self._remembered.clear()
        terms = state.pods.held_terms
        namespace = state.objects.get(Kind.NAMESPACE, "", pod.metadata.namespace)
        if questions.name:
            return self._ask(state, pod, queued.shape.labels)
        seen: Hashable = queued.shape.labels
        if not questions.labels:
            labels = pod.metadata.labels or {}
            seen = tuple(map(labels.get, self._keys))
            if questions.terms:
                seen = seen, tuple(map(labels.get, terms.label_keys))
        known = self._remembered.get(seen)
        if known is not None and known[0] == terms.version and known[1] is namespace:
            return known[2]
        found = self._ask(state, pod, queued.shape.labels)
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[seen] = (terms.version, namespace, found)
        return found

    def _ask(self, state: Cache, pod: Pod, encoded: bytes) -> Answers:
        questions = self.questions
        labels = pod.metadata.labels or {}
        found: list[Hashable] = [matches(selector, labels) for selector in questions.selectors]
        found += [dict(pairs).items() <= labels.items() for pairs in questions.pairs]
        if questions.labels:
            found.append(encoded)
        if questions.name:
            found.append(pod.metadata.name)
        if questions.terms:
            number_of = state.pods.held_terms.number_of
            found.append(tuple(number_of(term) for term in _terms_picking(state, pod)))
        return tuple(found)


def _keys_of(questions: Questions) -> tuple[str, ...]:
    """Return the labels that selectors and pairs look at."""
    keys = [r.key for selector in questions.selectors for r in selector or ()]
    keys += [key for pairs in questions.pairs for key, _ in pairs]
    return tuple(dict.fromkeys(keys))


def _terms_picking(state: Cache, pod: Pod) -> list[PodTerm]:
    """Return the terms of placed pods that pick a pod."""
    namespace = state.objects.get(Kind.NAMESPACE, "", pod.metadata.namespace)
    of_namespace = (None if namespace is None else namespace.metadata.labels) or {}
    metadata = pod.metadata
    return state.pods.held_terms.picking(metadata.namespace, of_namespace, metadata.labels or {})
