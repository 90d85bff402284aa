"""What is kept to decide by, and when a pod can use it: the picture is in `shapes/__init__.py`.

Evaluations are kept from the second pod of a shape on and as long as pods of it come. A pod of
another shape is decided on by its partial shape, if there is one. The least recently used is
dropped when all takes too much memory. Whatever goes wrong while something is made or caught up,
the plain evaluation decides: it knows better, or fails in the right words.
"""

from typing import Final, TypeAlias

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.shapes.evaluation import KeptEvaluation
from k8s_scheduler.core.engine.shapes.kept_judgement import NO_PROMISES
from k8s_scheduler.core.engine.shapes.partial_evaluation import (
    PartialEvaluation,
    PromisedRoom,
    RejectedError,
)
from k8s_scheduler.core.engine.shapes.partial_shape import PartialShape
from k8s_scheduler.core.engine.shapes.row_column_pool import RowColumnPool
from k8s_scheduler.core.engine.shapes.tally import NotKeptError, Tally, count_error
from k8s_scheduler.core.engine.shapes.variant_cache import VariantCache
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.messages.incoming import LimitCaches
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import PlacedPods

DEFAULT_BYTES: Final = 128 * 1024 * 1024
# Pods that plugins narrow to so few nodes are not worth it.
_FEW: Final = 64
_PARTIAL_SHAPES: Final = 64

# A shape of which no pod came for two or three of these is forgotten, some at a tick: in a cluster
# with new images all day most of what is kept would be of pods that never come again.
_PERIOD_SECONDS: Final = 300.0
_PERIODS: Final = 2
_FORGOTTEN_PER_TICK: Final = 64

# What is known of a pod: all of it kept, or as much as goes for its partial shape.
Known: TypeAlias = KeptEvaluation | PartialEvaluation


class ShapeCache:
    """The evaluations of the shapes that keep coming."""

    def __init__(
        self,
        state: PlacedPods,
        runtime: Runtime,
        verdicts: VerdictTable,
        *,
        max_bytes: int = DEFAULT_BYTES,
    ) -> None:
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._max_bytes = max_bytes
        self._pool = pool = RowColumnPool(state, runtime)
        self.tally = Tally()
        self._shapes = VariantCache(pool, self.tally, self._evaluate, self._make_room)
        # Why partial shapes are not kept is counted with the others; nothing else of them is.
        counts = Tally(renewed=self.tally.renewed, refused=self.tally.refused)
        self._partial_shapes = VariantCache(
            pool, counts, self._share, self._make_room, most=_PARTIAL_SHAPES
        )
        self._next_period = 0.0
        self._epoch = verdicts.epoch
        self._label_epoch = state.nodes.labels.epoch

    def _evaluate(
        self, profile: Profile, queued: QueuedPod, questions: Questions
    ) -> KeptEvaluation:
        return KeptEvaluation(self._pool, profile, queued, questions)

    def _share(self, profile: Profile, queued: QueuedPod, questions: Questions) -> PartialShape:
        return PartialShape(self._pool, profile, queued, questions)

    def __len__(self) -> int:
        return len(self._shapes)

    # Finding

    def find(
        self,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = NO_PROMISES,
    ) -> Known | None:
        """Return what is known of a pod, up to date; None if it has to be judged from scratch.

        By row, the pods `nominated` there count for this one.
        """
        self._verdicts.forget()
        self._follow_meanings()
        key = (profile.scheduler_name, queued.shape.spec)
        if not self._shapes.admits(key):
            return self._find_partial(profile, queued, watch, nominated)
        found = self._shapes.find(key, profile, queued, watch, nominated)
        if found is None or found.can_decide:
            return found
        count_error(self.tally.refused, NotKeptError("promises"))
        return None

    def _find_partial(
        self, profile: Profile, queued: QueuedPod, watch: Watch | None, nominated: Nominated
    ) -> PartialEvaluation | None:
        self.tally.new += 1
        key = (profile.scheduler_name, queued.shape.partial)
        partial_shapes = self._partial_shapes
        if not partial_shapes.admits(key):
            return None
        shape = partial_shapes.find(key, profile, queued, watch)
        if shape is None:
            return None
        promises = None
        if nominated:
            promises = PromisedRoom(self._state, self._runtime, profile, nominated)
        try:
            found = PartialEvaluation(shape, queued.view, watch, promises)
        except RejectedError:
            return None
        except (NotKeptError, PluginError) as error:
            partial_shapes.refuse(key, queued, error)
            return None
        self.tally.partial += 1
        self.pass_over(profile, queued, found.node_names)
        return found

    def pass_over(
        self, profile: Profile, queued: QueuedPod, names: frozenset[NodeName] | None
    ) -> None:
        """Take note of the nodes that a pod names: of few, nothing is won by keeping it."""
        if names is not None and len(names) <= _FEW:
            self._shapes.pass_over((profile.scheduler_name, queued.shape.spec))

    # Forgetting

    def drop(self, profile: Profile, queued: QueuedPod) -> None:
        """Forget what is known of a pod, with all that other shapes share with it."""
        name, shape = profile.scheduler_name, queued.shape
        self._partial_shapes.drop((name, shape.partial), queued)
        self._shapes.drop((name, shape.spec), queued)

    def age(self, *, now: float) -> None:
        """Forget shapes of which no pod came for long, and verdicts that are no ordinary ones."""
        if now >= self._next_period:
            self._shapes.period += 1
            self._next_period = now + _PERIOD_SECONDS
            self._verdicts.age()
            self._follow_meanings()
        self._shapes.drop_old(periods=_PERIODS, most=_FORGOTTEN_PER_TICK)

    def _follow_meanings(self) -> None:
        """Forget everything if codes, or the ids of label values, have got another meaning."""
        labels = self._state.nodes.labels
        if self._verdicts.epoch != self._epoch or labels.epoch != self._label_epoch:
            self.clear()
            self._epoch, self._label_epoch = self._verdicts.epoch, labels.epoch

    def clear(self) -> None:
        self._shapes.clear()
        self._partial_shapes.clear()
        self._pool.clear()

    # Bytes

    @property
    def nbytes(self) -> int:
        """How much memory the evaluations take, with all that is kept to find them."""
        return self._shapes.nbytes + self._partial_shapes.nbytes + self._pool.nbytes

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return what is kept of shapes, and of what was said of them: bytes, and what had to go.

        Evaluations hold codes, which stand for verdicts.
        """
        verdicts = self._verdicts
        return {
            "evaluations": (self.nbytes, self.tally.dropped),
            "verdicts": (verdicts.nbytes, verdicts.dropped),
        }

    def take_limit(self, message: LimitCaches) -> None:
        """Take another limit; it goes for the state's counters too, which only save work.

        What is known of attached volumes is let go of, whatever the limit is.
        """
        self.limit(message.max_bytes)
        self._state.pods.counters.limit(message.max_bytes)
        self._state.forget_attached()

    def limit(self, max_bytes: int) -> None:
        """Take no more memory than this from now on, whatever has to go."""
        self._max_bytes = max_bytes
        self._make_room()

    def _make_room(self) -> None:
        while self.nbytes > self._max_bytes:
            if self._partial_shapes.drop_one(least=0):
                continue
            before = len(self._shapes)
            if not self._shapes.drop_one(least=1):
                return
            self.tally.dropped += before - len(self._shapes)
