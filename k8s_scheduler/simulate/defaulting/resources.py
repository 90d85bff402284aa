"""Defaults of resource lists: rounding, requests from limits, sums over a pod's containers.

Quantities stay text, as they came, wherever nothing has to be done about them. One that cannot be
read is left for the decoder.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from k8s_scheduler.api.quantity import QuantityError, nano

_NANO_PER_MILLI: Final = 10**6
_RESTARTABLE: Final = "Always"


def rounded(resources: Any) -> Any:
    """Return a resource list rounded up to thousandths, the finest the API keeps."""
    if not isinstance(resources, dict):
        return resources
    finer = {
        name: _in_millis(quantity) for name, quantity in resources.items() if _is_finer(quantity)
    }
    return resources | finer if finer else resources


def with_requests_from_limits(resources: Any) -> Any:
    """Return a container's resources, asking for what it is limited to where it does not say."""
    if not isinstance(resources, dict):
        return resources
    limits, requests = rounded(resources.get("limits")), rounded(resources.get("requests"))
    if isinstance(limits, dict) and (requests is None or isinstance(requests, dict)):
        requests = limits | (requests or {})
    if requests == resources.get("requests"):
        return resources
    return resources | {"requests": requests}


def with_pod_level_requests(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a pod's spec with complete requests of the pod as a whole, if it has any.

    Cpu and memory that the pod does not ask for are what its containers ask for; what is still
    missing is what the pod is limited to. A limit of huge pages, which cannot be overcommitted,
    is what the containers are limited to unless the pod says otherwise.
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return spec
    limits, requests = rounded(resources.get("limits")), rounded(resources.get("requests"))
    limits = limits if isinstance(limits, dict) else {}
    requests = requests if isinstance(requests, dict) else {}
    if not limits and not requests:
        return spec
    try:
        asked, limited = _aggregated(spec, "requests"), _aggregated(spec, "limits")
    except (QuantityError, TypeError, AttributeError):
        # Not of the form of a pod: decoding says so.
        return spec
    huge = {
        name: _text(total)
        for name, total in limited.items()
        if _is_huge_page(name) and name not in requests
    }
    plain = {name: _text(total) for name, total in asked.items() if name in ("cpu", "memory")}
    supported = {
        name: quantity
        for name, quantity in (huge | limits).items()
        if name in ("cpu", "memory") or _is_huge_page(name)
    }
    return spec | {"resources": resources | {"requests": supported | plain | requests}}


def _aggregated(spec: dict[str, Any], part: str) -> dict[str, int]:
    total: dict[str, int] = {}
    for _, amounts in _amounts(spec.get("containers"), part):
        _add(total, amounts)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container, amounts in _amounts(spec.get("initContainers"), part):
        if container.get("restartPolicy") == _RESTARTABLE:
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise_to(peak, sidecars)
        else:
            _add(amounts, sidecars)
            _raise_to(peak, amounts)
    _raise_to(total, peak)
    return total


def _amounts(
    containers: Iterable[dict[str, Any]] | None, part: str
) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
    for container in containers or ():
        resources = container.get("resources") or {}
        yield container, {name: nano(text) for name, text in (resources.get(part) or {}).items()}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], floor: dict[str, int]) -> None:
    for name, value in floor.items():
        total[name] = max(value, total.get(name, value))


def _is_huge_page(resource: str) -> bool:
    return resource.startswith("hugepages-")


def _is_finer(quantity: Any) -> bool:
    if isinstance(quantity, str) and quantity.isdigit():
        return False
    try:
        return bool(nano(quantity) % _NANO_PER_MILLI)
    except (QuantityError, TypeError):
        return False


def _in_millis(quantity: str | float) -> str:
    return f"{-(-nano(quantity) // _NANO_PER_MILLI)}m"


def _text(nano_units: int) -> str:
    return f"{-(-nano_units // _NANO_PER_MILLI)}m"
