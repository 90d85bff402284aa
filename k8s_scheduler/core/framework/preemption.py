"""What PostFilter is told and what it answers.

A plugin that makes room does not reach into the engine: it is handed an `UnplacedPod`, which can
try out evictions on the state as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.reasons import Verdict


class DryRunError(Exception):
    """A dry run came to no sensible end."""


class SearchSuspended(BaseException):
    """Enough was tried for now; the search goes on later.

    It goes through plugins that catch every `Exception`. The plugin is asked again from the start,
    as often as it takes, so it must do nothing but think before it answers.
    """


@dataclass(frozen=True, slots=True)
class Victims:
    """Who would have to leave a node, most important first; how many against a budget."""

    pods: tuple[Pod, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter plugin has to say.

    `nominated` is the node where the pod will get room, None if there is none to promise;
    `clear` asks to withdraw an earlier promise. `message` goes to event and condition.
    """

    message: str
    nominated: NodeName | None = None
    victims: Victims | None = None
    clear: bool = False


class UnplacedPod(Protocol):
    """A pod that no node takes, and ways to try what would help."""

    def verdict_on(self, node: NodeName) -> Verdict | None:
        """Return why a node does not take the pod; None for a node that is not there."""

    def pods_on(self, node: NodeName) -> tuple[Pod, ...]: ...

    def resolvable_count(self) -> int:
        """Return how many nodes might take the pod if others left."""

    def nodes_with_lesser(self) -> tuple[NodeName, ...]:
        """Return those of them with pods that are less important, in the table's order."""

    def node_count(self) -> int: ...

    def dry_run(self, node: NodeName) -> Victims | Verdict:
        """Return the victims on a node, or why evictions there would not help.

        Raises DryRunError where a plugin fails or no pod would have to leave after all. May raise
        SearchSuspended, which is not for the plugin to catch.
        """

    def seed(self) -> int:
        """Return a number that is another one at each attempt, for fairness among equals."""


@runtime_checkable
class PreemptionPlugin(Protocol):
    """A PostFilter plugin whose thinking can be laid open, step by step."""

    def not_eligible(self, pod: Pod, unplaced: UnplacedPod) -> str:
        """Return why the pod may not preempt now; empty if it may."""

    def candidates(
        self, unplaced: UnplacedPod, wanted: int
    ) -> tuple[dict[NodeName, Victims], dict[NodeName, Verdict]]:
        """Return nodes with their victims, at least `wanted` if there are, and who can't help."""

    def pick(self, candidates: Mapping[NodeName, Victims], seed: int) -> NodeName:
        """Return the node where the least is lost."""
