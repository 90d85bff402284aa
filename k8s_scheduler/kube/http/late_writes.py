"""Writes that meet the moment from which none may begin: a lease's deadline, storage set back.

None is sent after it. But what was sent before can't be called back: a process that is stopped for
longer than its lease lasts has such requests under way when it goes on. The server refuses most of
them (409: another scheduler has bound the pod); every one is counted, and named in the log.
"""

import logging
from typing import Final

from k8s_scheduler.kube.http.request_attempts import Call
from k8s_scheduler.obs.counters import Counter

log = logging.getLogger(__name__)

_CONFLICT: Final = 409


class LateWrites:
    """Takes note of each write that was too late when it ended."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def note(self, call: Call, ended: int | str) -> None:
        """Count a write that was too late when it ended, with a status or in a word."""
        result = ended if isinstance(ended, str) else _result(ended)
        self._counter.labels(result=result).inc()
        if result != "withheld":
            log.warning(
                "a write was under way when writing had to end",
                extra={"fields": {"method": call.method, "path": call.target, "answer": ended}},
            )


def _result(status: int) -> str:
    if 200 <= status < 300:
        return "success"
    return "conflict" if status == _CONFLICT else "failure"
