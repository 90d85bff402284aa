"""Evaluations that are kept: which, for how long, and when a pod can use one.

A shape is kept from its second pod on and as long as pods of it come. The least recently used is
dropped when they take too much memory, and one that can't be kept is not tried again for a while.
Whatever goes wrong while one is made or caught up, the plain evaluation decides: it knows better,
or fails in the right words.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.shapes.evaluation import NO_LABELS, Evaluation
from k8s_scheduler.core.engine.shapes.label_variants import Family
from k8s_scheduler.core.engine.shapes.partial_cache import KinCache
from k8s_scheduler.core.engine.shapes.partial_evaluation import OneOff
from k8s_scheduler.core.engine.shapes.row_column_pool import RowParts
from k8s_scheduler.core.engine.shapes.sizes import size_of, size_of_questions
from k8s_scheduler.core.engine.shapes.tally import NotKeptError, Tally, count_error
from k8s_scheduler.core.framework.evaluation.runtime import Nominated, Runtime
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.points import Watch
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.shapes import LONGEST_BYTES
from k8s_scheduler.core.framework.views.answers import Answers
from k8s_scheduler.core.messages.incoming import LimitCaches
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.protocols import PlacedPods

DEFAULT_BYTES: Final = 128 * 1024 * 1024
# Specs that were seen once are remembered up to this number.
_SEEN: Final = 4096
# An entry of these at most.
_SEEN_BYTES: Final = 256 + LONGEST_BYTES
# Families without a kept shape are forgotten when there are so many.
_FAMILIES: Final = 4096
# Each time that so many more answers of a family were seen, it is measured.
_MEASURED_EACH: Final = 256
# What promised pods ask of a family adds up as they come and go: past this, all of it is forgotten.
_QUESTIONS: Final = 8192
# Pods that plugins narrow to so few nodes are not worth it.
_FEW: Final = 64
# Pods of a shape that can't be kept come and go before it is tried again.
_PATIENCE: Final = 256

# A shape of which no pod came for two or three of these is forgotten, some at a tick: in a cluster
# with new images all day most of what is kept would be of pods that never come again.
_PERIOD_SECONDS: Final = 300.0
_PERIODS: Final = 2
_FORGOTTEN_PER_TICK: Final = 64

_FamilyKey = tuple[str, bytes]
_NOBODY: Final[Nominated] = {}
# What is known of a pod: all of it kept, or as much as goes for all its kin.
Known: TypeAlias = Evaluation | OneOff


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
        self._families: dict[_FamilyKey, Family] = {}
        # Those without a kept shape, in the order in which they lost it.
        self._childless: dict[_FamilyKey, None] = {}
        # In the order of their last use, with the bytes they take; and by family.
        self._order: OrderedDict[tuple[_FamilyKey, Answers], int] = OrderedDict()
        self._filed: dict[_FamilyKey, dict[Answers, None]] = {}
        # What families take, and what all of these take together.
        self._family_bytes: dict[_FamilyKey, int] = {}
        self._bytes = 0
        self._row_parts = RowParts(state, runtime)
        # Specs that were seen once; True for those that are not worth it.
        self._seen: dict[_FamilyKey, bool] = {}
        # The present period, and when the next one begins.
        self._period = 0
        self._next_period = 0.0
        self._epoch = verdicts.epoch
        self._label_epoch = state.nodes.labels.epoch
        self.tally = Tally()
        self._kins = KinCache(state, runtime, self._row_parts, self.tally)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def nbytes(self) -> int:
        """How much memory the evaluations take, with all that is kept to find them."""
        seen = _SEEN_BYTES * len(self._seen)
        return self._bytes + self._row_parts.nbytes + self._kins.nbytes + seen

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

    def age(self, *, now: float) -> None:
        """Forget shapes of which no pod came for long, and verdicts that are no ordinary ones."""
        if now >= self._next_period:
            self._period += 1
            self._next_period = now + _PERIOD_SECONDS
            self._verdicts.age()
            self._follow_meanings()
        for _ in range(min(len(self._order), _FORGOTTEN_PER_TICK)):
            key, answers = next(iter(self._order))
            if self._families[key].members[answers].period >= self._period - _PERIODS:
                return
            self._forget(key, answers)
            if key in self._childless:
                self._forget_family(key)

    def _follow_meanings(self) -> None:
        """Forget everything if codes, or the ids of label values, have got another meaning."""
        labels = self._state.nodes.labels
        if self._verdicts.epoch != self._epoch or labels.epoch != self._label_epoch:
            self.clear()
            self._epoch, self._label_epoch = self._verdicts.epoch, labels.epoch

    def clear(self) -> None:
        """Forget everything."""
        self._families.clear()
        self._childless.clear()
        self._order.clear()
        self._filed.clear()
        self._family_bytes.clear()
        self._seen.clear()
        self._kins.clear()
        self._row_parts.clear()
        self._bytes = 0

    def drop(self, profile: Profile, queued: QueuedPod) -> None:
        """Forget what is known of a pod, with all that other shapes share with it."""
        self._kins.drop(profile, queued)
        key = (profile.scheduler_name, queued.shape.spec)
        family = self._families.get(key)
        if family is None:
            return
        answers = family.answers(self._state, queued)
        if answers in family.members:
            family.members[answers].give_up()
        self._forget(key, answers)

    def find(
        self,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None = None,
        nominated: Nominated = _NOBODY,
    ) -> Known | None:
        """Return what is known of a pod, up to date; None if it has to be judged from scratch.

        By row, the pods `nominated` there count for this one.
        """
        self._verdicts.forget()
        self._follow_meanings()
        key = (profile.scheduler_name, queued.shape.spec)
        family = self._families.get(key)
        if family is not None and family.questions.count > _QUESTIONS:
            self._disown(key)
            family = None
        if family is None:
            family = self._found(key)
        if family is None:
            return self._of_kin(key, profile, queued, watch, nominated)
        answers = family.answers(self._state, queued)
        known = family.members.get(answers)
        if known is None:
            return self._admit(key, family, answers, profile, queued, nominated=nominated)
        self.tally.repeated += 1
        asked = family.questions.count
        try:
            is_told = known.catch_up(profile, queued, watch, nominated)
        except (NotKeptError, PluginError) as error:
            count_error(self.tally.renewed, error)
            self._forget(key, answers)
            return self._make(key, family, profile, queued, nominated)
        if family.questions.count != asked:
            # Of the pods that share it, only this one is known to answer what was asked just now,
            # and its terms may be another's.
            if known.labels != queued.shape.labels:
                known.labels = NO_LABELS
            self._file(key, family, known, queued)
        else:
            place = (key, answers)
            known.period = self._period
            self._order.move_to_end(place)
            if known.is_used():
                self._measure(key, family, place, known)
                self._make_room()
        return self._if_told(known, is_told=is_told)

    def _if_told(self, known: Evaluation, *, is_told: bool) -> Evaluation | None:
        """Return what is known, if that says which rows promises keep from the pod."""
        if is_told:
            self.tally.answered += 1
            return known
        count_error(self.tally.refused, NotKeptError("promises"))
        return None

    def _of_kin(
        self,
        key: _FamilyKey,
        profile: Profile,
        queued: QueuedPod,
        watch: Watch | None,
        nominated: Nominated,
    ) -> OneOff | None:
        self.tally.new += 1
        found = self._kins.find(profile, queued, watch, nominated)
        if found is not None and _is_few(found.node_names):
            self._remember(key, is_not_worth_it=True)
        return found

    def _found(self, key: _FamilyKey) -> Family | None:
        """Found a family for the second pod of a spec; the first is only remembered."""
        is_not_worth_it = self._seen.get(key)
        if is_not_worth_it is None:
            self._remember(key, is_not_worth_it=False)
        if is_not_worth_it is not False:
            return None
        del self._seen[key]
        family = self._families[key] = Family()
        self._measure_family(key, family)
        self._leave(key)
        return family

    def pass_over(
        self, profile: Profile, queued: QueuedPod, names: frozenset[NodeName] | None
    ) -> None:
        """Take note of the nodes that a pod names: of few, nothing is won by keeping it."""
        if not _is_few(names):
            return
        key = (profile.scheduler_name, queued.shape.spec)
        if key not in self._families:
            self._remember(key, is_not_worth_it=True)

    def _remember(self, key: _FamilyKey, *, is_not_worth_it: bool) -> None:
        self._seen[key] = is_not_worth_it
        if len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]

    def _admit(
        self,
        key: _FamilyKey,
        family: Family,
        answers: Answers,
        profile: Profile,
        queued: QueuedPod,
        *,
        nominated: Nominated,
    ) -> Evaluation | None:
        """Make an evaluation, unless these answers are new or have shown not to be worth it."""
        waiting = family.seen.get(answers)
        # Before anything was asked, the second pod of a spec is the second of its shape.
        is_new = waiting is None and bool(family.members or family.seen)
        if is_new:
            self.tally.new += 1
        else:
            self.tally.repeated += 1
        if is_new or waiting:
            if len(family.seen) >= _SEEN:
                family.seen.clear()
            family.seen[answers] = 0 if waiting is None else waiting - 1
            if waiting is None and not len(family.seen) % _MEASURED_EACH:
                self._measure_family(key, family)
                self._make_room()
            return None
        return self._make(key, family, profile, queued, nominated)

    def _make(
        self,
        key: _FamilyKey,
        family: Family,
        profile: Profile,
        queued: QueuedPod,
        nominated: Nominated,
    ) -> Evaluation | None:
        try:
            evaluation = Evaluation(
                self._state,
                self._runtime,
                profile,
                queued.view,
                family.questions,
                labels=queued.shape.labels,
                row_parts=self._row_parts,
            )
            is_told = not nominated or evaluation.catch_up(profile, queued, None, nominated)
        except (NotKeptError, PluginError) as error:
            count_error(self.tally.refused, error)
            family.seen[family.answers(self._state, queued)] = _PATIENCE
            return None
        self._file(key, family, evaluation, queued)
        self.tally.made += 1
        self._make_room()
        if not is_told:
            count_error(self.tally.refused, NotKeptError("promises"))
        return evaluation if is_told else None

    def _file(self, key: _FamilyKey, family: Family, made: Evaluation, queued: QueuedPod) -> None:
        """Keep an evaluation under what the pod answers; whom the family has forgotten is gone."""
        answers = family.answers(self._state, queued)
        family.members[answers] = made
        made.period = self._period
        # It may have been dropped meanwhile for want of shapes.
        self._families[key] = family
        self._childless.pop(key, None)
        filed = self._filed.setdefault(key, {})
        filed[answers] = None
        if len(filed) != len(family.members):
            # All that were made before the last new question.
            for gone in [each for each in filed if each not in family.members]:
                self._bytes -= self._order.pop((key, gone), 0)
                del filed[gone]
        place = (key, answers)
        self._order[place] = self._order.pop(place, 0)
        self._measure(key, family, place, made)

    # Bytes

    def _measure(
        self,
        key: _FamilyKey,
        family: Family,
        place: tuple[_FamilyKey, Answers],
        made: Evaluation,
    ) -> None:
        """Count what an evaluation and its family take now."""
        now = made.measure(self._row_parts)
        self._bytes += now - self._order[place]
        self._order[place] = now
        self._measure_family(key, family)

    def _measure_family(self, key: _FamilyKey, family: Family) -> None:
        now = size_of(family) + size_of_questions(family.questions)
        self._bytes += now - self._family_bytes.get(key, 0)
        self._family_bytes[key] = now

    def _make_room(self) -> None:
        while self.nbytes > self._max_bytes:
            if self._kins.drop_oldest():
                continue
            if self._childless:
                self._forget_family(next(iter(self._childless)))
            elif len(self._order) > 1:
                key, answers = next(iter(self._order))
                self._forget(key, answers)
                self.tally.dropped += 1
            else:
                return

    def _forget(self, key: _FamilyKey, answers: Answers) -> None:
        self._bytes -= self._order.pop((key, answers), 0)
        filed = self._filed.get(key)
        if filed is not None:
            filed.pop(answers, None)
            if not filed:
                del self._filed[key]
        family = self._families.get(key)
        if family is not None:
            family.members.pop(answers, None)
            if not family.members:
                self._leave(key)

    def _disown(self, key: _FamilyKey) -> None:
        """Forget a family, with all its shapes and all that was ever asked of it."""
        for answers in list(self._filed.get(key, ())):
            self._forget(key, answers)
        self._childless[key] = None
        self._forget_family(key)

    def _leave(self, key: _FamilyKey) -> None:
        """Remember a family without a kept shape for a while: what was asked, what is no use."""
        self._childless[key] = None
        if len(self._childless) > _FAMILIES:
            self._forget_family(next(iter(self._childless)))

    def _forget_family(self, key: _FamilyKey) -> None:
        del self._childless[key]
        del self._families[key]
        self._bytes -= self._family_bytes.pop(key)


def _is_few(names: frozenset[NodeName] | None) -> bool:
    """Return whether so few nodes come into question that nothing is won by keeping anything."""
    return names is not None and len(names) <= _FEW
