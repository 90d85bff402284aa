"""Parked pods that plugins judge alike, and what is known of the group as a whole.

A cluster event costs work per group, not per pod: the pods of a group are woken or left together.
For each group the plugins that reject it are remembered, on whatever node: only what can change
their answer is worth judging again.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.framework.views.answers import Answers
from k8s_scheduler.core.queue.interest import Interest
from k8s_scheduler.core.queue.peers import Peers, PreemptionKey, preemption_key
from k8s_scheduler.core.queue.prices import DEAR
from k8s_scheduler.core.queue.queued_pod import QueuedPod

if TYPE_CHECKING:
    from k8s_scheduler.core.queue.parked_spec import ParkedSpec


class ParkedGroup:
    """The parked pods of one group.

    There may be thousands, and events come by the thousand: what is asked of all of them at each
    is kept, and worked out anew only when the pod that decided about it has left.
    """

    def __init__(self, spec: "ParkedSpec") -> None:
        self.spec = spec
        # What all of them answer; None if they were not asked yet.
        self.answers: Answers | None = None
        # Stands for an ordered set.
        self._pods: dict[PodUid, QueuedPod] = {}
        # The sequence of the pod that parked first: thousands of groups are put in order by it.
        self.order = 0
        self.rejectors: frozenset[str] = frozenset()
        self._without_rejectors = 0
        self._seen: int | None = None
        # Which pods, coming or leaving, may change what plugins that count pods say of it on any
        # row, as far as all rows were judged with all of the group there; None: any.
        self.interest: Interest | None = None
        # By what preemption reads of them besides their shape.
        self._peers: dict[PreemptionKey, Peers] = {}
        self._keys: dict[PodUid, PreemptionKey] = {}

    def add(self, queued: QueuedPod) -> None:
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
        del self._pods[queued.uid]
        if self._pods:
            self.order = self.first.sequence
        self._without_rejectors -= not queued.rejectors
        if queued.seen == self._seen:
            self._seen = None
        self._part(queued.uid)
        self._file()

    def empty(self) -> list[QueuedPod]:
        found = list(self._pods.values())
        for uid in self._pods:
            self._part(uid)
        self._pods.clear()
        self._file()
        return found

    def replaced(self, queued: QueuedPod) -> bool:
        """Take note that one of them is a newer version now; return whether it has other peers."""
        if self._keys[queued.uid] == preemption_key(queued.pod):
            return False
        self._part(queued.uid)
        self._join(queued)
        return True

    def rejudged(self, queued: QueuedPod, rejectors: tuple[str, ...]) -> None:
        self._without_rejectors += (not rejectors) - (not queued.rejectors)
        queued.rejectors = rejectors
        self.blame(rejectors)

    def blame(self, plugins: Iterable[str]) -> None:
        """Remember that plugins reject the shape on some node."""
        if not self.rejectors.issuperset(plugins):
            self.rejectors = self.rejectors.union(plugins)
            self._file()

    def take_interest(self, interest: Interest | None) -> None:
        # One that found no node is woken by the first, whatever plugins counted.
        self.interest = None if self.found_no_node else interest
        self._file()

    def _file(self) -> None:
        spec = self.spec
        if self._pods:
            spec.watchlist.file(self, spec.scheduler_name, is_dear=spec.price >= DEAR)
        else:
            spec.watchlist.drop(self)

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
        return next(iter(self._pods.values()))

    def peers(self) -> list[Peers]:
        """Return them by what preemption reads of them besides the shape, most important first."""
        found = self._peers
        if len(found) == 1:
            return list(found.values())
        return [found[key] for key in sorted(found, key=lambda s: (-s.priority, *s[1:]))]

    def peers_of(self, queued: QueuedPod) -> Peers:
        return self._peers[self._keys[queued.uid]]

    def _join(self, queued: QueuedPod) -> None:
        key = self._keys[queued.uid] = preemption_key(queued.pod)
        peers = self._peers.get(key)
        if peers is None:
            peers = self._peers[key] = Peers(key)
        peers.add(queued)

    def _part(self, uid: PodUid) -> None:
        key = self._keys.pop(uid)
        peers = self._peers[key]
        peers.remove(uid)
        if not len(peers):
            del self._peers[key]

    def in_order(self) -> list[QueuedPod]:
        return sorted(self._pods.values(), key=lambda queued: queued.sequence)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __contains__(self, queued: QueuedPod) -> bool:
        return self._pods.get(queued.uid) is queued

    def __len__(self) -> int:
        return len(self._pods)
