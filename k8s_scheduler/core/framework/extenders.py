"""Extenders: services that filter and score nodes, asked in the middle of a decision.

What an extender is asked and answers is data; the shell carries the question.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.reasons import Reason, Verdict

# The name under which upstream counts rejections by extenders.
EXTENDER: Final = "Extender"
# Extenders score from 0 to 10, plugins from 0 to 100.
SCALE: Final = 10


class ConfiguredExtender(Protocol):
    """One extender, as the configuration has it. No two have the same name."""

    @property
    def name(self) -> str: ...

    @property
    def filters(self) -> bool:
        """Whether it is asked which nodes can take a pod."""

    @property
    def prioritizes(self) -> bool:
        """Whether it is asked which nodes it prefers."""

    @property
    def weight(self) -> int: ...

    @property
    def ignorable(self) -> bool:
        """Whether a decision goes on without its answer."""

    def is_interested(self, pod: Pod) -> bool:
        """Return whether it has a say about a pod."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What extenders have said so far: where the pod may go, why not elsewhere, where it should."""

    allowed: tuple[NodeName, ...]
    refused: Mapping[NodeName, Verdict] = field(default_factory=dict)
    bonus: Mapping[NodeName, int] = field(default_factory=dict)


def refusal(text: str, *, resolvable: bool) -> Verdict:
    """Return an extender's no to a node."""
    reason = Reason(code=f"{EXTENDER}/Refused", text=text)
    return Verdict(EXTENDER, (reason,), resolvable)
