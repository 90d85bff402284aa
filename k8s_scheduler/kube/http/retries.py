"""How often a request is repeated, after which answers, and how long to wait in between.

A policy is a value, one for each use. The waits double between two bounds, with jitter; where the
server asks for a longer wait in `Retry-After`, that one counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.kube.errors import ApiError, KubeError
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.response_meaning import is_passing
from k8s_scheduler.kube.waiting import bounded_wait
from k8s_scheduler.lib.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a request is repeated; every other answer or error is definite.

    `tries` includes the first one; None means no limit. No try begins once the waits add up to
    `patience_seconds`. A `longest_retry_after_seconds` of 0 ignores the header.
    """

    tries: int | None
    is_retried: Callable[[Response], bool] = is_passing
    retried_errors: type[KubeError] = KubeError
    first_wait_seconds: float = 0.2
    longest_wait_seconds: float = 5.0
    longest_retry_after_seconds: float = 30.0
    patience_seconds: float = float("inf")


class Retries:
    """The repetitions of one request: counts them and says how long to wait. No I/O."""

    __slots__ = ("_backoff", "_policy", "_tries", "_uniform", "_waited_seconds")

    def __init__(self, policy: RetryPolicy, uniform: Callable[[], float]) -> None:
        self._policy = policy
        self._uniform = uniform
        self._tries = 1
        self._waited_seconds = 0.0
        # Most requests are settled by their first try.
        self._backoff: Backoff | None = None

    def next_wait_seconds(self, problem: KubeError | None) -> float | None:
        """Return the wait before the next try after a failed one; None when none is left."""
        policy = self._policy
        if policy.tries is not None and self._tries >= policy.tries:
            return None
        if self._waited_seconds >= policy.patience_seconds:
            return None
        self._tries += 1
        if self._backoff is None:
            self._backoff = Backoff(
                policy.first_wait_seconds, policy.longest_wait_seconds, uniform=self._uniform
            )
        asked_seconds = problem.retry_after_seconds if isinstance(problem, ApiError) else None
        wait_seconds = max(
            self._backoff.next_seconds(),
            bounded_wait(asked_seconds, policy.longest_retry_after_seconds),
        )
        self._waited_seconds += wait_seconds
        return wait_seconds
