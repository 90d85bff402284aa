"""What a plugin is: a name, what it reads, and methods at extension points.

A plugin takes part in the points whose methods it has; names and meaning are kube-scheduler's.
Judging nodes is for shapes of pods, whole columns in and whole columns out, no Python loop over
nodes:

* `prepare(pod, rows) -> term | SKIP | Reject | Narrow`: PreFilter, once per decision and before
  any filter, with all nodes in view. A term is what `filter` needs of the pod; `SKIP` means that
  this plugin has nothing to reject; `Reject` that no node can do; `Narrow` that only named nodes
  can.
* `filter(term, rows) -> codes`: a code per row, 0 where the node passes. Called only with rows
  that passed the plugins before it.
  `dry_run_plugins` has what a filter may offer besides, for preemption and nominated pods.
* `pre_score(pod, rows) -> term | SKIP | Same` with the feasible nodes in view; `score(term, rows)
  -> int64 per row`, in 0..100 after `normalize(scores)`, which a plugin may leave out. `Same` is
  the score of every node, and nothing more is asked.

Everything else is about one pod and one attempt, and gets the attempt's `CycleState`:

* `pre_enqueue(pod) -> str | None`: why the pod may not enter the queue yet, or None.
* `sort_key(pod, timestamp) -> tuple`: QueueSort; smaller is sooner.
* `post_filter(state, pod, unplaced) -> PostFilterResult`: what to do where no node passed.
* `reserve(state, pod, rows) -> Reservation | Rejection | None`, with the chosen node in view: what
  the pod takes besides room on the node. `unreserve(state, pod)` is told when it is given back.
* `permit(state, pod, node) -> Rejection | Wait | None`. A plugin that makes pods wait is `attach`ed
  to the waiting pods, and allows or rejects them from any of its methods.
* `pre_bind(state, pod, rows) -> PreBinding | None`: what must have been written before the Bind;
  `pre_bound(state, pod, rows) -> bool` then says whether all is as it should be. It is asked again
  when something has changed that it has read, until the time is over: objects, the pod, the node.
  (One that reads no object is asked whenever any changes, and every second.) It raises if that
  can't become true any more. The kinds of objects it has patched are declared in `writes`.
* `binds(pod) -> bool`: Bind; the first that says yes hands the pod over.
* `post_bind(state, pod, node)`: told about success.

A plugin that takes arguments names their type, a `PluginArgs` with its defaults and rules, in
`arguments`, and is made with a value of it.

Hints need not be written: what a plugin declares to read says which events may help a pod that it
rejected, and the engine then judges by the very same filter whether they did. A plugin that
rejects at Reserve or Permit and filters nothing is asked again after any event.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.framework.cycle_state import CycleState
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.preemption import PostFilterResult, UnplacedPod
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import Codes, RowsView, Scores


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


@dataclass(frozen=True, slots=True)
class Same:
    """PreScore's answer for all nodes at once: each gets this score, already normalised."""

    score: int


Prepared: TypeAlias = Term | Skip | Reject | Narrow


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reserve's or Permit's no, for this attempt."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Objects as they will be once the pod is bound; decisions see them so until they are."""

    objects: tuple[tuple[Kind, ClusterObject], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's not yet: the plugin allows or rejects the pod later, or the time runs out."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """A change to an object, to be merged into it."""

    kind: Kind
    namespace: str
    name: str
    patch: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreBinding:
    """What has to be written before a pod may be bound, and how long all of it may take."""

    patches: tuple[ObjectPatch, ...]
    timeout_seconds: float
    # What is being done, for texts about its failure.
    errand: str


class WaitingPods(Protocol):
    """The pods that wait for a permit."""

    def uids(self, plugin: str) -> tuple[PodUid, ...]:
        """Return the pods that wait for a plugin's word, longest waiting first."""

    def pod(self, uid: PodUid) -> Pod | None: ...

    def allow(self, uid: PodUid, plugin: str) -> None:
        """Let a pod go on, as far as a plugin is concerned."""

    def reject(self, uid: PodUid, plugin: str, message: str) -> None:
        """End the attempt; the pod returns to the queue."""


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


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the queue."""

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[float, ...]:
        """Return a key; the smallest is popped first."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Rejects nodes."""

    def prepare(self, pod: PodView, rows: RowsView) -> Prepared:
        """Return what `filter` needs of the pod; `rows` are all nodes."""

    def filter(self, term: Term, rows: RowsView) -> Codes: ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Makes room where there is none."""

    def post_filter(self, state: CycleState, pod: Pod, unplaced: UnplacedPod) -> PostFilterResult:
        """Return what can be done for a pod that no node takes."""


@runtime_checkable
class ScorePlugin(Protocol):
    """Prefers nodes."""

    def pre_score(self, pod: PodView, rows: RowsView) -> Term | Skip | Same:
        """Return what `score` needs of the pod; `rows` are the feasible nodes."""

    def score(self, term: Term, rows: RowsView) -> Scores: ...


@runtime_checkable
class GroupingPlugin(Protocol):
    """A filter or score that may be asked about one row for all that look alike to it.

    By saying so a plugin promises: what it says of a row follows from the values that it reads of
    that row, and of all the rows in view only from which values occur there, and on how many nodes
    (`RowsView.count_nodes`), but not from how many rows they are.
    """

    judges_by_group: ClassVar[bool]


@runtime_checkable
class NormalizePlugin(Protocol):
    """Brings its own raw scores into 0..100."""

    def normalize(self, scores: Scores) -> Scores: ...


@runtime_checkable
class ReservePlugin(Protocol):
    """Keeps something for a pod on its chosen node."""

    def reserve(
        self, state: CycleState, pod: Pod, rows: RowsView
    ) -> Reservation | Rejection | None:
        """Say what the pod takes, or why it can't; the chosen node is in view."""

    def unreserve(self, state: CycleState, pod: Pod) -> None:
        """Take note that it is given back; also told to plugins that were not reached."""


@runtime_checkable
class PermitPlugin(Protocol):
    """Has the last word before binding."""

    def permit(self, state: CycleState, pod: Pod, node: NodeName) -> Rejection | Wait | None:
        """Let the pod go on, hold it, or send it back."""


@runtime_checkable
class AttachedPlugin(Protocol):
    """Wants to allow or reject pods that wait for it."""

    def attach(self, waiting: WaitingPods) -> None:
        """Take the waiting pods; called once, before any pod comes."""


@runtime_checkable
class PreBindPlugin(Protocol):
    """Has something to get done before a pod may be bound."""

    def pre_bind(self, state: CycleState, pod: Pod, rows: RowsView) -> PreBinding | None:
        """Return what has to be written; None if nothing has to be done for this pod."""

    def pre_bound(self, state: CycleState, pod: Pod, rows: RowsView) -> bool:
        """Return whether all is as it should be; raises if it can't become so any more."""


@runtime_checkable
class WritingPlugin(Protocol):
    """A PreBind plugin that has objects changed; it may change no others than it says here."""

    # The rights to patch these kinds follow from it.
    writes: ClassVar[tuple[Kind, ...]]


@runtime_checkable
class PreparedPlugin(Protocol):
    """A plugin that most pods are no concern of, and that need not be asked about these.

    By saying so it promises: at Reserve it has nothing to say of a pod that it skipped at
    PreFilter, and at PreBind nothing of one for which it has left no note under its own name.
    """

    only_prepared: ClassVar[bool]


@runtime_checkable
class BindPlugin(Protocol):
    """Hands the chosen node to the API server."""

    def binds(self, pod: Pod) -> bool:
        """Return whether this plugin binds the pod; the first that does, does."""


@runtime_checkable
class PostBindPlugin(Protocol):
    """Wants to know what was bound."""

    def post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> None: ...


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
