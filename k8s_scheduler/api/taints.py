"""Taints and tolerations: kube-scheduler's matching rules."""

from collections.abc import Iterable
from functools import cached_property

from k8s_scheduler.api.meta import Wire

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(Wire, frozen=True, gc=False):
    """A mark on a node that keeps away pods which do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def is_hard(self) -> bool:
        """Hard taints reject; `PreferNoSchedule` only costs score."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Wire, frozen=True, gc=False):
    """What a pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration covers the taint.

        An empty effect covers every effect, an empty key every key. `Lt` and `Gt` belong to an
        alpha gate that is off in the baseline, so they cover nothing, like any unknown operator.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


class TaintSet(tuple[Taint, ...]):  # noqa: SLOT001  what is worked out has to be kept somewhere
    """The taints of a node; nodes with equal ones share it, and what is known of it.

    Every pod of a new shape asks of each set which of its taints it does not tolerate, and a node
    may have hundreds: so hard and soft ones are told apart, and found by key, once.
    """

    @cached_property
    def hard(self) -> tuple[Taint, ...]:
        return tuple(taint for taint in self if taint.is_hard)

    @cached_property
    def soft_count(self) -> int:
        return sum(map(len, self.soft.values()))

    @cached_property
    def soft(self) -> dict[str, list[Taint]]:
        found: dict[str, list[Taint]] = {}
        for taint in self:
            if taint.effect == PREFER_NO_SCHEDULE:
                found.setdefault(taint.key, []).append(taint)
        return found


class Tolerations:
    """What a pod puts up with, sorted by key: a taint asks those alone that may cover it.

    So thousands of taints on a node and thousands of tolerations of a pod do not multiply.
    """

    __slots__ = ("_by_key",)

    def __init__(self, listed: Iterable[Toleration]) -> None:
        # Dicts stand for ordered sets.
        self._by_key: dict[str, dict[Toleration, None]] = {}
        for toleration in listed:
            self._by_key.setdefault(toleration.key, {})[toleration] = None

    def cover(self, taint: Taint) -> bool:
        by_key = self._by_key
        for key in (taint.key, "") if taint.key else ("",):
            if any(toleration.tolerates(taint) for toleration in by_key.get(key, ())):
                return True
        return False

    def cover_hard(self, taints: TaintSet) -> bool:
        return all(map(self.cover, taints.hard))

    def uncovered_soft(self, taints: TaintSet) -> int:
        soft = taints.soft
        if not soft:
            return 0
        own = self._by_key
        if "" in own:
            # It speaks of taints whatever their keys are.
            return sum(not self.cover(taint) for here in soft.values() for taint in here)
        shared = [key for key in own if key in soft] if len(own) < len(soft) else soft
        covered = sum(self.cover(taint) for key in shared for taint in soft[key])
        return taints.soft_count - covered
