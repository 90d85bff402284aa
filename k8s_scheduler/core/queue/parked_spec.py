"""The parked pods of one spec, in groups by what they answer to the questions of plugins.

Labels split a group only where plugins asked for them: pods that answer all questions alike stay
together, so that the replicas of a StatefulSet or of an indexed Job, each with a label of its own,
are one group.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.views.answers import Answers, Inquiry
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.queue.parked_group import ParkedGroup
from k8s_scheduler.core.queue.prices import price_of
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import Tables

if TYPE_CHECKING:
    from k8s_scheduler.core.queue.parked import Parked


@dataclass(slots=True)
class _Marked:
    """Pods of one spec with the same labels: one of them, how many there are, and their group."""

    pod: Pod
    labels: bytes
    group: ParkedGroup
    count: int = 0


class ParkedSpec:
    """The parked pods of one spec, in groups by what they answer.

    At first all are one group. What plugins ask when one of them is judged is taken down in
    `questions`; `regroup` then puts those apart that answer otherwise.
    """

    def __init__(self, parked: "Parked", first: Pod) -> None:
        self._parked = parked
        self.watchlist = parked.watchlist
        self.scheduler_name = first.spec.scheduler_name
        self._inquiry = Inquiry()
        self._groups: dict[Answers, ParkedGroup] = {}
        # By labels; if plugins have asked for the name or uid, by uid as well.
        self._marked: dict[Hashable, _Marked] = {}
        self._is_by_uid = False
        # Those of them, in groups of their own, that were not asked yet. Stands for an ordered set.
        self._not_asked: dict[Hashable, None] = {}
        # What the answers depended on when groups were last made.
        self._stamp: tuple[object, ...] = (0,)
        # What judging one of them costs: labels alone make next to no difference. Worked out when
        # the first one is parked: thousands of shapes may be parked before one is asked about.
        self.price = price_of(first)

    @property
    def questions(self) -> Questions:
        return self._inquiry.questions

    def groups(self) -> list[ParkedGroup]:
        found = list(self._groups.values())
        if self._not_asked:
            found += [self._marked[mark].group for mark in self._not_asked]
        return found

    def group_of(self, queued: QueuedPod) -> ParkedGroup:
        return self._marked[self._mark(queued)].group

    def is_alone(self, queued: QueuedPod) -> bool:
        """Return whether its group has no pods with other labels than its own."""
        marked = self._marked[self._mark(queued)]
        return marked.count == len(marked.group)

    def add(self, queued: QueuedPod) -> None:
        mark = self._mark(queued)
        marked = self._marked.get(mark)
        if marked is None:
            marked = _Marked(queued.pod, queued.shape.labels, self._group_of_new(mark))
            self._marked[mark] = marked
        marked.count += 1
        marked.group.add(queued)

    def remove(self, queued: QueuedPod) -> bool:
        mark = self._mark(queued)
        marked = self._marked[mark]
        marked.group.remove(queued)
        marked.count -= 1
        if not marked.count:
            del self._marked[mark]
            self._not_asked.pop(mark, None)
            if not len(marked.group) and marked.group.answers is not None:
                del self._groups[marked.group.answers]
        return not self._marked

    def forget_questions(self) -> None:
        """Make all pods one group again, as if nothing had ever been asked."""
        old = self.groups()
        self._inquiry = Inquiry()
        self._stamp = (0,)
        self._rebuild(old, {})

    def regroup(self, state: Tables) -> list[ParkedGroup]:
        """Put the pods into groups by what they answer now; return the groups that are new."""
        stamp = self._inquiry.stamp(state, self._namespace)
        if stamp == self._stamp:
            for mark in self._not_asked:
                self._sort_in(state, self._marked[mark])
            self._not_asked.clear()
            return []
        self._stamp = stamp
        self._inquiry.renew()
        old = self.groups()
        if self.questions.name and not self._is_by_uid:
            self._is_by_uid = True
            self._mark_by_uid(old)
        answers = {
            mark: self._inquiry.answers(state, marked.pod, marked.labels)
            for mark, marked in self._marked.items()
        }
        same: dict[Answers, ParkedGroup] = {}
        for mark, marked in self._marked.items():
            if same.setdefault(answers[mark], marked.group) is not marked.group:
                return self._rebuild(old, answers)
        if len(same) != len(old):
            return self._rebuild(old, answers)
        self._not_asked.clear()
        self._groups = same
        for key, group in same.items():
            group.answers = key
        return []

    @property
    def _namespace(self) -> str:
        return next(iter(self._marked.values())).pod.metadata.namespace

    def _mark(self, queued: QueuedPod) -> Hashable:
        labels = queued.shape.labels
        return (labels, queued.uid) if self._is_by_uid else labels

    def _group_of_new(self, mark: Hashable) -> ParkedGroup:
        """Return the group for pods with labels that none had before."""
        if self._stamp != (0,):
            self._not_asked[mark] = None
            return ParkedGroup(self)
        return self._groups.get(()) or self._make_group(())

    def _make_group(self, answers: Answers) -> ParkedGroup:
        found = self._groups[answers] = ParkedGroup(self)
        found.answers = answers
        return found

    def _sort_in(self, state: Tables, marked: _Marked) -> None:
        answers = self._inquiry.answers(state, marked.pod, marked.labels)
        group = self._groups.setdefault(answers, marked.group)
        if group is marked.group:
            group.answers = answers
            return
        self._parked.arrivals += 1
        group.blame(marked.group.rejectors)
        for queued in marked.group.empty():
            group.add(queued)
        marked.group = group

    def _mark_by_uid(self, groups: list[ParkedGroup]) -> None:
        self._marked = {
            (queued.shape.labels, queued.uid): _Marked(queued.pod, queued.shape.labels, group, 1)
            for group in groups
            for queued in group
        }
        self._not_asked.clear()

    def _rebuild(
        self, old: list[ParkedGroup], answers: dict[Hashable, Answers]
    ) -> list[ParkedGroup]:
        """Make new groups of all pods; one without answers belongs to all others without."""
        self._groups = {}
        self._not_asked.clear()
        self._parked.arrivals += 1
        moved = [(queued, former) for former in old for queued in former.empty()]
        moved.sort(key=lambda pair: pair[0].sequence)
        for queued, former in moved:
            mark = self._mark(queued)
            key = answers.get(mark, ())
            group = self._groups.get(key) or self._make_group(key)
            group.blame(former.rejectors)
            group.add(queued)
            self._marked[mark].group = group
        return list(self._groups.values())
