"""One write that a pod waits for, from submission to its certain end: no I/O, clock or sleep.

    CALL ── success ──► the next call, or DONE after the last
     ▲ │
     │ ├─ what it is about is gone, and that is fine ─────────────────────► DONE
     │ ├─ 429, 5xx, no answer, not sent: wait, at most `TRIES` times ─┐
     └─┴──────────────────────────────────────────────────────────────┘
       └─ refused, or tried as often as that ─────────────────────────────► FAILED
          ... and a DELETE of which nothing is known was among the tries:
          LOOK ── gone, another uid, on its way out ──────────────────────► DONE
           ▲ │
           └─┤ no answer: wait
             └ there, and not on its way out: wait; settled ──────────────► FAILED

A preemption that gets "failed" starts again and may choose other victims, so FAILED must not be
reported before it is certain that the first victims stay. A DELETE without a usable answer may be
executed later, so the victim is read until its fate is known. It is certain to stay once it was
read without a deletionTimestamp `SETTLE_SECONDS` after the last doubtful DELETE was given up: by
then the API server has dropped every such request (`bind_machine` has the argument).
"""

import random
from collections.abc import Callable
from typing import Final

import msgspec

from k8s_scheduler.api.meta import Wire
from k8s_scheduler.kube.errors import UNREADABLE, KubeError, OutcomeUnknown
from k8s_scheduler.kube.http.caller import Retries, RetryPolicy
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.response_meaning import (
    is_doubtful,
    is_gone,
    is_missing,
    is_overtaken,
    is_passing,
)
from k8s_scheduler.kube.write.write_requests import WriteCall, WriteOutcome, WriteRequest
from k8s_scheduler.lib.backoff import Backoff

TRIES: Final = 5
SETTLE_SECONDS: Final = 120.0
_LONGEST_WAIT_SECONDS: Final = 30.0
# Which answers are retried depends on the call as well: `_is_worth_another_try`.
_POLICY: Final = RetryPolicy(tries=TRIES, longest_retry_after_seconds=_LONGEST_WAIT_SECONDS)


class _Metadata(Wire, frozen=True, gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Victim(Wire, frozen=True, gc=False):
    metadata: _Metadata


_decode_victim = msgspec.json.Decoder(_Victim).decode


class WriteMachine:
    """The state of one request. Do `call`, or read its object while `is_looking`; tell; wait."""

    def __init__(
        self, request: WriteRequest, *, uniform: Callable[[], float] = random.random
    ) -> None:
        self.request = request
        self.outcome: WriteOutcome | None = None
        # Whether the object is to be read, instead of `call` being made.
        self.is_looking = False
        self._uniform = uniform
        self._look_backoff = Backoff(1.0, _LONGEST_WAIT_SECONDS, uniform=uniform)
        self._position = 0
        self._begin_call()

    def _begin_call(self) -> None:
        self._retries = Retries(_POLICY, self._uniform)
        self._problem = ""
        # When the last try was given up that may have been executed.
        self._doubtful_since: float | None = None

    @property
    def call(self) -> WriteCall:
        """The current call: the next to make, or the one that is being settled."""
        return self.request.calls[self._position]

    @property
    def _is_lost_delete(self) -> bool:
        return self._doubtful_since is not None and self.call.method == "DELETE"

    # Results of a call; each method returns the seconds to wait before the next call

    def answered(self, answer: Response, now: float) -> float:
        if answer.ok:
            self._position += 1
            if self._position == len(self.request.calls):
                self._end(done=True)
            else:
                self._begin_call()
            return 0.0
        if self.call.gone_is_fine and is_gone(answer):
            # An earlier try of which nothing is known may have been the one that deleted it.
            self._end(done=True, gone=not self._is_lost_delete)
            return 0.0
        error = answer.error()
        self._problem = error.message
        if not _is_worth_another_try(self.call, answer):
            return self._give_up()
        if is_doubtful(answer):
            self._doubtful_since = now
        return self._try_again(error)

    def unanswered(self, error: KubeError, now: float) -> float:
        self._problem = str(error)
        if isinstance(error, OutcomeUnknown):
            self._doubtful_since = now
        return self._try_again(error)

    def seen(self, answer: Response | None, started_at: float) -> float:
        """Take the answer to a read that began at `started_at`; None if there was none."""
        if answer is not None and is_missing(answer):
            self._end(done=True)
            return 0.0
        victim = None if answer is None or not answer.ok else _read(answer)
        if victim is None:
            return self._look_seconds()
        metadata = victim.metadata
        if metadata.uid != self.call.uid or metadata.deletion_timestamp:
            self._end(done=True)
            return 0.0
        settled_at = (self._doubtful_since or 0.0) + SETTLE_SECONDS
        if started_at < settled_at:
            return min(self._look_seconds(), settled_at - started_at)
        self._end(done=False, message=self._problem)
        return 0.0

    def _look_seconds(self) -> float:
        return max(self._look_backoff.next_seconds(), 1.0)

    def _try_again(self, error: KubeError) -> float:
        wait_seconds = self._retries.next_wait_seconds(error)
        return self._give_up() if wait_seconds is None else wait_seconds

    def _give_up(self) -> float:
        if self._is_lost_delete:
            self.is_looking = True
        else:
            self._end(done=False, message=self._problem)
        return 0.0

    def _end(self, *, done: bool, gone: bool = False, message: str = "") -> None:
        request = self.request
        self.outcome = WriteOutcome(
            request.uid, request.attempt, request.request, done=done, gone=gone, message=message
        )


def _read(answer: Response) -> _Victim | None:
    try:
        return _decode_victim(answer.body)
    except UNREADABLE:
        return None


def _is_worth_another_try(call: WriteCall, answer: Response) -> bool:
    """Return whether the same call may get another answer."""
    if is_passing(answer):
        return True
    # A call that names a version is settled by another write in between.
    return call.gone_is_fine and is_overtaken(answer)
