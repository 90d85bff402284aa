"""What a core answered, small enough to be part of a recording.

A recording holds every message, so a core that is told them again decides the same: that is the
promise. What was decided is in the recording too, so that the promise can be checked, and a
difference names its message. Events and log lines are left out: they say again what is said here.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.messages.outgoing import (
    AskExtender,
    Bind,
    ClearNomination,
    Evict,
    Instruction,
    Log,
    Nominate,
    PatchCondition,
    PatchObject,
)

_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class InstructionSummary(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One instruction: what, for which attempt at which pod, and what tells it from others."""

    verb: str
    uid: PodUid
    attempt: int
    detail: str

    def __str__(self) -> str:
        return f"{self.verb} {self.detail!r} (pod uid {self.uid}, attempt {self.attempt})"


def summaries_of(instructions: Iterable[Instruction]) -> tuple[InstructionSummary, ...]:
    """Return what was decided; empty for most messages."""
    summaries = []
    for instruction in instructions:
        told = _VERBS.get(type(instruction))
        if told is not None and not isinstance(instruction, Log):
            verb, detail = told
            summaries.append(
                InstructionSummary(verb, instruction.uid, instruction.attempt, detail(instruction))
            )
    return tuple(summaries)


def _condition(patch: PatchCondition) -> str:
    if patch.nominated_node_name is None:
        return f"{patch.reason}: {patch.message}"
    return f"{patch.reason}: {patch.message} (nominated: {patch.nominated_node_name})"


def _patch(patch: PatchObject) -> str:
    name = f"{patch.kind} {patch.object_namespace}/{patch.object_name}"
    return f"{name} {zlib.crc32(_encode(patch.patch)):08x}"


def _question(ask: AskExtender) -> str:
    return f"{ask.extender} {ask.verb} {zlib.crc32(_encode(ask.nodes)):08x}"


def _node(instruction: Bind | Nominate) -> str:
    return instruction.node


_VERBS: Final[Mapping[type[Instruction], tuple[str, Callable[[Any], str]]]] = {
    Bind: ("bind to", _node),
    PatchCondition: ("say", _condition),
    Nominate: ("nominate", _node),
    Evict: ("evict", lambda evict: evict.victim.uid),
    ClearNomination: ("take back the nomination of", lambda clear: clear.other.uid),
    PatchObject: ("patch", _patch),
    AskExtender: ("ask", _question),
}
