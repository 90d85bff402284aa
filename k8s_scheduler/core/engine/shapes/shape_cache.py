"""Evaluations that are kept: which, for how long, and when a pod can use one.

A shape is kept from its second pod on, the least recently used is dropped when they take too much
memory, and one that can't be kept is not tried again for a while. Whatever goes wrong while one is
made or caught up, the plain evaluation decides: it knows better, or fails in the right words.
"""

from typing import Final, TypeAlias

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.core.engine.shapes.errors import NotKeptError, count_error
from k8s_scheduler.core.engine.shapes.evaluation import Evaluation
from k8s_scheduler.core.engine.shapes.families import Answers, Family
from k8s_scheduler.core.engine.shapes.kin_cache import KinCache
from k8s_scheduler.core.engine.shapes.one_off import OneOff
from k8s_scheduler.core.engine.shapes.row_parts import RowParts
from k8s_scheduler.core.engine.shapes.tally import Tally
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.runtime import Runtime
from k8s_scheduler.core.framework.watch import Watch
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.cache import Cache

DEFAULT_BYTES: Final = 128 * 1024 * 1024
# Specs that were seen once are remembered up to this number.
_SEEN: Final = 4096
# Families without a kept shape are forgotten when there are so many.
_FAMILIES: Final = 4096
# Pods that plugins narrow to so few nodes are not worth it.
_FEW: Final = 64
# Pods of a shape that can't be kept come and go before it is tried again.
_PATIENCE: Final = 256

_FamilyKey = tuple[str, bytes]
# What is known of a pod: all of it kept, or as much as goes for all its kin.
Known: TypeAlias = Evaluation | OneOff


class ShapeCache:
    """The evaluations of the shapes that keep coming."""

    def __init__(
        self,
        state: Cache,
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
        # In the order of their last use.
        self._order: dict[tuple[_FamilyKey, Answers], int] = {}
        self._bytes = 0
        self._row_parts = RowParts(state, runtime)
        # Specs that were seen once; True for those that are not worth it.
        self._seen: dict[_FamilyKey, bool] = {}
        self._epoch = verdicts.epoch
        self.tally = Tally()
        self._kins = KinCache(state, runtime, self._row_parts, self.tally)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def nbytes(self) -> int:
        """How much memory the evaluations take."""
        return self._bytes + self._row_parts.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._families.clear()
        self._order.clear()
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

    def find(self, profile: Profile, queued: QueuedPod, watch: Watch | None = None) -> Known | None:
        """Return what is known of a pod, up to date; None if it has to be judged from scratch."""
        self._verdicts.forget()
        if self._verdicts.epoch != self._epoch:
            # Codes have got another meaning.
            self.clear()
            self._epoch = self._verdicts.epoch
        key = (profile.scheduler_name, queued.shape.spec)
        family = self._families.get(key) or self._found(key)
        if family is None:
            return self._of_kin(key, profile, queued, watch)
        answers = family.answers(self._state, queued)
        known = family.members.get(answers)
        if known is None:
            return self._admit(key, family, answers, profile, queued)
        self.tally.repeated += 1
        asked = family.questions.count
        try:
            known.catch_up(profile, queued.view, watch)
        except (NotKeptError, PluginError) as error:
            count_error(self.tally.renewed, error)
            self._forget(key, answers)
            return self._make(key, family, profile, queued)
        self.tally.answered += 1
        if family.questions.count != asked:
            # Of the pods that share it, only this one is known to answer what was asked just now.
            known.labels = queued.shape.labels
            self._file(key, family, known, queued)
            return known
        place = (key, answers)
        self._order[place] = self._order.pop(place)
        return known

    def _of_kin(
        self, key: _FamilyKey, profile: Profile, queued: QueuedPod, watch: Watch | None
    ) -> OneOff | None:
        self.tally.new += 1
        found = self._kins.find(profile, queued, watch)
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
        if len(self._families) >= _FAMILIES:
            self._families = {k: family for k, family in self._families.items() if family.members}
        family = self._families[key] = Family()
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
            return None
        return self._make(key, family, profile, queued)

    def _make(
        self, key: _FamilyKey, family: Family, profile: Profile, queued: QueuedPod
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
        except (NotKeptError, PluginError) as error:
            count_error(self.tally.refused, error)
            family.seen[family.answers(self._state, queued)] = _PATIENCE
            return None
        self._file(key, family, evaluation, queued)
        self.tally.made += 1
        self._make_room()
        return evaluation

    def _file(self, key: _FamilyKey, family: Family, made: Evaluation, queued: QueuedPod) -> None:
        """Keep an evaluation under what the pod answers; whom the family has forgotten is gone."""
        answers = family.answers(self._state, queued)
        family.members[answers] = made
        self._order = {
            place: size
            for place, size in self._order.items()
            if place[0] != key or place[1] in family.members
        }
        self._order.pop((key, answers), None)
        self._order[key, answers] = made.nbytes
        self._bytes = sum(self._order.values())

    def _make_room(self) -> None:
        while self.nbytes > self._max_bytes and (self._kins or len(self._order) > 1):
            if self._kins.drop_oldest():
                continue
            key, answers = next(iter(self._order))
            self._forget(key, answers)
            self.tally.dropped += 1

    def _forget(self, key: _FamilyKey, answers: Answers) -> None:
        self._bytes -= self._order.pop((key, answers), 0)
        family = self._families.get(key)
        if family is not None:
            family.members.pop(answers, None)


def _is_few(names: frozenset[NodeName] | None) -> bool:
    """Return whether so few nodes come into question that nothing is won by keeping anything."""
    return names is not None and len(names) <= _FEW
