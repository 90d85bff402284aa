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


def tolerates_all(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Return whether every taint is covered by some toleration."""
    tolerations = tuple(tolerations)
    return all(any(t.tolerates(taint) for t in tolerations) for taint in taints)
