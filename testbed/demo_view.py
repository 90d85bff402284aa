"""What the demo shows: one picture of the cluster, drawn over and over."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.client import Object

_BAR_WIDTH = 40
_REASONS_SHOWN = 3
# Without a terminal, a line every so often is enough.
_QUIET_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of the load at one moment."""

    seconds: float
    created: int
    bound: int
    running: int
    nodes: int
    used_nodes: int
    reasons: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, pods: Iterable[Object], nodes: Iterable[Object], *, seconds: float) -> "Picture":
        """Look at pods and nodes as the API server has them."""
        pods = list(pods)
        placed = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        return cls(
            seconds=seconds,
            created=len(pods),
            bound=len(placed),
            running=sum(pod["status"].get("phase") == "Running" for pod in pods),
            nodes=len(list(nodes)),
            used_nodes=len(set(placed)),
            reasons=tuple(Counter(map(why_pending, waiting)).most_common(_REASONS_SHOWN)),
        )


def why_pending(pod: Object) -> str:
    """Return in a few words what a pod waits for, from its PodScheduled condition."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message = condition.get("message") or condition.get("reason") or "not scheduled"
            _, found, histogram = message.partition("nodes are available: ")
            if not found:
                return str(message)
            counted = histogram.partition(". ")[0].rstrip(".").split(", ")
            return ", ".join(sorted(reason.partition(" ")[2] for reason in counted))
    return "in the queue"


class View:
    """Draws pictures: over each other on a terminal, one line now and then elsewhere."""

    def __init__(self, *, total_pods: int, live: bool) -> None:
        self._total = total_pods
        self._live = live
        self._drawn_lines = 0
        self._last: Picture | None = None
        self._last_line_at = float("-inf")

    def show(self, picture: Picture) -> None:
        """Draw one picture."""
        rate = self._rate(picture)
        if self._live:
            self._redraw(self._lines(picture, rate))
        elif picture.seconds - self._last_line_at >= _QUIET_SECONDS:
            self._last_line_at = picture.seconds
            print("  ".join(self._lines(picture, rate)), flush=True)
        self._last = picture

    def end(self) -> None:
        """Leave the last picture standing."""
        if not self._live and self._last is not None:
            print("  ".join(self._lines(self._last, 0.0)), flush=True)

    def _rate(self, picture: Picture) -> float:
        if self._last is None or picture.seconds <= self._last.seconds:
            return 0.0
        return (picture.bound - self._last.bound) / (picture.seconds - self._last.seconds)

    def _lines(self, picture: Picture, rate: float) -> list[str]:
        filled = _BAR_WIDTH * picture.bound // max(self._total, 1)
        bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
        lines = [
            f"pods  [{bar}] {picture.bound}/{self._total} bound  {rate:.0f}/s",
            f"nodes {picture.used_nodes}/{picture.nodes} used, {picture.running} pods running",
        ]
        waiting = [f"{count} {reason}" for reason, count in picture.reasons]
        lines.append(f"pending {picture.created - picture.bound}: {'; '.join(waiting) or 'none'}")
        return lines

    def _redraw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns
        if self._drawn_lines:
            sys.stdout.write(f"\x1b[{self._drawn_lines}A")
        for line in lines:
            sys.stdout.write(f"\x1b[2K{line[: width - 1]}\n")
        sys.stdout.flush()
        self._drawn_lines = len(lines)
