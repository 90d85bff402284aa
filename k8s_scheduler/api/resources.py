"""How much a pod asks for and a node offers: kube-scheduler's resource arithmetic.

Sums are made in nano-units and rounded once (see `quantity`). The result is in the scheduler's
units: thousandths for cpu, whole units for everything else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from k8s_scheduler.api.names import is_extended_resource_name
from k8s_scheduler.api.pod import Container, ContainerStatus, Pod, ResourceList
from k8s_scheduler.api.quantity import milli, nano, whole

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

# What a container without a request counts in scores, so that empty requests still spread.
_DEFAULT_NANO = {CPU: nano("100m"), MEMORY: nano("200Mi")}


@dataclass(frozen=True, slots=True)
class Requests:
    """What one pod takes from its node.

    `amounts` holds only what is not zero, cpu first, then by name; `non_zero_*` are the sums
    with defaults for containers that ask for nothing, used by scores alone.
    """

    amounts: tuple[tuple[str, int], ...]
    non_zero_milli_cpu: int
    non_zero_memory_bytes: int

    def amount(self, resource: str) -> int:
        """Return how much of one resource is asked for."""
        for name, value in self.amounts:
            if name == resource:
                return value
        return 0


def pod_requests(pod: Pod, *, from_status: bool = False, with_pod_level: bool = True) -> Requests:
    """Return what a pod takes.

    `from_status` counts what a bound pod was really given; `with_pod_level` off leaves out
    requests of the pod as a whole, as one of kube-scheduler's scores does.
    """
    pod_level = _pod_level(pod, from_status=from_status) if with_pod_level else {}
    totals = _total(pod, pod_level, from_status=from_status, defaults=None)
    non_zero = _total(pod, pod_level, from_status=from_status, defaults=_DEFAULT_NANO)
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
    """Return what a node offers, by resource, `pods` included."""
    return {
        name: in_units(name, nano(quantity))
        for name, quantity in (resources or {}).items()
        if is_tracked(name) or name == PODS
    }


def in_units(resource: str, nano_units: int) -> int:
    """Return an amount in the scheduler's unit for that resource."""
    return milli(nano_units) if resource == CPU else whole(nano_units)


def is_tracked(resource: str) -> bool:
    """Return whether scheduling counts this resource; other names are ignored, as upstream."""
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def is_scalar(resource: str) -> bool:
    """Return whether the name is an extended, huge-page, native or attachable resource."""
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended_resource_name(resource)


def _order(resource: str) -> tuple[int, str]:
    native = (CPU, MEMORY, EPHEMERAL_STORAGE)
    return (native.index(resource), "") if resource in native else (len(native), resource)


def _total(
    pod: Pod,
    pod_level: Mapping[str, int],
    *,
    from_status: bool,
    defaults: Mapping[str, int] | None,
) -> dict[str, int]:
    """Return nano-units by resource: containers, init containers, pod level, overhead."""
    spec = pod.spec
    if defaults is not None and pod_level:
        # With pod-level requests a default fills in only what the plain total lacks altogether.
        plain = _total(pod, pod_level, from_status=from_status, defaults=None)
        defaults = {name: value for name, value in defaults.items() if name not in plain}
    statuses = _statuses(pod) if from_status else {}
    infeasible = from_status and _resize_is_infeasible(pod)

    def asked(containers: Iterable[Container] | None) -> Iterator[tuple[Container, dict[str, int]]]:
        for container in containers or ():
            request = _container(container, statuses.get(container.name), infeasible=infeasible)
            for name, value in (defaults or {}).items():
                request.setdefault(name, value)
            yield container, request

    total: dict[str, int] = {}
    for _, request in asked(spec.containers):
        _add(total, request)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container, request in asked(spec.init_containers):
        if container.restart_policy == "Always":
            _add(total, request)
            _add(sidecars, request)
            _raise_to(peak, sidecars)
        else:
            _add(request, sidecars)
            _raise_to(peak, request)
    _raise_to(total, peak)
    total.update(pod_level)
    _add(total, _nano_list(spec.overhead))
    return total


def _pod_level(pod: Pod, *, from_status: bool) -> dict[str, int]:
    """Return requests set for the pod as a whole; they replace the sums of the same name."""
    if pod.spec.resources is None:
        return {}
    requested = _supported_at_pod_level(pod.spec.resources.requests)
    if not requested or not from_status:
        return requested
    status = pod.status
    actual = _supported_at_pod_level(status.resources.requests if status.resources else None)
    allocated = _supported_at_pod_level(status.allocated_resources)
    if not actual and not allocated:
        return requested
    given = {} if _resize_is_infeasible(pod) else requested
    _raise_to(given, actual)
    _raise_to(given, allocated)
    return given


def _supported_at_pod_level(resources: ResourceList | None) -> dict[str, int]:
    return {
        name: value
        for name, value in _nano_list(resources).items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _container(
    container: Container, status: ContainerStatus | None, *, infeasible: bool
) -> dict[str, int]:
    """Return one container's request; during a resize, the largest of wanted, given and actual."""
    wanted = _nano_list(container.resources.requests if container.resources else None)
    if status is None or status.resources is None:
        return wanted
    given: dict[str, int] = {} if infeasible else wanted
    _raise_to(given, _nano_list(status.resources.requests))
    _raise_to(given, _nano_list(status.allocated_resources))
    return given


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    """Return the statuses that count: of containers, and of restartable init containers."""
    restartable = {c.name for c in pod.spec.init_containers or () if c.restart_policy == "Always"}
    statuses = {s.name: s for s in pod.status.container_statuses or ()}
    statuses.update(
        (s.name, s) for s in pod.status.init_container_statuses or () if s.name in restartable
    )
    return statuses


def _resize_is_infeasible(pod: Pod) -> bool:
    return any(
        c.type == "PodResizePending" and c.reason == "Infeasible"
        for c in pod.status.conditions or ()
    )


def _nano_list(resources: ResourceList | None) -> dict[str, int]:
    return {name: nano(quantity) for name, quantity in (resources or {}).items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, value in floor.items():
        if value > total.get(name, -1):
            total[name] = value
