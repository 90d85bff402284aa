"""How much a pod asks for and a node offers: kube-scheduler's resource arithmetic.

Sums are made in nano-units (see `pod_totals`) and rounded once (see `quantity`). The result is in
the scheduler's units: thousandths for cpu, whole units for everything else.
"""

from dataclasses import dataclass
from typing import TypeAlias

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.names import is_extended_resource_name
from k8s_scheduler.api.pod import (
    Container,
    Pod,
    PodSpec,
    ResourceList,
    ResourceRequirements,
)
from k8s_scheduler.api.pod_totals import (
    has_pod_level_requests,
    is_sum_of_containers,
    total_requests,
)
from k8s_scheduler.api.quantity import forget_quantities, milli, nano, whole
from k8s_scheduler.lib.byte_lru import ByteLru

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

# The requests of one container, as they are written.
_Items: TypeAlias = tuple[tuple[str, str | int | float], ...]

# What a container without a request counts in scores, so that empty requests still spread.
_DEFAULT_NANO = {CPU: nano("100m"), MEMORY: nano("200Mi")}


# Sums of more requests are not remembered: replicas ask for few resources.
_REMEMBERED_ITEMS = 32
# Sums that were worked out lately, and about what an entry and each request in it take.
REMEMBERED: ByteLru[tuple[_Items, ...], "Requests"] = ByteLru(8 * 1024 * 1024)
_SUM_BYTES = 700
_ITEM_BYTES = 350

# 8,000 pods that take as much still have a sum.
_MOST_OF_A_POD = 2**50


@dataclass(frozen=True, slots=True)
class Requests:
    """What one pod takes from its node.

    `amounts` holds only what is not zero, cpu first, then by name; `non_zero_*` are the sums
    with defaults for containers that ask for nothing, used by scores alone.
    """

    amounts: tuple[tuple[str, int], ...]
    non_zero_milli_cpu: int
    non_zero_memory_bytes: int

    def bounded(self) -> "Requests":
        """Return the same with amounts whose sum over a node's pods fits an integer.

        Nothing real asks for less than nothing or for a pebibyte. A few pods that claim to would
        let a node's sums wrap around, and every other pod's scores there with them.
        """
        values = [value for _, value in self.amounts]
        values += [self.non_zero_milli_cpu, self.non_zero_memory_bytes]
        if min(values) >= 0 and max(values) <= _MOST_OF_A_POD:
            return self
        return Requests(
            amounts=tuple((name, _bounded(value)) for name, value in self.amounts),
            non_zero_milli_cpu=_bounded(self.non_zero_milli_cpu),
            non_zero_memory_bytes=_bounded(self.non_zero_memory_bytes),
        )

    def amount(self, resource: str) -> int:
        for name, value in self.amounts:
            if name == resource:
                return value
        return 0


def _bounded(value: int) -> int:
    return max(0, min(value, _MOST_OF_A_POD))


def pod_requests(pod: Pod, *, from_status: bool = False, with_pod_level: bool = True) -> Requests:
    """Return what a pod takes.

    `from_status` counts what a bound pod was really given; `with_pod_level` off leaves out
    requests of the pod as a whole, as one of kube-scheduler's scores does.
    """
    if is_sum_of_containers(pod, from_status=from_status):
        lists = tuple(map(_request_items, pod.spec.containers or ()))
        if sum(map(len, lists)) <= _REMEMBERED_ITEMS:
            return _sum_of_containers(lists)
    return _worked_out(pod, from_status=from_status, with_pod_level=with_pod_level)


def _sum_of_containers(lists: tuple[_Items, ...]) -> Requests:
    """Return what containers with these requests take; replicas ask for the same."""
    found = REMEMBERED.get(lists)
    if found is None:
        found = _summed(lists)
        REMEMBERED.put(lists, found, _SUM_BYTES + sum(map(_size, lists)))
    return found


def forget_sums() -> None:
    """Remember no amounts: pods that ask for them may all be gone.

    What pods still ask for is worked out once more, some 30 us for each that is different.
    """
    REMEMBERED.clear()
    forget_quantities()


def _size(items: _Items) -> int:
    """Return about how much requests take: as they are written, and added up."""
    return _ITEM_BYTES * len(items) + sum(len(name) + len(str(value)) for name, value in items)


def _summed(lists: tuple[_Items, ...]) -> Requests:
    containers = [Container(resources=ResourceRequirements(requests=dict(r))) for r in lists]
    return _worked_out(Pod(metadata=ObjectMeta(), spec=PodSpec(containers=containers)))


def _request_items(container: Container) -> _Items:
    resources = container.resources
    return tuple(resources.requests.items()) if resources and resources.requests else ()


def _worked_out(pod: Pod, *, from_status: bool = False, with_pod_level: bool = True) -> Requests:
    totals = total_requests(pod, from_status=from_status, with_pod_level=with_pod_level)
    defaults = _DEFAULT_NANO
    if with_pod_level and has_pod_level_requests(pod):
        # With pod-level requests a default fills in only what the plain total lacks altogether.
        defaults = {name: value for name, value in defaults.items() if name not in totals}
    non_zero = total_requests(
        pod, from_status=from_status, with_pod_level=with_pod_level, defaults=defaults
    )
    amounts = {name: in_units(name, value) for name, value in totals.items() if is_tracked(name)}
    return Requests(
        amounts=tuple(
            sorted(
                ((name, value) for name, value in amounts.items() if value),
                key=lambda item: _order(item[0]),
            )
        ),
        non_zero_milli_cpu=milli(non_zero.get(CPU, 0)),
        non_zero_memory_bytes=whole(non_zero.get(MEMORY, 0)),
    )


def allocatable(resources: ResourceList | None) -> dict[str, int]:
    return {
        name: in_units(name, nano(quantity))
        for name, quantity in (resources or {}).items()
        if is_tracked(name) or name == PODS
    }


def in_units(resource: str, nano_units: int) -> int:
    return milli(nano_units) if resource == CPU else whole(nano_units)


def is_tracked(resource: str) -> bool:
    """Return whether scheduling counts this resource; other names are ignored, as upstream."""
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def is_scalar(resource: str) -> bool:
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended_resource_name(resource)


def _order(resource: str) -> tuple[int, str]:
    native = (CPU, MEMORY, EPHEMERAL_STORAGE)
    return (native.index(resource), "") if resource in native else (len(native), resource)
