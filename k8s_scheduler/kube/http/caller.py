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
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Self

from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.http.protocol import JSON, Response, Transport
from k8s_scheduler.kube.http.retries import Retries, RetryPolicy
from k8s_scheduler.kube.http.throttle import Admit, unlimited
from k8s_scheduler.kube.waiting import Timing


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
