"""Carries out the core's instructions: binds, conditions, events, log lines."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    ClearNomination,
    Evict,
    Instruction,
    Log,
    Nominate,
    PatchCondition,
    PatchObject,
    PodReference,
    ReadPod,
    RecordEvent,
    Request,
    Severity,
)
from k8s_scheduler.kube.events.event import EventNote
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.kube.write.binding import BindRequest
from k8s_scheduler.kube.write.conditions import ConditionPatch
from k8s_scheduler.kube.write.dispatcher import Dispatcher
from k8s_scheduler.kube.write.pod_reader import PodReader, ReadRequest
from k8s_scheduler.kube.write.write_lane import WriteLane
from k8s_scheduler.kube.write.write_requests import (
    WriteCall,
    WriteRequest,
    eviction_calls,
    nomination_calls,
    object_calls,
)

logger = logging.getLogger("k8s_scheduler.core")

_LEVELS = {
    Severity.DEBUG: logging.DEBUG,
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
}


class Carrier:
    """Carries out instructions by handing them to the lanes of writes, the recorder and the log."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        recorder: EventRecorder,
        writes: WriteLane,
        reader: PodReader,
        *,
        wall_clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.dispatcher = dispatcher
        self._recorder = recorder
        self._writes = writes
        self._reader = reader
        self._wall_clock_ns = wall_clock_ns
        self._carry: dict[type[Instruction], Callable[[Any], None]] = {
            Bind: self._bind,
            PatchCondition: self._patch,
            Nominate: self._nominate,
            RecordEvent: self._record,
            Log: self._log,
            Evict: self._evict,
            ClearNomination: self._clear_nomination,
            PatchObject: self._patch_object,
            ReadPod: self._read,
        }

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Hand each instruction to the part that carries it out; never waits."""
        for instruction in instructions:
            self._carry[type(instruction)](instruction)

    def _bind(self, bind: Bind) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            fields = {"pod": _pod(bind), "node": bind.node, "attempt": bind.attempt}
            logger.debug("Attempting to bind pod to node", extra={"fields": fields})
        self.dispatcher.submit_bind(
            BindRequest(
                uid=bind.uid,
                namespace=bind.namespace,
                name=bind.name,
                node=bind.node,
                attempt=bind.attempt,
            )
        )

    def _patch(self, patch: PatchCondition) -> None:
        self.dispatcher.submit_condition(
            ConditionPatch(
                uid=patch.uid,
                namespace=patch.namespace,
                name=patch.name,
                reason=patch.reason,
                message=patch.message,
                observed_generation=patch.observed_generation,
                last_transition_time=patch.last_transition_time,
                nominated_node_name=patch.nominated_node_name,
            )
        )

    def _nominate(self, nominate: Nominate) -> None:
        self.dispatcher.submit_condition(
            ConditionPatch(
                uid=nominate.uid,
                namespace=nominate.namespace,
                name=nominate.name,
                nominated_node_name=nominate.node,
            )
        )

    def _evict(self, evict: Evict) -> None:
        calls = eviction_calls(
            namespace=evict.victim.namespace,
            name=evict.victim.name,
            uid=evict.victim.uid,
            scheduler_name=evict.scheduler_name,
            observed_generation=evict.observed_generation,
            wall_ns=self._wall_clock_ns(),
        )
        self._submit(evict, evict.victim.namespace, calls)

    def _clear_nomination(self, clear: ClearNomination) -> None:
        other = clear.other
        calls = nomination_calls(namespace=other.namespace, name=other.name, uid=other.uid)
        self._submit(clear, other.namespace, calls)

    def _patch_object(self, patch: PatchObject) -> None:
        calls = object_calls(
            resource_of(patch.kind),
            namespace=patch.object_namespace,
            name=patch.object_name,
            patch=patch.patch,
        )
        self._submit(patch, patch.object_namespace, calls)

    def _read(self, read: ReadPod) -> None:
        self._reader.submit(ReadRequest(read.uid, read.namespace, read.name, read.attempt))

    def _submit(self, request: Request, namespace: str, calls: tuple[WriteCall, ...]) -> None:
        self._writes.submit(
            WriteRequest(request.uid, request.attempt, request.request, namespace, calls)
        )

    def _record(self, event: RecordEvent) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            fields = {"pod": _pod(event), "note": event.note, "attempt": event.attempt}
            logger.debug(event.reason, extra={"fields": fields})
        self._recorder.record(
            EventNote(
                regarding=ObjectReference(
                    kind="Pod", name=event.name, namespace=event.namespace, uid=event.uid
                ),
                type=event.type.value,
                reason=event.reason,
                action=event.action,
                note=event.note,
                related=None if event.related is None else _reference(event.related),
                reporting_controller=event.scheduler_name,
            )
        )

    def _log(self, line: Log) -> None:
        logger.log(_LEVELS[line.severity], line.event, extra={"fields": line.fields})


def _reference(pod: PodReference) -> ObjectReference:
    return ObjectReference(kind="Pod", name=pod.name, namespace=pod.namespace, uid=pod.uid)


def _pod(instruction: Bind | RecordEvent) -> str:
    return f"{instruction.namespace}/{instruction.name}"
