"""Which namespaces give way to others: those in which attempt after attempt fails.

Pods of one importance are tried in the order in which they came to wait, as in kube-scheduler. A
namespace of which ten thousand pods come back to be tried at once, and fail as they did before,
would keep a pod of another namespace waiting for seconds. So a namespace in which `AFTER` more
attempts have failed than succeeded lets pods of others pass, but none that is less important, and
after each failure `WAYS` of them at most: it is never kept from its turn for good.

What is known is forgotten every half a minute and is no part of checkpoints: taking one forgets it.
"""

from typing import Final

AFTER: Final = 16
WAYS: Final = 16
# So many successes are forgotten failures, at most.
_MOST: Final = 2 * AFTER


class GivingWay:
    """Counts how attempts ended, by namespace."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._owed: dict[str, int] = {}

    def failed(self, namespace: str) -> None:
        failures = min(self._failures.get(namespace, 0) + 1, _MOST)
        self._failures[namespace] = failures
        if failures >= AFTER:
            self._owed[namespace] = WAYS

    def succeeded(self, namespace: str) -> None:
        failures = self._failures.get(namespace, 0) - 1
        if failures < AFTER:
            self._owed.pop(namespace, None)
        if failures > 0:
            self._failures[namespace] = failures
        else:
            self._failures.pop(namespace, None)

    def gives(self, namespace: str) -> bool:
        """Return whether members of other namespaces may pass."""
        return namespace in self._owed

    def passed(self, namespace: str) -> None:
        self._owed[namespace] -= 1
        if not self._owed[namespace]:
            del self._owed[namespace]

    def forget(self) -> None:
        self._failures.clear()
        self._owed.clear()
