"""How much one object may ask for: `podLimits` and `nodeLimits` of SchedulerExtras.

The two types below are the only list of limits: a field's type says what is counted (`COUNTED`)
and which values are allowed, its default is the limit. The decoder, the JSON schema, the messages
to users and the metric's label come from there; a test holds docs/configuration.md against it.
How each number is counted is in `pod_counts` and `node_limits`.

A limit exists where a count multiplies the work of a decision (by nodes, by other pods' labels, by
another count) or is kept in memory per decision. The defaults are several times what large real
workloads have, and a pod that reaches all of them at once is decided within a fraction of a second
on 5,000 nodes. No object of 1.5 MiB, the most that etcd stores, reaches `_MOST`.
"""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import msgspec

from k8s_scheduler.api.config.rules import RULE, Configured, Int32, Range

COUNTED: Final = "counted"
_MOST: Final = 2_000_000
_RANGE: Final = Range(1, _MOST, f"must be between 1 and {_MOST}")


def _counted(what: str) -> msgspec.Meta:
    return msgspec.Meta(extra={RULE: _RANGE, COUNTED: what})


class PodLimits(Configured, frozen=True):
    """The most that a pod may have to be tried; past one of them it waits as a gated pod does."""

    affinity_terms: Annotated[Int32, _counted("pod affinity and anti-affinity terms")] = 256
    topology_spread_constraints: Annotated[Int32, _counted("topology spread constraints")] = 64
    selector_expressions: Annotated[Int32, _counted("expressions in label selectors")] = 2_000
    selector_values: Annotated[Int32, _counted("values and namespaces in label selectors")] = 5_000
    node_selector_terms: Annotated[Int32, _counted("node selector terms")] = 1_000
    node_selector_expressions: Annotated[Int32, _counted("expressions in node selectors")] = 2_000
    node_selector_values: Annotated[Int32, _counted("values in node selectors")] = 10_000
    resources: Annotated[Int32, _counted("requested resources")] = 256
    host_ports: Annotated[Int32, _counted("host ports")] = 2_000
    tolerations: Annotated[Int32, _counted("tolerations")] = 1_000
    volumes: Annotated[Int32, _counted("volumes")] = 1_000
    claims: Annotated[Int32, _counted("volume and resource claims")] = 256
    containers: Annotated[Int32, _counted("containers and init containers")] = 1_000
    labels: Annotated[Int32, _counted("labels")] = 1_000
    spec_bytes: Annotated[Int32, _counted("bytes that scheduling reads")] = 512 * 1024


class NodeLimits(Configured, frozen=True):
    """The most of a node that counts; of more, what `node_limits` says is left out."""

    resources: Annotated[Int32, _counted("allocatable resources")] = 256
    taints: Annotated[Int32, _counted("taints")] = 256


@dataclass(frozen=True, slots=True)
class Excess:
    """One limit that an object is past: its path in the configuration, and the two numbers."""

    limit: str
    what: str
    count: int
    allowed: int

    def __str__(self) -> str:
        return f"{self.count} {self.what}, more than the limit of {self.allowed} ({self.limit})"


class LimitField(NamedTuple):
    """A row of the list of limits."""

    name: str
    limit: str
    what: str
    default: int


def _fields(kind: type[Configured], section: str) -> tuple[LimitField, ...]:
    described = msgspec.inspect.type_info(kind)
    assert isinstance(described, msgspec.inspect.StructType)  # noqa: S101  for the type checker
    rows = []
    for field in described.fields:
        notes = field.type.extra if isinstance(field.type, msgspec.inspect.Metadata) else None
        what = (notes or {})[COUNTED]
        rows.append(LimitField(field.name, f"{section}.{field.encode_name}", what, field.default))
    return tuple(rows)


POD_LIMITS: Final = _fields(PodLimits, "podLimits")
NODE_LIMITS: Final = _fields(NodeLimits, "nodeLimits")


def excess(
    fields: tuple[LimitField, ...], allowed: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[Excess, ...]:
    return tuple(
        Excess(field.limit, field.what, count, most)
        for field, most, count in zip(fields, allowed, counts, strict=True)
        if count > most
    )
