"""Which lines give way to others: those in which attempt after attempt fails.

Pods of one importance are tried in the order in which they came to wait, as in kube-scheduler. A
namespace of which ten thousand pods come back to be tried at once, and fail as they did before,
would keep a pod of another namespace waiting for seconds. So a line in which `AFTER` more attempts
have failed than succeeded lets members of other lines pass, but none that is less important, and
after each failure `WAYS` of them at most: it is never kept from its turn for good.

What is known is forgotten every half a minute and is no part of checkpoints: taking one forgets it.
"""

from typing import Final

AFTER: Final = 16
WAYS: Final = 16
# So many successes are forgotten failures, at most.
_MOST: Final = 2 * AFTER


class GivingWay:
    """Counts how attempts ended, by line."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._owed: dict[str, int] = {}

    def failed(self, line: str) -> None:
        failures = min(self._failures.get(line, 0) + 1, _MOST)
        self._failures[line] = failures
        if failures >= AFTER:
            self._owed[line] = WAYS

    def succeeded(self, line: str) -> None:
        failures = self._failures.get(line, 0) - 1
        if failures < AFTER:
            self._owed.pop(line, None)
        if failures > 0:
            self._failures[line] = failures
        else:
            self._failures.pop(line, None)

    def gives(self, line: str) -> bool:
        """Return whether members of other lines may pass."""
        return line in self._owed

    def passed(self, line: str) -> None:
        self._owed[line] -= 1
        if not self._owed[line]:
            del self._owed[line]

    def forget(self) -> None:
        self._failures.clear()
        self._owed.clear()
