"""What is kept of pods: by the spec that they have in common, and by what they answer.

Of a spec (of a partial one as well) all pods are asked the same questions about their labels. Those
that give the same answers are a *variant*, and share one judgement:

    seen once ──second pod──► variants, none kept ◄──forgotten── kept, by answers
                                    │                               ▲  │ catch_up
                                    └──second pod of these answers──┘◄─┘

What can't be kept is not tried again for a while. What was not used for longest goes first.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from k8s_scheduler.core.engine.shapes.kept_judgement import (
    NO_LABELS,
    NO_PROMISES,
    KeptJudgement,
)
from k8s_scheduler.core.engine.shapes.row_column_pool import RowColumnPool
from k8s_scheduler.core.engine.shapes.sizes import size_of, size_of_questions
from k8s_scheduler.core.engine.shapes.tally import NotKeptError, Tally, count_error
from k8s_scheduler.core.framework.evaluation.runtime import Nominated
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.shapes import LONGEST_BYTES
from k8s_scheduler.core.framework.views.answers import Answers, Inquiry
from k8s_scheduler.core.framework.views.pod_view import Questions
from k8s_scheduler.core.queue.queued_pod import QueuedPod

# What was seen once is remembered up to this number; an entry takes as many bytes at most.
_SEEN: Final = 4096
_SEEN_BYTES: Final = 256 + LONGEST_BYTES
# Specs of which nothing is kept are forgotten when there are so many.
_EMPTY: Final = 4096
# Each time that so many more answers of a spec were seen, its variants are measured.
_MEASURED_EACH: Final = 256
# What promised pods ask of a spec adds up as they come and go: past this, all of it is forgotten.
_QUESTIONS: Final = 8192
# Pods that can't be kept come and go before it is tried again.
_PATIENCE: Final = 256

# A profile, and what pods have in common besides their labels.
SpecKey = tuple[str, bytes]
_Place = tuple[SpecKey, Answers]
Kept = TypeVar("Kept", bound=KeptJudgement)
Make = Callable[[Profile, QueuedPod, Questions], Kept]
_Seen = TypeVar("_Seen", bound=Hashable)


class Sightings(Generic[_Seen]):
    """What was seen before, and how many more times it is passed over."""

    def __init__(self) -> None:
        self._waits: dict[_Seen, float] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def __contains__(self, seen: _Seen) -> bool:
        return seen in self._waits

    def admits(self, seen: _Seen) -> bool:
        """Return whether something is worth keeping: at the second sight, or after its wait."""
        wait = self._waits.get(seen)
        if wait == 0:
            return True
        self.pass_over(seen, 0 if wait is None else wait - 1)
        return False

    def pass_over(self, seen: _Seen, times: float) -> None:
        self._waits[seen] = times
        if len(self._waits) > _SEEN:
            del self._waits[next(iter(self._waits))]

    def pop(self, seen: _Seen) -> None:
        del self._waits[seen]

    def clear(self) -> None:
        self._waits.clear()


class LabelVariants(Generic[Kept]):
    """The pods of one spec, by what they answer."""

    def __init__(self) -> None:
        self.kept: dict[Answers, Kept] = {}
        self.seen: Sightings[Answers] = Sightings()
        self.inquiry = Inquiry()
        self.nbytes = 0

    @property
    def questions(self) -> Questions:
        return self.inquiry.questions


class VariantCache(Generic[Kept]):
    """Judgements by spec and answers, the least recently used first."""

    def __init__(
        self,
        pool: RowColumnPool,
        tally: Tally,
        make: Make[Kept],
        grown: Callable[[], None],
        *,
        most: float = math.inf,
    ) -> None:
        """Keep what `make` makes, and `most` of it; `grown` is called when it takes more memory."""
        self._pool = pool
        self._state = pool.state
        self._tally = tally
        self._make = make
        self._grown = grown
        self._most = most
        self._specs: dict[SpecKey, LabelVariants[Kept]] = {}
        # Those of which nothing is kept, in the order in which they lost it.
        self._empty: dict[SpecKey, None] = {}
        # In the order of their last use, with the bytes they take.
        self._order: OrderedDict[_Place, int] = OrderedDict()
        self._bytes = 0
        # Specs that were seen once.
        self._seen: Sightings[SpecKey] = Sightings()
        # The present period; judgements remember theirs.
        self.period = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def nbytes(self) -> int:
        """How much memory it takes, with all that is kept to find it."""
        return self._bytes + _SEEN_BYTES * len(self._seen)

    # Finding

    def admits(self, key: SpecKey) -> bool:
        """Return whether pods of a spec are kept: from the second one on."""
        variants = self._specs.get(key)
        if variants is not None and variants.questions.count > _QUESTIONS:
            self._forget_all(variants, key)
            self._forget_spec(key)
            variants = None
        if variants is None:
            if not self._seen.admits(key):
                return False
            self._seen.pop(key)
            variants = self._specs[key] = LabelVariants()
            self._measure_variants(variants)
            self._lost_all(key)
        return True

    def pass_over(self, key: SpecKey) -> None:
        """Keep nothing of a spec, as far as nothing is kept of it yet."""
        if key not in self._specs:
            self._seen.pass_over(key, math.inf)

    def find(
        self,
        key: SpecKey,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = NO_PROMISES,
    ) -> Kept | None:
        """Return what is kept of a pod whose spec is admitted, up to date; None if nothing is.

        By row, the pods `nominated` there count for this one.
        """
        variants = self._specs[key]
        answers = self._answers(key, variants, queued)
        known = variants.kept.get(answers)
        if known is None:
            if not self._is_worth_it(variants, answers):
                return None
            return self._made(key, profile, queued, nominated)
        self._tally.repeated += 1
        asked = variants.questions.count
        try:
            known.catch_up(profile, queued, watch, nominated)
        except (NotKeptError, PluginError) as error:
            count_error(self._tally.renewed, error)
            self._forget(key, answers)
            return self._made(key, profile, queued, nominated)
        if variants.questions.count != asked:
            # Of the pods that share it, only this one is known to answer what was asked just now,
            # and its terms may be another's.
            if known.labels != queued.shape.labels:
                known.labels = NO_LABELS
            self._file(key, variants, known, queued)
        else:
            known.period = self.period
            self._order.move_to_end((key, answers))
            if known.is_used():
                self._measure(variants, (key, answers), known)
                self._grown()
        self._tally.answered += known.can_decide
        return known

    def _is_worth_it(self, variants: LabelVariants[Kept], answers: Answers) -> bool:
        """Return whether answers were given before, and have not shown not to be worth it."""
        seen = variants.seen
        # Before anything was asked, the second pod of a spec is the second of its shape.
        is_first = not variants.kept and not len(seen)
        if is_first or answers in seen:
            self._tally.repeated += 1
            return is_first or seen.admits(answers)
        self._tally.new += 1
        seen.admits(answers)
        if not len(seen) % _MEASURED_EACH:
            self._measure_variants(variants)
            self._grown()
        return False

    def _made(
        self, key: SpecKey, profile: Profile, queued: QueuedPod, nominated: Nominated
    ) -> Kept | None:
        variants = self._specs[key]
        try:
            made = self._make(profile, queued, variants.questions)
            if nominated:
                made.catch_up(profile, queued, None, nominated)
        except (NotKeptError, PluginError) as error:
            self.refuse(key, queued, error)
            return None
        self._file(key, variants, made, queued)
        self._tally.made += 1
        self._grown()
        return made

    def refuse(self, key: SpecKey, queued: QueuedPod, error: Exception) -> None:
        """Keep nothing of a pod's variant for a while."""
        count_error(self._tally.refused, error)
        variants = self._specs.get(key)
        if variants is None:
            return
        answers = self._answers(key, variants, queued)
        self._forget(key, answers)
        variants.seen.pass_over(answers, _PATIENCE)

    def _answers(self, key: SpecKey, variants: LabelVariants[Kept], queued: QueuedPod) -> Answers:
        """Return what a pod answers to all questions about its spec."""
        if variants.inquiry.renew():
            # Something was asked that no pod was asked before: all have to answer anew.
            self._forget_all(variants, key)
            variants.seen.clear()
        return variants.inquiry.answers(self._state, queued.pod, queued.shape.labels)

    def _file(
        self, key: SpecKey, variants: LabelVariants[Kept], made: Kept, queued: QueuedPod
    ) -> None:
        """Keep a judgement under what the pod answers."""
        answers = self._answers(key, variants, queued)
        variants.kept[answers] = made
        made.period = self.period
        self._empty.pop(key, None)
        place = (key, answers)
        self._order[place] = self._order.pop(place, 0)
        self._measure(variants, place, made)
        if len(self._order) > self._most:
            self._forget(*next(iter(self._order)))

    # Bytes

    def _measure(self, variants: LabelVariants[Kept], place: _Place, made: Kept) -> None:
        """Count what a judgement and the variants of its spec take now."""
        now = made.measure(self._pool)
        self._bytes += now - self._order[place]
        self._order[place] = now
        self._measure_variants(variants)

    def _measure_variants(self, variants: LabelVariants[Kept]) -> None:
        self._bytes -= variants.nbytes
        variants.nbytes = size_of(variants) + size_of_questions(variants.questions)
        self._bytes += variants.nbytes

    # Forgetting

    def drop(self, key: SpecKey, queued: QueuedPod) -> None:
        """Forget what is kept of a pod, with the rows that others share with it."""
        variants = self._specs.get(key)
        if variants is None:
            return
        answers = self._answers(key, variants, queued)
        if answers in variants.kept:
            variants.kept[answers].give_up()
            self._forget(key, answers)

    def drop_one(self, *, least: int) -> bool:
        """Forget a spec without judgements, or else the oldest judgement of more than `least`."""
        if self._empty:
            self._forget_spec(next(iter(self._empty)))
        elif len(self._order) > least:
            self._forget(*next(iter(self._order)))
        else:
            return False
        return True

    def drop_old(self, *, periods: int, most: int) -> None:
        """Forget what was not used for so many periods, but not more than `most` at once."""
        for _ in range(min(len(self._order), most)):
            key, answers = next(iter(self._order))
            if self._specs[key].kept[answers].period >= self.period - periods:
                return
            self._forget(key, answers)
            if key in self._empty:
                self._forget_spec(key)

    def clear(self) -> None:
        self._specs.clear()
        self._empty.clear()
        self._order.clear()
        self._seen.clear()
        self._bytes = 0

    def _forget(self, key: SpecKey, answers: Answers) -> None:
        variants = self._specs[key]
        self._bytes -= self._order.pop((key, answers), 0)
        variants.kept.pop(answers, None)
        if not variants.kept:
            self._lost_all(key)

    def _forget_all(self, variants: LabelVariants[Kept], key: SpecKey) -> None:
        for answers in list(variants.kept):
            self._forget(key, answers)

    def _lost_all(self, key: SpecKey) -> None:
        """Remember a spec without judgements for a while: what was asked, what is no use."""
        self._empty[key] = None
        if len(self._empty) > _EMPTY:
            self._forget_spec(next(iter(self._empty)))

    def _forget_spec(self, key: SpecKey) -> None:
        self._empty.pop(key, None)
        self._bytes -= self._specs.pop(key).nbytes
