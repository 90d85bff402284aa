"""The informers of a process: of nodes, of pods, and of each other kind that a plugin reads."""

from collections.abc import Iterator, Mapping
from typing import Any

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.watch.informer import Informer


class WatchSet:
    """All informers, pods last. A reload adds to `others` and takes from it."""

    def __init__(
        self,
        nodes: Informer[Node],
        pods: Informer[Pod],
        others: Mapping[Kind, Informer[ClusterObject]],
    ) -> None:
        self.nodes = nodes
        self.pods = pods
        self.others = dict(others)

    def __iter__(self) -> Iterator[Informer[Any]]:
        yield from self.before_pods()
        yield self.pods

    def before_pods(self) -> Iterator[Informer[Any]]:
        """Yield all but the informer of pods, which is run last, into a world that is complete."""
        yield self.nodes
        yield from self.others.values()

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yield the version up to which each resource is known."""
        for informer in self:
            if informer.resource_version:
                yield informer.resource.label, informer.resource_version
