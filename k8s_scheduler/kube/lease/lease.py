"""Leases of coordination.k8s.io/v1: the wire type, and how one is read and written.

A write always carries the resourceVersion it was based on, so the server refuses it (409) when
another process wrote in between; that is the whole mutual exclusion. Metadata is written back as it
was read, so that labels and owners that others set there stay. What a holder says of itself is
added to it (`metadata`).
"""

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from k8s_scheduler.kube.errors import NotFound, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response, Transport
from k8s_scheduler.kube.lease.metadata import NO_NOTES, LeaseNotes, with_notes
from k8s_scheduler.kube.timestamps import micro_time

JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseConfig:
    """The lease, our identity, and the durations of the election."""

    name: str
    namespace: str
    identity: str
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise ValueError("; ".join(problems))

    def _problems(self) -> list[str]:
        lease, renew = self.lease_duration_seconds, self.renew_deadline_seconds
        retry = self.retry_period_seconds
        checks = {
            "name must not be empty": bool(self.name),
            "namespace must not be empty": bool(self.namespace),
            "identity must not be empty": bool(self.identity),
            "leaseDuration must be greater than zero": lease > 0,
            "renewDeadline must be greater than zero": renew > 0,
            "retryPeriod must be greater than zero": retry > 0,
            "leaseDuration must be greater than renewDeadline": lease > renew,
            f"renewDeadline must be greater than retryPeriod*{JITTER_FACTOR}": (
                renew > retry * JITTER_FACTOR
            ),
        }
        return [problem for problem, holds in checks.items() if not holds]


class LeaseSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The holder of the lease. Times are texts: they are never compared with our clock."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    metadata: msgspec.Raw
    spec: LeaseSpec | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The holder of the lease at one version; not enough to base a write on."""

    resource_version: str
    spec: LeaseSpec

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


@dataclass(frozen=True, slots=True)
class Lease(Record):
    """A lease as the server has it."""

    metadata: msgspec.Raw


_decode_wire = msgspec.json.Decoder(_Wire).decode
_decode_metadata = msgspec.json.Decoder(_Metadata).decode


def held_by(config: LeaseConfig, lease: Lease | None, *, wall_ns: int) -> LeaseSpec:
    """Return the spec that makes or keeps us the holder."""
    now = micro_time(wall_ns)
    old = lease.spec if lease is not None else LeaseSpec()
    ours = lease is not None and lease.holder == config.identity
    transitions = old.lease_transitions or 0
    if lease is not None and not ours:
        transitions += 1
    return LeaseSpec(
        holder_identity=config.identity,
        # Rounded up: others count by this number, so it must not be shorter than ours.
        lease_duration_seconds=math.ceil(config.lease_duration_seconds),
        acquire_time=old.acquire_time if ours and old.acquire_time else now,
        renew_time=now,
        lease_transitions=transitions,
        strategy=old.strategy,
        preferred_holder=old.preferred_holder,
    )


def released(lease: Lease, *, wall_ns: int) -> LeaseSpec:
    """Return the spec that gives the lease back, free to be taken at once."""
    now = micro_time(wall_ns)
    return LeaseSpec(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=now,
        renew_time=now,
        lease_transitions=lease.spec.lease_transitions,
        strategy=lease.spec.strategy,
        preferred_holder=lease.spec.preferred_holder,
    )


class LeaseStore:
    """Reads and writes one lease; every answer but a success is an exception."""

    def __init__(self, transport: Transport, *, namespace: str, name: str) -> None:
        self._transport = transport
        self._identity = {"name": name, "namespace": namespace}
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    async def read(self, timeout_seconds: float) -> Lease | None:
        path = f"{self._path}/{self._identity['name']}"
        response = await self._transport.request("GET", path, timeout_seconds=timeout_seconds)
        try:
            return _lease(response)
        except NotFound:
            return None

    async def write(
        self,
        lease: Lease | None,
        spec: LeaseSpec,
        *,
        timeout_seconds: float,
        notes: LeaseNotes = NO_NOTES,
    ) -> Lease:
        """Replace the lease as it was read, or create it when there was none; with notes on it."""
        create = lease is None
        identity = msgspec.Raw(msgspec.json.encode(self._identity))
        metadata = with_notes(identity if lease is None else lease.metadata, notes)
        body = msgspec.json.encode(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata,
                "spec": spec,
            }
        )
        response = await self._transport.request(
            "POST" if create else "PUT",
            self._path if create else f"{self._path}/{self._identity['name']}",
            body=body,
            timeout_seconds=timeout_seconds,
        )
        return _lease(response)


def _lease(response: Response) -> Lease:
    if not response.ok:
        raise response.error()
    try:
        wire = _decode_wire(response.body)
        metadata = _decode_metadata(wire.metadata)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OutcomeUnknown(f"the answer is not a lease: {error}") from error
    # A copy, so that the whole answer is not kept alive by its metadata.
    return Lease(metadata.resource_version, wire.spec or LeaseSpec(), wire.metadata.copy())


def annotation_of(lease: Lease, name: str) -> str:
    annotations = _metadata(lease).get("annotations") or {}
    found = annotations.get(name, "")
    return found if isinstance(found, str) else ""


def with_annotation(lease: Lease, name: str, text: str) -> Lease:
    """Return the lease with the annotation set, or removed if the text is empty; sends nothing."""
    metadata = _metadata(lease)
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != name}
    if text:
        annotations[name] = text
    metadata["annotations"] = annotations
    return Lease(lease.resource_version, lease.spec, msgspec.Raw(msgspec.json.encode(metadata)))


def _metadata(lease: Lease) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(lease.metadata)
    return found
