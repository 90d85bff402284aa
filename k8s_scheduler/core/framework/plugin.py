"""What a plugin is: a name, what it reads, and methods at extension points.

A plugin takes part in the points whose methods it has; names and meaning are kube-scheduler's.
Judging nodes is for shapes of pods, whole columns in and whole columns out, no Python loop over
nodes:

* `prepare(pod, rows) -> term | SKIP | Reject | Narrow`: PreFilter, once per decision and before
  any filter, with all nodes in view. A term is what `filter` needs of the pod; `SKIP` means that
  this plugin has nothing to reject; `Reject` that no node can do; `Narrow` that only named nodes
  can.
* `add_pod(term, pod, rows) -> term`, `remove_pod(...)`: PreFilter's extensions. What the term
  would be with another pod more or less on the one row in view. For plugins whose terms count
  pods; terms are never changed in place.
* `filter(term, rows) -> codes`: a code per row, 0 where the node passes. Called only with rows
  that passed the plugins before it.
* `pre_score(pod, rows) -> term | SKIP` with the feasible nodes in view, `score(term, rows) -> int64
  per row` in 0..100 after `normalize(scores)`, which a plugin may leave out.

Everything else is about one pod and one attempt, and gets the attempt's `CycleState`:

* `pre_enqueue(pod) -> str | None`: why the pod may not enter the queue yet, or None.
* `sort_key(pod, timestamp) -> tuple`: QueueSort; smaller is sooner.
* `post_filter(state, pod, unplaced) -> PostFilterResult`: what to do where no node passed.
* `reserve(state, pod, node) -> Rejection | None` and `unreserve(state, pod, node)`.
* `permit(state, pod, node) -> Rejection | Wait | None`.
* `pre_bind(state, pod, node) -> tuple of instructions` that must have succeeded before the Bind.
* `binds(pod) -> bool`: Bind; the first that says yes hands the pod over.
* `post_bind(state, pod, node)`: told about success.

Hints need not be written: what a plugin declares to read says which events may help a pod that it
rejected, and the engine then judges by the very same filter whether they did. A plugin that
rejects at Reserve or Permit is asked again after any event.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.pod_view import PodView
from k8s_scheduler.core.framework.preemption import PostFilterResult, Unplaced
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Codes, RowsView, Scores


class Skip(enum.Enum):
    """The answer of a plugin that has nothing to say about a pod."""

    SKIP = "Skip"


SKIP: Final = Skip.SKIP

# What a plugin prepares is its own business; only its own methods look inside.
Term: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Reject:
    """PreFilter's no: whatever the node, the pod can't go there.

    `term` is what `filter` would need all the same, where the profile lets the plugin filter but
    not speak before; without one, the rejection then stands for every node.
    """

    reasons: tuple[Reason, ...]
    resolvable: bool
    term: Term | None = None


@dataclass(frozen=True, slots=True)
class Narrow:
    """PreFilter's node set: only these nodes come into question, by name and sorted."""

    term: Term
    names: tuple[NodeName, ...]


Prepared: TypeAlias = Term | Skip | Reject | Narrow


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reserve's or Permit's no, for this attempt."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's not yet: somebody allows or rejects the pod later, or the time runs out."""

    seconds: float


MAX_SCORE = 100


class Plugin(Protocol):
    """What every plugin has. Factories are called with the plugin's arguments."""

    name: ClassVar[str]
    reasons: ClassVar[tuple[Reason, ...]]
    depends_on: ClassVar[tuple[Dependency, ...]]


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Keeps pods out of the queue."""

    def pre_enqueue(self, pod: Pod) -> str | None:
        """Return why the pod has to wait, or None."""
        ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the queue."""

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[float, ...]:
        """Return a key; the smallest is popped first."""
        ...


@runtime_checkable
class FilterPlugin(Protocol):
    """Rejects nodes."""

    def prepare(self, pod: PodView, rows: RowsView) -> Prepared:
        """Return what `filter` needs of the pod; `rows` are all nodes."""
        ...

    def filter(self, term: Term, rows: RowsView) -> Codes:
        """Return a code per row."""
        ...


@runtime_checkable
class CountingPlugin(Protocol):
    """A filter whose term counts pods."""

    def add_pod(self, term: Term, pod: PodView, rows: RowsView) -> Term:
        """Return the term with one more pod on the row in view."""
        ...

    def remove_pod(self, term: Term, pod: PodView, rows: RowsView) -> Term:
        """Return the term with one pod less on the row in view."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Makes room where there is none."""

    def post_filter(self, state: CycleState, pod: Pod, unplaced: Unplaced) -> PostFilterResult:
        """Return what can be done for a pod that no node takes."""
        ...


@runtime_checkable
class ScorePlugin(Protocol):
    """Prefers nodes."""

    def pre_score(self, pod: PodView, rows: RowsView) -> Term | Skip:
        """Return what `score` needs of the pod; `rows` are the feasible nodes."""
        ...

    def score(self, term: Term, rows: RowsView) -> Scores:
        """Return a score per row."""
        ...


@runtime_checkable
class NormalizePlugin(Protocol):
    """Brings its own raw scores into 0..100."""

    def normalize(self, scores: Scores) -> Scores:
        """Return the scores, scaled."""
        ...


@runtime_checkable
class ReservePlugin(Protocol):
    """Keeps something for a pod on its chosen node."""

    def reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Rejection | None:
        """Take what the pod needs, or say why not."""
        ...

    def unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> None:
        """Give it back; also asked of plugins whose `reserve` was not reached."""
        ...


@runtime_checkable
class PermitPlugin(Protocol):
    """Has the last word before binding."""

    def permit(self, state: CycleState, pod: Pod, node: NodeName) -> Rejection | Wait | None:
        """Let the pod go on, hold it, or send it back."""
        ...


@runtime_checkable
class PreBindPlugin(Protocol):
    """Has something to get done before a pod may be bound."""

    def pre_bind(self, state: CycleState, pod: Pod, node: NodeName) -> tuple[Any, ...]:
        """Return the instructions that have to succeed first."""
        ...


@runtime_checkable
class BindPlugin(Protocol):
    """Hands the chosen node to the API server."""

    def binds(self, pod: Pod) -> bool:
        """Return whether this plugin binds the pod; the first that does, does."""
        ...


@runtime_checkable
class PostBindPlugin(Protocol):
    """Wants to know what was bound."""

    def post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> None:
        """Take note."""
        ...


# Which protocol belongs to which point of the configuration.
POINTS: Mapping[str, type[Any]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": FilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": ScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
