"""Log lines about lists and watches that fail: each problem named, none repeated endlessly.

A line is written when the problem is new and then at most once a minute for each kind, and one more
when it is over. No tracebacks: a server that is away is an expected state. A server that does not
have a resource at all may stay so: that is logged once. Objects that cannot be decoded are all
counted, and each is logged once; of very many, those logged longest ago may be logged again.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from k8s_scheduler.kube.errors import (
    ApiError,
    Forbidden,
    Gone,
    KubeError,
    NotSent,
    TooManyRequests,
    Unauthorized,
)
from k8s_scheduler.kube.permissions import missing_permission, missing_verb
from k8s_scheduler.kube.resources import Resource, T
from k8s_scheduler.kube.watch.decoding import Undecodable
from k8s_scheduler.kube.watch.streams import STALLED, StreamError
from k8s_scheduler.obs.metrics import KubeMetrics

logger = logging.getLogger(__name__)

REPEAT_SECONDS: Final = 60.0

# The API server's own words, more precise than what we know about the refusal.
_USER = re.compile(r'User "([^"]*)"')
_HEADLINES: Final[dict[type[KubeError], str]] = {
    NotSent: "API server cannot be reached, waiting for it",
    Forbidden: "forbidden, though not by RBAC",
    Unauthorized: "API server does not accept the credentials",
    Gone: "watch history is gone, listing anew",
    TooManyRequests: "API server asks to slow down",
}


class Troubles:
    """The failures of one resource's lists and watches."""

    def __init__(
        self, resource: Resource[T], metrics: KubeMetrics, clock: Callable[[], float]
    ) -> None:
        self._plural = resource.label
        self._full_name = resource.full_name
        self._api_version = resource.api_version
        self._absent = metrics.reflector_absent.labels(resource.label)
        self._absence_written = False
        self._failures = metrics.reflector_failures
        self._clock = clock
        self._written_at: dict[str, float] = {}
        self._began: float | None = None
        self._attempts = 0

    def report(self, error: KubeError, *, verb: str, delay_seconds: float) -> None:
        """Count a failure and write it down, unless the same was written a moment ago."""
        reason = self._count(error)
        now = self._clock()
        if now - self._written_at.get(reason, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._written_at[reason] = now
        if self._began is None:
            self._began = now
        fields: dict[str, object] = {
            "resource": self._plural,
            "verb": verb,
            "reason": reason,
            "error": str(error),
            "retry_in_seconds": round(delay_seconds, 1),
        }
        if isinstance(error, Forbidden):
            fields.update(_who_lacks_what(error))
        level = logging.INFO if isinstance(error, Gone) else logging.WARNING
        logger.log(level, self._headline(error), extra={"fields": fields})

    def report_absence(self, error: KubeError, *, delay_seconds: float) -> None:
        """Count a failure and write down, once, that the server does not have the resource."""
        self._count(error)
        self._absent.set(1)
        if self._absence_written:
            return
        self._absence_written = True
        if self._began is None:
            self._began = self._clock()
        logger.warning(
            "API server does not serve this resource; taken as empty until it does",
            extra={
                "fields": {
                    "resource": self._plural,
                    "api_version": self._api_version,
                    "error": str(error),
                    "retry_in_seconds": round(delay_seconds, 1),
                }
            },
        )

    def over(self) -> None:
        self._absent.set(0)
        self._absence_written = False
        if self._began is not None:
            logger.info(
                "list and watch work again",
                extra={
                    "fields": {
                        "resource": self._plural,
                        "after_seconds": round(self._clock() - self._began, 1),
                        "failures": self._attempts,
                    }
                },
            )
        self._began = None
        self._attempts = 0

    def _count(self, error: KubeError) -> str:
        reason = reason_of(error)
        self._failures.labels(self._plural, reason).inc()
        self._attempts += 1
        return reason

    def _headline(self, error: KubeError) -> str:
        if isinstance(error, StreamError) and error.reason == STALLED:
            return "watch stalled, reconnecting"
        missing = missing_permission(error, self._full_name)
        return missing or _HEADLINES.get(type(error), "list or watch failed")


def reason_of(error: KubeError) -> str:
    """Return a short word for a failure: few different ones, fit for a metric's label."""
    if isinstance(error, StreamError):
        return error.reason
    if isinstance(error, ApiError):
        return str(error.status)
    return "unreachable" if isinstance(error, NotSent) else "connection_lost"


def _who_lacks_what(error: Forbidden) -> dict[str, object]:
    named: dict[str, object] = {}
    if user := _USER.search(error.message):
        named["user"] = user.group(1)
    if verb := missing_verb(error):
        named["verb"] = verb
    return named


logger = logging.getLogger(__name__)

REMEMBERED: Final = 1024


class UndecodableLog:
    """Counts and names the unreadable objects of one resource."""

    def __init__(self, plural: str, metrics: KubeMetrics) -> None:
        self._plural = plural
        self._count = metrics.undecodable_objects.labels(plural)
        self._named: OrderedDict[str, None] = OrderedDict()

    def report(self, found: Undecodable) -> None:
        """Count an object, and log it unless that was done before."""
        self._count.inc()
        if found.key in self._named:
            self._named.move_to_end(found.key)
            return
        self._named[found.key] = None
        if len(self._named) > REMEMBERED:
            self._named.popitem(last=False)
        logger.warning(
            "object cannot be decoded and is left out",
            extra={
                "fields": {
                    "resource": self._plural,
                    "key": found.key or "unknown",
                    "uid": found.uid,
                    "problem": found.problem,
                }
            },
        )
