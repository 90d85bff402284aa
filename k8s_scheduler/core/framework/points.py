"""Who is told how long extension points take, in kube-scheduler's words.

The names are plain strings: they are looked up in dictionaries at every step of a decision.
"""

from collections.abc import Callable
from typing import Final, Protocol

# Extension points, as the label `extension_point` shows them.
PRE_ENQUEUE: Final = "PreEnqueue"
PRE_FILTER: Final = "PreFilter"
PRE_FILTER_ADD_POD: Final = "PreFilterExtensionAddPod"
PRE_FILTER_REMOVE_POD: Final = "PreFilterExtensionRemovePod"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
SCORE_NORMALIZE: Final = "ScoreExtensionNormalize"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"

# How a point, or a plugin at it, ended, as the label `status` shows it.
SUCCESS: Final = "Success"
ERROR: Final = "Error"
UNSCHEDULABLE: Final = "Unschedulable"
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"
WAIT: Final = "Wait"
SKIP: Final = "Skip"


class Watch(Protocol):
    """Takes the times of one profile's extension points. It never changes what is decided."""

    # The time, for differences only.
    now: Callable[[], float]

    def ended(self, point: str, status: str, since: float) -> float:
        """Take note of a point that began at `since` and ends now; return the time."""

    def asked(self, point: str, plugin: str, times: int = 1) -> None:
        """Take note of a plugin that was asked: about a pod, or about so many nodes."""


def rejected(*, resolvable: bool) -> str:
    """Return the status of a no."""
    return UNSCHEDULABLE if resolvable else UNRESOLVABLE
