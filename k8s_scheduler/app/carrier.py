"""Carries out the core's instructions: binds, conditions, events, log lines."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    Instruction,
    Log,
    PatchCondition,
    RecordEvent,
    Severity,
)
from k8s_scheduler.kube.binding import BindRequest
from k8s_scheduler.kube.conditions import ConditionPatch
from k8s_scheduler.kube.dispatcher import Dispatcher
from k8s_scheduler.kube.events import EventNote
from k8s_scheduler.kube.recorder import EventRecorder

logger = logging.getLogger("k8s_scheduler.core")

_LEVELS = {
    Severity.DEBUG: logging.DEBUG,
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
}


class Carrier:
    """The hands of the core."""

    def __init__(self, dispatcher: Dispatcher, recorder: EventRecorder) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._carry: dict[type[Instruction], Callable[[Any], None]] = {
            Bind: self._bind,
            PatchCondition: self._patch,
            RecordEvent: self._record,
            Log: self._log,
        }

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Hand each instruction to whoever does it; never waits."""
        for instruction in instructions:
            self._carry[type(instruction)](instruction)

    def bind_room(self) -> int:
        """Return how many more binds are welcome now."""
        return self._dispatcher.bind_room()

    def _bind(self, bind: Bind) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            fields = {"pod": _pod(bind), "node": bind.node, "attempt": bind.attempt}
            logger.debug("Attempting to bind pod to node", extra={"fields": fields})
        self._dispatcher.submit_bind(
            BindRequest(
                uid=bind.uid,
                namespace=bind.namespace,
                name=bind.name,
                node=bind.node,
                attempt=bind.attempt,
            )
        )

    def _patch(self, patch: PatchCondition) -> None:
        self._dispatcher.submit_condition(
            ConditionPatch(
                uid=patch.uid,
                namespace=patch.namespace,
                name=patch.name,
                reason=patch.reason,
                message=patch.message,
                observed_generation=patch.observed_generation,
                last_transition_time=patch.last_transition_time,
            )
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
                reporting_controller=event.scheduler_name,
            )
        )

    def _log(self, line: Log) -> None:
        logger.log(_LEVELS[line.severity], line.event, extra={"fields": line.fields})


def _pod(instruction: Bind | RecordEvent) -> str:
    return f"{instruction.namespace}/{instruction.name}"
