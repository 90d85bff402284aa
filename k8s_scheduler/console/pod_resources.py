"""What every pod asks for and is limited to, as kube-scheduler's `/metrics/resources` shows it.

A series for each pod and resource, so the page of a large cluster has hundreds of thousands of
lines. It is made when a client asks for it, from the pods as they are then, in pieces that are
sent as they are made; nothing is kept between two scrapes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.pod_totals import total_limits, total_requests
from k8s_scheduler.api.quantity import NANO, QuantityError
from k8s_scheduler.lib.slices import SliceMeter

_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
# Of amounts, in nano-units, with the factor that makes them whole ones.
_UNITS: Final = ((NANO, 1.0), (10**6, 1e-3), (10**3, 1e-6), (1, 1e-9))
# How many pods are looked at between two looks at the slice's clock.
_CHECK_EVERY: Final = 8
# Longer than a turn of the loop: a task that became ready meanwhile goes first.
_PAUSE_SECONDS: Final = 0.001
_ABOUT: Final = (
    "This shows the resource usage the scheduler and kubelet expect per pod for resources along "
    "with the unit for the resource if any."
)


@dataclass(frozen=True, slots=True)
class _Family:
    """One of the two metrics: its name, its help, and what it tells of a pod in nano-units."""

    name: str
    help: str
    amounts: Callable[[Pod], dict[str, int]]

    @property
    def header(self) -> str:
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} gauge\n"


_FAMILIES: Final = (
    _Family(
        "kube_pod_resource_limit",
        "[STABLE] Resources limit for workloads on the cluster, broken down by pod. " + _ABOUT,
        total_limits,
    ),
    _Family(
        "kube_pod_resource_request",
        "[STABLE] Resources requested by workloads on the cluster, broken down by pod. " + _ABOUT,
        total_requests,
    ),
)


async def resource_page(pods: Collection[Pod], meter: SliceMeter) -> AsyncIterator[bytes]:
    """Yield the page in pieces, each made in one slice of the loop's time."""
    part = meter.start("metrics/resources")
    made: list[str] = []
    for count, lines in enumerate(_pod_by_pod(pods)):
        made.append(lines)
        if count % _CHECK_EVERY == 0 and part.full():
            piece = "".join(made).encode()
            made.clear()
            part.finish()
            if piece:
                yield piece
            await asyncio.sleep(_PAUSE_SECONDS)
            part.restart()
    piece = "".join(made).encode()
    part.finish()
    if piece:
        yield piece


def _pod_by_pod(pods: Collection[Pod]) -> Iterator[str]:
    """Yield the lines of one pod after the other, metric by metric; a pod may have none.

    A metric that no pod has is not on the page at all.
    """
    for family in _FAMILIES:
        header = family.header
        for pod in pods:
            lines = _lines_of(pod, family)
            if lines and header:
                lines, header = header + lines, ""
            yield lines


def _lines_of(pod: Pod, family: _Family) -> str:
    metadata, spec = pod.metadata, pod.spec
    if spec.node_name and pod.status.phase in _FINISHED:
        return ""
    try:
        amounts = family.amounts(pod)
    except QuantityError:
        # A pod that cannot be read is shown no more than it is scheduled; the others are.
        return ""
    priority = "" if spec.priority is None else spec.priority
    start = (
        f'{family.name}{{namespace="{metadata.namespace}",node="{spec.node_name}"'
        f',pod="{metadata.name}",priority="{priority}",resource="'
    )
    # The API server checks all other names, but not this one.
    scheduler = spec.scheduler_name.translate(_ESCAPES)
    return "".join(
        f'{start}{name}",scheduler="{scheduler}",unit="{_unit(name)}"}} {_number(amount)}\n'
        for name, amount in amounts.items()
        if amount
    )


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


@lru_cache(maxsize=4096)
def _number(nano_units: int) -> str:
    """Return an amount as a Go program shows it, to the last digit: multiplied, not divided."""
    unit, factor = next(known for known in _UNITS if nano_units % known[0] == 0)
    exact = Decimal(repr(nano_units // unit * factor)).normalize()
    if -4 <= exact.adjusted() < 6:
        return f"{exact:f}"
    mantissa, _, _ = f"{exact:e}".partition("e")
    return f"{mantissa}e{exact.adjusted():+03d}"
