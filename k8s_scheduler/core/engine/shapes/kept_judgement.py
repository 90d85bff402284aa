"""What an evaluation and a partial shape have in common: columns of rows, kept and caught up."""

from typing import Final

from k8s_scheduler.core.engine.shapes.row_column_pool import RowColumnPool
from k8s_scheduler.core.engine.shapes.row_columns import CaughtUp, RowColumns, caught_up
from k8s_scheduler.core.engine.shapes.sizes import size_of
from k8s_scheduler.core.engine.shapes.tally import NotKeptError
from k8s_scheduler.core.engine.shapes.validity import Inputs
from k8s_scheduler.core.framework.evaluation.runtime import Nominated
from k8s_scheduler.core.framework.plugin import Term
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# After as many uses it is measured again.
_DUE: Final = frozenset({4, 64, 1024, 16384})
NO_PROMISES: Final[Nominated] = {}
# Of what was made for no pod that may still come; labels are never encoded like that.
NO_LABELS: Final = b""


class KeptJudgement:
    """What plugins say of pods that answer alike what was asked about them, as of `cursor`."""

    # The columns of all rows.
    rows: RowColumns

    def __init__(self, pool: RowColumnPool, queued: QueuedPod, questions: Questions) -> None:
        """Prepare to judge; what plugins ask of the pod, now or later, is noted in `questions`."""
        self.tables = pool.state
        self.runtime = pool.runtime
        self._questions = questions
        # Of the pod that it was made for: only for those are its terms exactly right when plugins
        # ask something new.
        self.labels = queued.shape.labels
        # What the log of facts had said when this was last right.
        self.cursor = self.tables.facts.position
        self._inputs = Inputs(self.tables, questions)
        self.terms: dict[str, Term] = {}
        # Whether it says which rows promises keep from the pod that was last asked for.
        self.can_decide = True
        # How often it was used, and how many rows there were when it was last measured.
        self.uses = 0
        self._rows_counted = 0
        # When it was last used, by the periods of the cache.
        self.period = 0

    def catch_up(
        self,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = NO_PROMISES,
    ) -> None:
        """Judge again what changed; NotKeptError if that would be nearly everything."""
        raise NotImplementedError

    def _catch_up_rows(self, profile: Profile, pod: PodView, watch: Watch | None) -> CaughtUp:
        """Let rows catch up, and see whether plugins would prepare the same again."""
        start, rows, facts, seen = self.rows.catch_up(profile, watch)
        if start != self.cursor:
            # Another shape had it catch up before.
            start, rows, facts, seen = caught_up(self.tables.facts, self.cursor)
        self.cursor = start + len(rows)
        if not self._inputs.are_valid(seen, profile, pod, self.runtime):
            raise NotKeptError("inputs")
        return start, rows, facts, seen

    def give_up(self) -> None:
        """Make every evaluation that shares the rows look for others."""
        self.rows.give_up()

    def is_used(self) -> bool:
        """Count one more use; return whether its size may have become another since the last look.

        What it prepares is made with the first uses; then it grows with the cluster, and a little
        with the variety of what is asked.
        """
        self.uses += 1
        rows = self.tables.nodes.row_count
        return 4 * rows > 5 * self._rows_counted or self.uses in _DUE

    def measure(self, pool: RowColumnPool) -> int:
        """Return how much memory it takes besides what it shares; have that counted anew."""
        self._rows_counted = self.tables.nodes.row_count
        if self.uses:
            pool.measure(self.rows)
        return size_of(self, apart_from=self.rows.terms)
