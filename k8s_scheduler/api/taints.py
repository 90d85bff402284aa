"""Taints and tolerations: kube-scheduler's matching rules."""

from collections.abc import Iterable

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
        """Return whether some toleration covers a taint."""
        by_key = self._by_key
        for key in (taint.key, "") if taint.key else ("",):
            if any(toleration.tolerates(taint) for toleration in by_key.get(key, ())):
                return True
        return False


def tolerates_all(tolerations: Tolerations, taints: Iterable[Taint]) -> bool:
    """Return whether every taint is covered by some toleration."""
    return all(map(tolerations.cover, taints))
