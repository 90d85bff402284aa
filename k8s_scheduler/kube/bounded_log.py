"""Warnings that repeat with every request, logged once per interval.

When the API server refuses or is away, each of thousands of writes has the same problem. The
first one is logged, the following ones are counted, and the next line says how many there were.
Keys must come from a small fixed set (never a pod's name): they are kept for ever.
"""

import logging
from collections.abc import Callable

from k8s_scheduler.kube.errors import ApiError

INTERVAL_SECONDS = 60.0


class BoundedLog:
    """A logger that logs each key at most once per interval."""

    def __init__(
        self,
        logger: logging.Logger,
        clock: Callable[[], float],
        *,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._said_at: dict[str, float] = {}
        self._held_back: dict[str, int] = {}

    def warning(self, key: str, text: str, *args: object) -> None:
        """Log `text % args`, unless `key` was logged within the interval."""
        now = self._clock()
        said_at = self._said_at.get(key)
        if said_at is not None and now - said_at < self._interval_seconds:
            self._held_back[key] = self._held_back.get(key, 0) + 1
            return
        self._said_at[key] = now
        held_back = self._held_back.pop(key, 0)
        if held_back:
            self._logger.warning("%s (and %d more since)", text % args, held_back)
        else:
            self._logger.warning(text, *args)

    def forbidden(self, verb: str, resource: str, *, namespace: str, error: ApiError) -> None:
        """Log a 403 by the verb and resource that a role would have to grant.

        The authorizer says "cannot <verb> resource"; other 403s come from admission (a webhook, a
        quota, a namespace that is being terminated), and no role would help against those.
        """
        cause = (
            "missing permission" if f"cannot {verb} " in error.message else "refused by admission"
        )
        where = f" in namespace {namespace}" if namespace else ""
        text = "%s: %s %s%s: %s"
        self.warning(f"{verb} {resource}", text, cause, verb, resource, where, error.message)
