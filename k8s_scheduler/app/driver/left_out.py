"""Objects on which the core has failed, and what it is told of them since.

    failed once     told again, after everything else: it may have been the order of things
    failed twice    of a pod on a node only what it takes there; anything else is left out
    failed again    left out

A pod that takes room is not left out lightly: its room would be given away. What is left out is
named in the log and counted; it comes back when it is deleted and made anew, or with the next
process.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.pod import Container, Pod, PodSpec

_BARE: Final = 2
_NOTHING: Final = 3
# More objects are not remembered: by then it is not the objects that are wrong.
MOST: Final = 1000


class LeftOut:
    """How often the core has failed on which object."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], int] = {}

    def failed(self, resource: str, key: str) -> int:
        """Count a failure; return how many it makes."""
        times = self._failures.get((resource, key), 0) + 1
        if times > 1 or len(self._failures) < MOST:
            self._failures[resource, key] = times
        return times

    def gone(self, resource: str, key: str) -> None:
        if self._failures:
            self._failures.pop((resource, key), None)

    def has(self, resource: str, key: str) -> bool:
        return self._failures.get((resource, key), 0) >= _BARE

    def may_tell(self, resource: str, key: str) -> bool:
        return not (self._failures and self.has(resource, key))

    def pod(self, pod: Pod) -> Pod | None:
        """Return what the core is told of a pod; None for nothing."""
        times = self._failures.get(("pods", pod.metadata.uid), 0) if self._failures else 0
        if times < _BARE:
            return pod
        return bare(pod) if pod.spec.node_name and times < _NOTHING else None

    def is_last(self, resource: str, key: str) -> bool:
        return bool(self._failures) and (resource, key) in self._failures

    def counts(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for (resource, _), times in self._failures.items():
            if times >= _BARE:
                counts[resource] = counts.get(resource, 0) + 1
        return counts


def bare(pod: Pod) -> Pod:
    """Return a pod on a node with nothing but its identity and what its containers ask for."""
    metadata, spec = pod.metadata, pod.spec
    return Pod(
        ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            deletion_timestamp=metadata.deletion_timestamp,
        ),
        PodSpec(
            containers=[_bare_container(each) for each in spec.containers or ()],
            init_containers=[_bare_container(each) for each in spec.init_containers or ()],
            resources=spec.resources,
            overhead=spec.overhead,
            node_name=spec.node_name,
            scheduler_name=spec.scheduler_name,
            priority=spec.priority,
        ),
    )


def _bare_container(container: Container) -> Container:
    return msgspec.structs.replace(container, image="", ports=None)
