"""What a plugin is: a name, what it reads, and methods at extension points.

A plugin takes part in the points whose methods it has; names and meaning are kube-scheduler's.

* `pre_enqueue(pod) -> str | None`: why the pod may not enter the queue yet, or None.
* `sort_key(queued) -> tuple`: QueueSort; smaller is sooner.
* `prepare(pod, rows) -> term | SKIP | Reject | Narrow`: PreFilter, once per decision and before any
  filter, with all nodes in view. A term is what `filter` needs of the pod; `SKIP` means that this
  plugin has nothing to reject; `Reject` that no node can do; `Narrow` that only named nodes can.
* `filter(term, rows) -> codes`: a code per row, 0 where the node passes. Called only with rows
  that passed the plugins before it.
* `pre_score(pod, rows) -> term | SKIP` with the feasible nodes in view, `score(term, rows) -> int64
  per row` in 0..100 after `normalize(scores)`, which a plugin may leave out.
* `bind` is a marker: the plugin hands the pod over by a Binding.

Whole columns in, whole columns out: no Python loop over nodes.
"""

import enum
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.dependencies import Row
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views import Codes, PodView, RowsView, Scores
from k8s_scheduler.core.state.changes import Change


class Skip(enum.Enum):
    """The answer of a plugin that has nothing to say about a pod."""

    SKIP = "Skip"


SKIP: Final = Skip.SKIP

# What a plugin prepares is its own business; only its `filter` or `score` looks inside.
Term: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Reject:
    """PreFilter's no: whatever the node, the pod can't go there."""

    reasons: tuple[Reason, ...]
    resolvable: bool


@dataclass(frozen=True, slots=True)
class Narrow:
    """PreFilter's node set: only these nodes come into question, by name and sorted."""

    term: Term
    names: tuple[NodeName, ...]


Prepared: TypeAlias = Term | Skip | Reject | Narrow

MAX_SCORE = 100


class Plugin(Protocol):
    """What every plugin has. Factories are called with the plugin's arguments."""

    name: ClassVar[str]
    reasons: ClassVar[tuple[Reason, ...]]
    depends_on: ClassVar[tuple[Row, ...]]
    # Events that may help a pod this plugin rejected.
    helped_by: ClassVar[Change]


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Keeps pods out of the queue."""

    def pre_enqueue(self, pod: Pod) -> str | None:
        """Return why the pod has to wait, or None."""
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
class QueueSortPlugin(Protocol):
    """Orders the queue."""

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[float, ...]:
        """Return a key; the smallest is popped first."""
        ...


@runtime_checkable
class BindPlugin(Protocol):
    """Hands the chosen node to the API server."""

    def binds(self, pod: Pod) -> bool:
        """Return whether this plugin binds the pod; the first that does, does."""
        ...
