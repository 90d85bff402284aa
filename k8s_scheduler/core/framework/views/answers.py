"""What plugins asked about pods of one spec, and what each of these pods answers.

Every pod of a StatefulSet has a label of its own, and none is judged differently for it. What
plugins asked about a pod's labels is known; pods that give the same answers are judged alike.
"""

from collections.abc import Hashable
from typing import Final

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.selectors.labels import matches
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.state.protocols import Tables
from k8s_scheduler.core.state.terms.picked_terms import PickedTerms

Answers = tuple[Hashable, ...]
# As many answers are remembered.
_REMEMBERED: Final = 256


class Inquiry:
    """The questions about pods of one spec."""

    __slots__ = ("_keys", "_remembered", "asked", "questions")

    def __init__(self) -> None:
        self.questions = Questions()
        # As many questions the answers are to, and the labels that they look at.
        self.asked = 0
        self._keys: tuple[str, ...] = ()
        # By the values of these labels, and of those that held terms look at.
        self._remembered: dict[Hashable, tuple[object, object, Answers]] = {}

    def renew(self) -> bool:
        """Return whether something was asked since this was last called: answers are others then.

        Call it before `answers`.
        """
        questions = self.questions
        if questions.count == self.asked:
            return False
        self.asked = questions.count
        self._keys = _keys_of(questions)
        self._remembered.clear()
        return True

    def stamp(self, state: Tables, namespace: str) -> tuple[object, ...]:
        """Return what the answers of all these pods depend on besides the pods."""
        if not self.questions.terms:
            return (self.questions.count,)
        found = state.objects.get(Kind.NAMESPACE, "", namespace)
        return self.questions.count, state.pods.held_terms.version, found

    def answers(self, state: Tables, pod: Pod, labels: bytes) -> Answers:
        """Return what a pod answers to all questions; `labels` are its labels, encoded."""
        questions = self.questions
        if questions.name:
            return self._ask(state, pod, labels)
        terms = state.pods.held_terms
        namespace = state.objects.get(Kind.NAMESPACE, "", pod.metadata.namespace)
        seen: Hashable = labels
        if not questions.labels:
            values = (pod.metadata.labels or {}).get
            seen = tuple(map(values, self._keys))
            if questions.terms:
                seen = seen, terms.look(pod.metadata.labels or {})
        known = self._remembered.get(seen)
        if known is not None and known[0] == terms.version and known[1] is namespace:
            return known[2]
        found = self._ask(state, pod, labels)
        if len(self._remembered) >= _REMEMBERED:
            self._remembered.clear()
        self._remembered[seen] = (terms.version, namespace, found)
        return found

    def _ask(self, state: Tables, pod: Pod, encoded: bytes) -> Answers:
        questions = self.questions
        labels = pod.metadata.labels or {}
        found: list[Hashable] = [matches(selector, labels) for selector in questions.selectors]
        found += [dict(pairs).items() <= labels.items() for pairs in questions.pairs]
        found += [labels.get(key) for key in questions.label_keys]
        if questions.labels:
            found.append(encoded)
        if questions.name:
            found.append((pod.metadata.name, pod.metadata.uid))
        if questions.terms:
            found.append(_terms_picking(state, pod).number)
        return tuple(found)


def _keys_of(questions: Questions) -> tuple[str, ...]:
    """Return the labels that were asked for, or that selectors and pairs look at."""
    keys = list(questions.label_keys)
    keys += [r.key for selector in questions.selectors for r in selector or ()]
    keys += [key for pairs in questions.pairs for key, _ in pairs]
    return tuple(dict.fromkeys(keys))


def _terms_picking(state: Tables, pod: Pod) -> PickedTerms:
    """Return the terms of placed pods that pick a pod."""
    namespace = state.objects.get(Kind.NAMESPACE, "", pod.metadata.namespace)
    of_namespace = (None if namespace is None else namespace.metadata.labels) or {}
    metadata = pod.metadata
    return state.pods.held_terms.picked(metadata.namespace, of_namespace, metadata.labels or {})
