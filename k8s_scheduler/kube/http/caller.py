"""The one way to make requests that are repeated: admission, leadership, time limit, tries.

    tries ──► admit: wait for the rate limit
      ▲         │
      │       may it begin? ───────────────── no ──► stopped
      │         │
      │       send ───────── the answer settles it ──► the caller leaves the loop
      │         │ no answer, or one that the policy retries
      │       may it be repeated? ─────────── no ──► stopped
      │         │
      └─ wait ──┴─ no try left ──────────────────► given up

Leadership is asked for after admission and once more when the first byte is about to leave: both
admission and a new connection can take long, and a write must not start on an old answer.

How often a request is repeated, and after which answers, is a policy: a value, one for each use.
The waits double between two bounds, with jitter; where the server asks for a longer wait in
`Retry-After`, that one counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Self

from k8s_scheduler.kube.errors import ApiError, KubeError
from k8s_scheduler.kube.http.protocol import JSON, Response, Transport
from k8s_scheduler.kube.http.response_meaning import is_passing
from k8s_scheduler.kube.http.throttle import Admit, unlimited
from k8s_scheduler.kube.waiting import Timing, bounded_wait
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


def always() -> bool:
    """Return True: for requests that need no leadership."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What all requests of one part of the process share.

    For writes about pods `timeout_seconds` must stay below lease duration minus renew deadline: a
    write that starts at the last moment then ends before another replica can lead.
    """

    transport: Transport
    may_write: Callable[[], bool] = always
    admit: Admit = unlimited
    timeout_seconds: float
    timing: Timing = field(default_factory=Timing)

    async def send(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = JSON
    ) -> Response:
        return await self.transport.request(
            method,
            path,
            body=body,
            content_type=content_type,
            timeout_seconds=self.timeout_seconds,
            may_send=None if method == "GET" else self.may_write,
        )

    def tries(
        self,
        policy: RetryPolicy,
        *,
        may_begin: Callable[[], bool] | None = None,
        may_repeat: Callable[[], bool] = always,
    ) -> "Tries":
        return Tries(
            self,
            policy,
            may_begin=self.may_write if may_begin is None else may_begin,
            may_repeat=may_repeat,
        )


class Tries:
    """One request: `async for` gives a turn for each try. Leave the loop when it is settled.

    After the loop `was_stopped` tells a request that may not go on from one that has used up its
    tries; `problem` is why the last try settled nothing.
    """

    __slots__ = (
        "_caller",
        "_is_begun",
        "_may_begin",
        "_may_repeat",
        "_policy",
        "_retries",
        "problem",
        "was_stopped",
    )

    def __init__(
        self,
        caller: Caller,
        policy: RetryPolicy,
        *,
        may_begin: Callable[[], bool],
        may_repeat: Callable[[], bool],
    ) -> None:
        self._caller = caller
        self._policy = policy
        self._may_begin = may_begin
        self._may_repeat = may_repeat
        self._retries = Retries(policy, caller.timing.uniform)
        self._is_begun = False
        self.was_stopped = False
        self.problem: KubeError | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> None:
        caller = self._caller
        if self._is_begun:
            if not self._may_repeat():
                self._stop()
            wait_seconds = self._retries.next_wait_seconds(self.problem)
            if wait_seconds is None:
                raise StopAsyncIteration
            await caller.timing.sleep(wait_seconds)
        self._is_begun = True
        self.problem = None
        if caller.admit is not unlimited:
            await caller.admit()
        if not self._may_begin():
            self._stop()

    async def send(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = JSON
    ) -> Response | None:
        """Return the answer if it is definite by the policy; None if the request is repeated."""
        try:
            answer = await self._caller.send(method, path, body=body, content_type=content_type)
        except self._policy.retried_errors as error:
            self.problem = error
            return None
        if not answer.ok and self._policy.is_retried(answer):
            self.problem = answer.error()
            return None
        return answer

    def _stop(self) -> NoReturn:
        self.was_stopped = True
        raise StopAsyncIteration
