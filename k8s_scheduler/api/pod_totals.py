"""What a pod asks for and is limited to as a whole, in nano-units by resource.

One rule for both: containers run side by side, init containers one after the other before them,
and restartable init containers (sidecars) beside everything that comes after them. What is set
for the pod as a whole replaces the sum of the same name, and the runtime's overhead comes on top:
of requests always, of limits only where there is one.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from k8s_scheduler.api.pod import Container, ContainerStatus, Pod, ResourceList
from k8s_scheduler.api.quantity import nano

# Which amounts of a container to count.
_Read: TypeAlias = Callable[[Container], ResourceList | None]

_NO_DEFAULTS: Mapping[str, int] = {}


def total_requests(
    pod: Pod,
    *,
    from_status: bool = False,
    with_pod_level: bool = True,
    defaults: Mapping[str, int] = _NO_DEFAULTS,
) -> dict[str, int]:
    """Return what a pod asks for.

    `from_status` counts what it was really given too, which an in-place resize makes differ from
    its spec. `with_pod_level` off leaves out what is set for the pod as a whole. `defaults` stand
    in for what a container does not ask for.
    """
    total = _given(pod, defaults) if from_status else _sum(pod, _requests_of, defaults)
    if with_pod_level and has_pod_level_requests(pod):
        total.update(_pod_level_requests(pod, from_status=from_status))
    if pod.spec.overhead:
        _add(total, _nano_list(pod.spec.overhead))
    return total


def total_limits(pod: Pod) -> dict[str, int]:
    total = _sum(pod, _limits_of)
    if pod.spec.resources is not None:
        total.update(_supported_at_pod_level(pod.spec.resources.limits))
    overhead = _nano_list(pod.spec.overhead)
    _add(total, {name: more for name, more in overhead.items() if total.get(name)})
    return total


def is_sum_of_containers(pod: Pod, *, from_status: bool = False) -> bool:
    """Return whether what its containers ask for is all there is to it, as in most pods."""
    spec, status = pod.spec, pod.status
    if spec.init_containers or spec.overhead or spec.resources is not None:
        return False
    return not from_status or not (
        status.container_statuses
        or status.init_container_statuses
        or status.resources is not None
        or status.allocated_resources is not None
        or _resize_is_infeasible(pod)
    )


def has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and bool(_supported_at_pod_level(resources.requests))


# Containers


def _sum(pod: Pod, read: _Read, defaults: Mapping[str, int] = _NO_DEFAULTS) -> dict[str, int]:
    """Return what all containers take at the moment when they take most."""

    def taken_by(container: Container) -> dict[str, int]:
        found = _nano_list(read(container))
        for name, value in defaults.items():
            found.setdefault(name, value)
        return found

    total: dict[str, int] = {}
    for container in pod.spec.containers or ():
        _add(total, taken_by(container))
    if not pod.spec.init_containers:
        return total
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        taken = taken_by(container)
        if container.restart_policy == "Always":
            _add(total, taken)
            _add(sidecars, taken)
            _raise_to(peak, sidecars)
        else:
            _add(taken, sidecars)
            _raise_to(peak, taken)
    _raise_to(total, peak)
    return total


def _requests_of(container: Container) -> ResourceList | None:
    return container.resources.requests if container.resources is not None else None


def _limits_of(container: Container) -> ResourceList | None:
    return container.resources.limits if container.resources is not None else None


# What was really given


def _given(pod: Pod, defaults: Mapping[str, int]) -> dict[str, int]:
    """Return the largest of what containers ask for, what is set aside for them and what they have.

    A request that the node can never fulfil does not count.
    """
    wanted = _sum(pod, _requests_of, defaults)
    infeasible = _resize_is_infeasible(pod)
    status = pod.status
    actual = status.resources.requests if status.resources is not None else None
    if status.allocated_resources is not None and actual is not None:
        # Sums over all containers, made on the node.
        set_aside, in_effect = _nano_list(status.allocated_resources), _nano_list(actual)
    else:
        statuses = _statuses(pod)
        if not statuses and not infeasible:
            return wanted

        def set_aside_for(container: Container) -> ResourceList | None:
            found = statuses.get(container.name)
            if found is not None and found.allocated_resources is not None:
                return found.allocated_resources
            return None if infeasible else _requests_of(container)

        def in_effect_for(container: Container) -> ResourceList | None:
            found = statuses.get(container.name)
            had = found.resources.requests if found and found.resources else None
            return had if had is not None else set_aside_for(container)

        set_aside = _sum(pod, set_aside_for, defaults)
        in_effect = _sum(pod, in_effect_for, defaults)
    total = {} if infeasible else wanted
    _raise_to(total, in_effect)
    _raise_to(total, set_aside)
    return total


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    """Return the statuses that say what their containers were given."""
    status = pod.status
    return {
        found.name: found
        for found in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
        if found.resources is not None or found.allocated_resources is not None
    }


def _pod_level_requests(pod: Pod, *, from_status: bool) -> dict[str, int]:
    """Return what is asked for the pod as a whole, or what it was given if that is more."""
    spec, status = pod.spec, pod.status
    wanted = _supported_at_pod_level(spec.resources.requests if spec.resources else None)
    if not from_status or status.resources is None:
        return wanted
    total = {} if _resize_is_infeasible(pod) else wanted
    _raise_to(total, _supported_at_pod_level(status.resources.requests))
    _raise_to(total, _supported_at_pod_level(status.allocated_resources))
    return total


def _resize_is_infeasible(pod: Pod) -> bool:
    conditions = pod.status.conditions
    return conditions is not None and any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in conditions
    )


# Amounts


def _supported_at_pod_level(resources: ResourceList | None) -> dict[str, int]:
    return {
        name: value
        for name, value in _nano_list(resources).items()
        if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _nano_list(resources: ResourceList | None) -> dict[str, int]:
    return {name: nano(quantity) for name, quantity in resources.items()} if resources else {}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, value in floor.items():
        if value > total.get(name, -1):
            total[name] = value
