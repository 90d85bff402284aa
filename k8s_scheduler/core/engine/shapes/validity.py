"""What terms were prepared from, and whether they would be prepared the same way now.

Terms depend on what was read everywhere: objects, numbers about the cluster, facts of all rows.
When one of these changes, the plugin is asked again; a term that comes out equal is as good as
new.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import Narrow, Reject, Skip, Term
from k8s_scheduler.core.framework.profile import FilterStep, Profile, ScoreStep
from k8s_scheduler.core.framework.reasons import Verdict
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.framework.views.reads import ObjectRead, Reads
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import NODE, OBJECTS, PODS
from k8s_scheduler.core.state.protocols import Tables


@dataclass(slots=True)
class _Prepared:
    """What a step said before any row was judged, and from what."""

    # Which step: filters first, then scores.
    index: int
    said: Term
    reads: Reads


class ClusterReads:
    """Objects and numbers that were read while rows were judged, whichever rows these were."""

    def __init__(self, state: Tables) -> None:
        self._state = state
        self._reads = Reads()
        self._facts = 0
        self._stamp = _stamp_of(state)

    def see(self, reads: Reads) -> None:
        """Take note of what was read."""
        self._reads.objects.update(reads.objects)
        self._reads.scalars.update(reads.scalars)
        self._facts |= _facts_behind(reads)

    def are_same(self, seen: int) -> bool:
        """Return whether all is as it was, given the facts that changed anywhere."""
        if not self._reads.objects and not self._reads.scalars:
            return True
        stamp = _stamp_of(self._state)
        if stamp == self._stamp and not seen & self._facts:
            return True
        self._stamp = stamp
        return are_same(self._state, self._reads)


class Inputs:
    """What an evaluation was made from, besides the rows themselves."""

    def __init__(self, state: Tables, questions: Questions) -> None:
        self._state = state
        self._questions = questions
        self._prepared: list[_Prepared] = []
        self._wide_facts = 0
        self._presences: dict[tuple[PodCounter, str], bool] = {}
        self._stamp = _stamp_of(state)
        # Whether, when last asked, anything had changed that is not of a row.
        self.moved = True
        # Terms that have become others, of filters that are asked group by group: nothing else was
        # made from them. The caller that takes them clears them.
        self.other_terms: dict[str, Term] = {}

    def add(self, index: int, said: Term, reads: Reads) -> None:
        """Take note of what a step has prepared; NotKeptError if that can't be followed."""
        if reads.counters and not reads.wide_facts & PODS:
            raise NotKeptError("wide")
        self._prepared.append(_Prepared(index, said, reads))
        self._heed(reads)

    def _heed(self, reads: Reads) -> None:
        self._wide_facts |= reads.wide_facts | _facts_behind(reads)
        self._presences.update(reads.presences)

    def are_valid(self, seen: int, profile: Profile, pod: PodView, runtime: Runtime) -> bool:
        """Return whether all would be said again, given the facts that changed anywhere."""
        stamp = _stamp_of(self._state)
        self.moved = bool(seen & (OBJECTS | NODE)) or stamp != self._stamp
        presences = self._presences
        if (
            stamp == self._stamp
            and not seen & self._wide_facts
            and (not presences or are_present(presences))
        ):
            return True
        self._stamp = stamp
        for prepared in self._prepared:
            reads = prepared.reads
            is_same = not seen & reads.wide_facts and (
                # Most steps have read nothing of the kind.
                not (reads.objects or reads.scalars or reads.presences) or self.are_same(reads)
            )
            if not is_same and not self._said_again(prepared, profile, pod, runtime):
                return False
        return True

    def are_same(self, reads: Reads) -> bool:
        """Return whether what was read of the cluster as a whole is the same now."""
        return are_same(self._state, reads)

    def _said_again(
        self, prepared: _Prepared, profile: Profile, pod: PodView, runtime: Runtime
    ) -> bool:
        """Ask a step again; return whether it says the same."""
        reads = Reads()
        present = self._state.nodes.present_rows()
        filters = len(profile.pre_filters)
        if prepared.index < filters:
            step: FilterStep | ScoreStep = profile.pre_filters[prepared.index]
            with pod.asking(self._questions):
                said = runtime.prepare(profile.pre_filters[prepared.index], pod, present, reads)
        else:
            step = profile.scores[prepared.index - filters]
            with pod.asking(self._questions):
                said = runtime.pre_score(step, pod, present, reads)
            if reads.looked_at_rows:
                return False
        self._heed(reads)
        if not _equal(prepared.said, said):
            if not _may_be_another(step, prepared.said, said):
                return False
            self.other_terms[step.name] = said
        prepared.said, prepared.reads = said, reads
        return True


def are_same(state: Tables, reads: Reads) -> bool:
    """Return whether the objects and numbers that were read are the same now."""
    return (
        all(_object(state, read) is seen for read, seen in reads.objects.items())
        and all(_scalar(state, name) == seen for name, seen in reads.scalars.items())
        and are_present(reads.presences)
    )


def _object(state: Tables, read: ObjectRead) -> Any:
    what, kind, namespace, name = read
    objects = state.objects
    match what:
        case "get":
            return objects.get(kind, namespace, name)
        case "original":
            return objects.original(kind, namespace, name)
        case "list":
            return objects.list(kind, namespace)
        case "class":
            return state.offers.stamp(kind, namespace)
    return objects.list_all(kind)


def _scalar(state: Tables, name: str) -> int:
    match name:
        case "held_terms":
            return state.pods.held_terms.version
        case "label_values":
            return state.nodes.labels.generation
        case "node_count":
            return len(state.nodes)
    family, _, image = name.partition("/")
    if family != "image":
        raise KeyError(name)
    return len(state.nodes.images.sizes(image))


def _facts_behind(reads: Reads) -> int:
    """Return the facts without whose change objects and numbers that were read stay the same."""
    found = OBJECTS if reads.objects else 0
    return found | NODE if "node_count" in reads.scalars else found


def _stamp_of(state: Tables) -> tuple[int, int, int]:
    """Return numbers that change with most of what is not noted as a fact."""
    return (
        state.pods.held_terms.version,
        state.nodes.labels.generation,
        state.nodes.images.generation,
    )


def are_present(presences: Mapping[tuple[PodCounter, str], bool]) -> bool:
    """Return whether the same counters count any pod as before."""
    if not presences:
        return True
    return all((counter.total(key) > 0) is seen for (counter, key), seen in presences.items())


def _may_be_another(step: FilterStep | ScoreStep, before: Term, after: Term) -> bool:
    """Return whether a term can take the place of another while everything else stays."""
    plain = not any(isinstance(t, Skip | Reject | Narrow | Verdict) for t in (before, after))
    return isinstance(step, FilterStep) and step.by_group and plain


def are_equal(some: Mapping[str, Term], others: Mapping[str, Term]) -> bool:
    """Return whether the same steps have equal terms; those that can't be compared are not."""
    if some is others:
        return True
    return some.keys() == others.keys() and all(
        term is others[name] or _equal(term, others[name]) for name, term in some.items()
    )


def _equal(one: Term, other: Term) -> bool:
    """Return whether two terms are equal; those that can't be compared are not."""
    try:
        return bool(one == other)
    except ValueError:
        # Arrays don't say.
        return False
