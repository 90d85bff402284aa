"""Pods that nothing but an event can help, in groups that are judged alike.

A cluster event costs work per group, not per pod: the pods of a group are woken or left together.
A group is of one spec. Labels split it only where plugins asked for them: pods that answer all
questions alike stay together, so that the replicas of a StatefulSet or of an indexed Job, each with
a label of its own, are one group. For each group the plugins that reject it are remembered, on
whatever node: only what can change their minds is worth judging again.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.views.answers import Answers, Inquiry
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.queue.interest import Interest
from k8s_scheduler.core.queue.peers import Peers, Standing, standing_of
from k8s_scheduler.core.queue.prices import DEAR, price_of
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.watchlist import Helps, Watchlist
from k8s_scheduler.core.state.news.pod_news import PodNews
from k8s_scheduler.core.state.protocols import Tables


class Alike:
    """The parked pods of one group.

    There may be thousands, and events come by the thousand: what is asked of all of them at each
    is kept, and worked out anew only when the pod that decided about it has left.
    """

    def __init__(self, siblings: "Siblings") -> None:
        self.siblings = siblings
        # What all of them answer; None if they were not asked yet.
        self.answers: Answers | None = None
        # Stands for an ordered set.
        self._pods: dict[PodUid, QueuedPod] = {}
        # The sequence of who parked first: thousands of groups are put in order by it.
        self.order = 0
        self.rejectors: frozenset[str] = frozenset()
        self._without_rejectors = 0
        self._seen: int | None = None
        # Which pods, coming or leaving, may change what plugins that count pods say of it on any
        # row, as far as all rows were judged with all of the group there; None: any.
        self.interest: Interest | None = None
        # By what preemption reads of them besides their shape.
        self._peers: dict[Standing, Peers] = {}
        self._standings: dict[PodUid, Standing] = {}

    def add(self, queued: QueuedPod) -> None:
        """Take a pod that was parked."""
        self._pods[queued.uid] = queued
        self.order = self.first.sequence
        # What its attempt has counted was not taken down.
        self.interest = None
        self.blame(queued.rejectors)
        self._without_rejectors += not queued.rejectors
        if self._seen is not None:
            self._seen = min(self._seen, queued.seen)
        self._join(queued)
        self._file()

    def remove(self, queued: QueuedPod) -> None:
        """Let a pod go."""
        del self._pods[queued.uid]
        if self._pods:
            self.order = self.first.sequence
        self._without_rejectors -= not queued.rejectors
        if queued.seen == self._seen:
            self._seen = None
        self._part(queued.uid)
        self._file()

    def empty(self) -> list[QueuedPod]:
        """Let all of them go; return them."""
        found = list(self._pods.values())
        for uid in self._pods:
            self._part(uid)
        self._pods.clear()
        self._file()
        return found

    def replaced(self, queued: QueuedPod) -> bool:
        """Take note that one of them is a newer version now; return whether it has other peers."""
        if self._standings[queued.uid] == standing_of(queued.pod):
            return False
        self._part(queued.uid)
        self._join(queued)
        return True

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins reject one of them now."""
        self._without_rejectors += (not rejectors) - (not queued.rejectors)
        queued.rejectors = rejectors
        self.blame(rejectors)

    def blame(self, plugins: Iterable[str]) -> None:
        """Remember that plugins reject the shape on some node."""
        if not self.rejectors.issuperset(plugins):
            self.rejectors = self.rejectors.union(plugins)
            self._file()

    def take_interest(self, interest: Interest | None) -> None:
        """Take note of which pods may be news to it."""
        # One that found no node is woken by the first, whatever plugins counted.
        self.interest = None if self.found_no_node else interest
        self._file()

    def _file(self) -> None:
        siblings = self.siblings
        if self._pods:
            siblings.watchlist.file(self, siblings.scheduler_name, is_dear=siblings.price >= DEAR)
        else:
            siblings.watchlist.drop(self)

    @property
    def seen(self) -> int:
        """Return the number of the last change that the attempts of all of them knew of."""
        if self._seen is None:
            self._seen = min(queued.seen for queued in self._pods.values())
        return self._seen

    @property
    def found_no_node(self) -> bool:
        """Return whether one of them was tried when there was no node at all to reject it."""
        return self._without_rejectors > 0

    @property
    def first(self) -> QueuedPod:
        """Return who parked first."""
        return next(iter(self._pods.values()))

    def peers(self) -> list[Peers]:
        """Return them by what preemption reads of them besides the shape, most important first."""
        found = self._peers
        if len(found) == 1:
            return list(found.values())
        return [found[key] for key in sorted(found, key=lambda s: (-s.priority, *s[1:]))]

    def peers_of(self, queued: QueuedPod) -> Peers:
        """Return the group that one of them belongs to."""
        return self._peers[self._standings[queued.uid]]

    def _join(self, queued: QueuedPod) -> None:
        standing = self._standings[queued.uid] = standing_of(queued.pod)
        peers = self._peers.get(standing)
        if peers is None:
            peers = self._peers[standing] = Peers(standing)
        peers.add(queued)

    def _part(self, uid: PodUid) -> None:
        standing = self._standings.pop(uid)
        peers = self._peers[standing]
        peers.remove(uid)
        if not len(peers):
            del self._peers[standing]

    def in_order(self) -> list[QueuedPod]:
        """Return all of them, the one that was parked first first."""
        return sorted(self._pods.values(), key=_sequence)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __contains__(self, queued: QueuedPod) -> bool:
        return self._pods.get(queued.uid) is queued

    def __len__(self) -> int:
        return len(self._pods)


@dataclass(slots=True)
class _Marked:
    """Pods of one spec with the same labels: one of them, how many there are, and their group."""

    pod: Pod
    labels: bytes
    alike: Alike
    count: int = 0


class Siblings:
    """The parked pods of one spec, in groups by what they answer.

    At first all are one group. What plugins ask when one of them is judged is taken down in
    `questions`; `regroup` then puts those apart that answer otherwise.
    """

    def __init__(self, parked: "Parked", first: Pod) -> None:
        self._parked = parked
        self.watchlist = parked.watchlist
        self.scheduler_name = first.spec.scheduler_name
        self._inquiry = Inquiry()
        self._groups: dict[Answers, Alike] = {}
        # By labels; if plugins have asked who the pod is, by its uid as well.
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
        """What plugins asked."""
        return self._inquiry.questions

    def groups(self) -> list[Alike]:
        """Return all groups."""
        found = list(self._groups.values())
        if self._not_asked:
            found += [self._marked[mark].alike for mark in self._not_asked]
        return found

    def group_of(self, queued: QueuedPod) -> Alike:
        """Return a pod's group."""
        return self._marked[self._mark(queued)].alike

    def is_alone(self, queued: QueuedPod) -> bool:
        """Return whether its group has no pods with other labels than its own."""
        marked = self._marked[self._mark(queued)]
        return marked.count == len(marked.alike)

    def add(self, queued: QueuedPod) -> None:
        """Take a pod."""
        mark = self._mark(queued)
        marked = self._marked.get(mark)
        if marked is None:
            marked = _Marked(queued.pod, queued.shape.labels, self._group_of_new(mark))
            self._marked[mark] = marked
        marked.count += 1
        marked.alike.add(queued)

    def remove(self, queued: QueuedPod) -> bool:
        """Let a pod go; return whether it was the last."""
        mark = self._mark(queued)
        marked = self._marked[mark]
        marked.alike.remove(queued)
        marked.count -= 1
        if not marked.count:
            del self._marked[mark]
            self._not_asked.pop(mark, None)
            if not len(marked.alike) and marked.alike.answers is not None:
                del self._groups[marked.alike.answers]
        return not self._marked

    def forget_questions(self) -> None:
        """Make all pods one group again, as if nothing had ever been asked."""
        old = self.groups()
        self._inquiry = Inquiry()
        self._stamp = (0,)
        self._rebuild(old, {})

    def regroup(self, state: Tables) -> list[Alike]:
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
        same: dict[Answers, Alike] = {}
        for mark, marked in self._marked.items():
            if same.setdefault(answers[mark], marked.alike) is not marked.alike:
                return self._rebuild(old, answers)
        if len(same) != len(old):
            return self._rebuild(old, answers)
        self._not_asked.clear()
        self._groups = same
        for key, alike in same.items():
            alike.answers = key
        return []

    @property
    def _namespace(self) -> str:
        return next(iter(self._marked.values())).pod.metadata.namespace

    def _mark(self, queued: QueuedPod) -> Hashable:
        labels = queued.shape.labels
        return (labels, queued.uid) if self._is_by_uid else labels

    def _group_of_new(self, mark: Hashable) -> Alike:
        """Return the group for pods with labels that none had before."""
        if self._stamp != (0,):
            self._not_asked[mark] = None
            return Alike(self)
        return self._groups.get(()) or self._make_group(())

    def _make_group(self, answers: Answers) -> Alike:
        found = self._groups[answers] = Alike(self)
        found.answers = answers
        return found

    def _sort_in(self, state: Tables, marked: _Marked) -> None:
        """Put pods that were not asked yet where they belong."""
        answers = self._inquiry.answers(state, marked.pod, marked.labels)
        group = self._groups.setdefault(answers, marked.alike)
        if group is marked.alike:
            group.answers = answers
            return
        self._parked.arrivals += 1
        group.blame(marked.alike.rejectors)
        for queued in marked.alike.empty():
            group.add(queued)
        marked.alike = group

    def _mark_by_uid(self, groups: list[Alike]) -> None:
        self._marked = {
            (queued.shape.labels, queued.uid): _Marked(queued.pod, queued.shape.labels, alike, 1)
            for alike in groups
            for queued in alike
        }
        self._not_asked.clear()

    def _rebuild(self, old: list[Alike], answers: dict[Hashable, Answers]) -> list[Alike]:
        """Make new groups of all pods; one without answers belongs to all others without."""
        self._groups = {}
        self._not_asked.clear()
        self._parked.arrivals += 1
        moved = [(queued, alike) for alike in old for queued in alike.empty()]
        moved.sort(key=lambda pair: pair[0].sequence)
        for queued, alike in moved:
            mark = self._mark(queued)
            key = answers.get(mark, ())
            group = self._groups.get(key) or self._make_group(key)
            group.blame(alike.rejectors)
            group.add(queued)
            self._marked[mark].alike = group
        return list(self._groups.values())


class Parked:
    """Parked pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, QueuedPod] = {}
        self._specs: dict[bytes, Siblings] = {}
        self.watchlist: Watchlist[Alike] = Watchlist()
        # Goes up with every pod that is parked, every newer version of one, and with other groups.
        self.arrivals = 0

    def add(self, queued: QueuedPod) -> None:
        """Park a pod."""
        self.arrivals += 1
        self._pods[queued.uid] = queued
        siblings = self._specs.get(queued.shape.spec)
        if siblings is None:
            siblings = self._specs[queued.shape.spec] = Siblings(self, queued.pod)
        siblings.add(queued)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        """Take a pod out."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        if self._specs[queued.shape.spec].remove(queued):
            del self._specs[queued.shape.spec]
        return queued

    def replaced(self, queued: QueuedPod) -> None:
        """Take note that a parked pod is a newer version of the same shape now."""
        self.arrivals += self.group_of(queued).replaced(queued)

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        """Take note that other plugins reject a parked pod now."""
        self.group_of(queued).rejudged(queued, rejectors)

    def blame(self, queued: QueuedPod, plugins: Iterable[str]) -> None:
        """Remember that plugins reject the group of a parked pod on some node."""
        self.group_of(queued).blame(plugins)

    def peers(self) -> list[Peers]:
        """Return all peers, those of the longest parked group first."""
        return [peers for alike in self.groups() for peers in alike.peers()]

    def peers_of(self, queued: QueuedPod) -> Peers:
        """Return the peers of a parked pod."""
        return self.group_of(queued).peers_of(queued)

    def speaks_for_peers(self, queued: QueuedPod) -> bool:
        """Return whether what an attempt finds of a parked pod is known to go for its peers.

        An attempt does not take down what plugins ask, so it goes for pods with the same labels.
        """
        return self._specs[queued.shape.spec].is_alone(queued)

    def group_of(self, queued: QueuedPod) -> Alike:
        """Return the group of a parked pod."""
        return self._specs[queued.shape.spec].group_of(queued)

    def groups(self) -> list[Alike]:
        """Return all groups, longest parked first."""
        found: list[Alike] = []
        for siblings in self._specs.values():
            found += siblings.groups()
        return sorted(found, key=_order)

    def concerned(self, pods: PodNews, helps: Helps, *, dear: bool) -> list[Alike]:
        """Return the groups that something may have helped (see `watchlist`), longest parked first.

        Only those that are dear to judge, or only the others.
        """
        found = self.watchlist.concerned(pods, helps, dear=dear)
        return sorted(found, key=_order)

    def forget_questions(self) -> None:
        """Let groups be as they are made of pods alone, whatever plugins asked before."""
        for siblings in self._specs.values():
            siblings.forget_questions()

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)


_order = attrgetter("order")


def _sequence(queued: QueuedPod) -> int:
    return queued.sequence
