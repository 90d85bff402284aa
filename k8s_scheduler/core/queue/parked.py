"""Pods that were rejected and wait for an event: all of them, by spec and in groups.

A group (`parked_group`) is judged once for all its pods; `parked_spec` says which pods are in one.
"""

from collections.abc import Iterator
from operator import attrgetter

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.queue.parked_group import ParkedGroup
from k8s_scheduler.core.queue.parked_spec import ParkedSpec
from k8s_scheduler.core.queue.peers import Peers
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.watchlist import Helps, Watchlist
from k8s_scheduler.core.state.news.pod_news import PodNews

_order = attrgetter("order")


class Parked:
    """Parked pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, QueuedPod] = {}
        self._specs: dict[bytes, ParkedSpec] = {}
        self.watchlist: Watchlist[ParkedGroup] = Watchlist()
        # Goes up with every pod that is parked, every newer version of one, and with other groups.
        self.arrivals = 0

    def add(self, queued: QueuedPod) -> None:
        self.arrivals += 1
        self._pods[queued.uid] = queued
        spec = self._specs.get(queued.shape.spec)
        if spec is None:
            spec = self._specs[queued.shape.spec] = ParkedSpec(self, queued.pod)
        spec.add(queued)

    def remove(self, uid: PodUid) -> QueuedPod | None:
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        if self._specs[queued.shape.spec].remove(queued):
            del self._specs[queued.shape.spec]
        return queued

    def replaced(self, queued: QueuedPod) -> None:
        self.arrivals += self.group_of(queued).replaced(queued)

    def peers(self) -> list[Peers]:
        return [peers for group in self.groups() for peers in group.peers()]

    def peers_of(self, queued: QueuedPod) -> Peers:
        return self.group_of(queued).peers_of(queued)

    def speaks_for_peers(self, queued: QueuedPod) -> bool:
        """Return whether what an attempt finds of a parked pod is known to go for its peers.

        An attempt does not take down what plugins ask, so it goes for pods with the same labels.
        """
        return self._specs[queued.shape.spec].is_alone(queued)

    def group_of(self, queued: QueuedPod) -> ParkedGroup:
        return self._specs[queued.shape.spec].group_of(queued)

    def groups(self) -> list[ParkedGroup]:
        found: list[ParkedGroup] = []
        for spec in self._specs.values():
            found += spec.groups()
        return sorted(found, key=_order)

    def concerned(self, pods: PodNews, helps: Helps, *, dear: bool) -> list[ParkedGroup]:
        """Return the groups that something may have helped (see `watchlist`), longest parked first.

        Only those that are dear to judge, or only the others.
        """
        found = self.watchlist.concerned(pods, helps, dear=dear)
        return sorted(found, key=_order)

    def forget_questions(self) -> None:
        """Let groups be as they are made of pods alone, whatever plugins asked before."""
        for spec in self._specs.values():
            spec.forget_questions()

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)
