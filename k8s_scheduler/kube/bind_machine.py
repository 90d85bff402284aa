"""One bind from submission to its certain end: a state machine without I/O, clock or sleep.

                     submitted
                         │
                         ▼
     ┌──────────────── POST ──── 200, 201 ───────────────────────────────► BOUND
     │  ▲ ▲              │
     │  │ └─ wait ──◄────┤ 429 (Retry-After); not sent (backoff)
     │  │                │   not sent for `not_sent_seconds`, no doubt ──► FAILED not sent
     │  │                │ 4xx, no doubt ────────────────────────────────► FAILED refused, gone
     │  │                │
     │  │                │ 409; 4xx in doubt; 5xx, timeout, reset: from here on IN DOUBT
     │  │                ▼
     │  │             READ ──── on our node ─────────────────────────────► BOUND
     │  │             ▲  │
     │  │    wait ──◄─┴──┤ no answer
     │  │                │ gone, other uid, other node, being deleted ───► FAILED
     │  │                │ unbound or gated, no doubt ───────────────────► FAILED conflict, gated
     │  └──── wait ──◄───┤ unbound or gated, in doubt
     │                   └ ... and refused or not leading, settled ──────► FAILED
     └ may not write: no doubt ──────────────────────────────────────────► FAILED not leading
                      in doubt → READ

Doubt is the heart of it. A POST without an answer may still be executed, minutes later even, as
long as the pod is unbound. So in doubt "unbound" is no end: the same POST to the same node is
sent again until the pod is somewhere or gone. Only two things make that pointless: the server
refuses the repetition, or we may not write any more. Then the bind ends once the pod was read
unbound `settle_seconds` after the last doubtful POST, which is longer than an API server lets a
request live (`--request-timeout`, 60 s unless set): nothing of ours is under way by then.

Invariants: exactly one outcome; `bound` only if the pod was seen or made bound to our node;
failure only if no request of ours can bind it any more. A failure must never be reported because
of an answer that is missing.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from k8s_scheduler.kube.binding import (
    BindFailure,
    BindOutcome,
    BindRequest,
    PostAnswer,
    Posted,
    ReadAnswer,
    Seen,
)
from k8s_scheduler.kube.waiting import bounded_wait
from k8s_scheduler.lib.backoff import Backoff


class Call(Enum):
    """What has to be asked of the server next."""

    POST = auto()
    READ = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPolicy:
    """How long a bind is patient, and with what."""

    backoff_initial_seconds: float = 0.1
    backoff_maximum_seconds: float = 10.0
    retry_after_maximum_seconds: float = 30.0
    not_sent_seconds: float = 30.0
    settle_seconds: float = 120.0


_ENDS = {
    Seen.GONE: BindFailure.GONE,
    Seen.ASSIGNED_ELSEWHERE: BindFailure.ASSIGNED_ELSEWHERE,
    Seen.BEING_DELETED: BindFailure.BEING_DELETED,
}


class BindMachine(msgspec.Struct, eq=False):
    """The state of one bind. Ask `next_call`, do it, tell `posted` or `read`, wait, ask again."""

    request: BindRequest
    policy: BindPolicy
    submitted_at: float
    uniform: Callable[[], float] = random.random
    outcome: BindOutcome | None = None
    # Whether nobody answered the last call: it waits for the server, not for a time.
    is_unheard: bool = False
    _call: Call = Call.POST
    _doubtful_since: float | None = None
    _not_sent_since: float | None = None
    _refusal: PostAnswer | None = None
    _barred: bool = False
    _read_started_at: float = 0.0
    # Most binds never wait.
    _backoff: Backoff | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether a request of ours may yet bind the pod."""
        return self._doubtful_since is not None

    def next_call(self, now: float, *, may_write: bool) -> Call | None:
        """Return what to ask the server now; None when the bind has ended."""
        self._barred = not may_write
        if self.outcome is not None:
            return None
        if self._barred and self._call is Call.POST:
            if not self.in_doubt:
                self.fail(BindFailure.NOT_LEADING, "not leading")
                return None
            self._call = Call.READ
        if self._call is Call.READ:
            self._read_started_at = now
        return self._call

    def posted(self, answer: PostAnswer, now: float) -> float:
        """Take the answer to a POST; return the seconds to wait before `next_call`."""
        self._hear(heard=answer.heard)
        not_sent_since, self._not_sent_since = self._not_sent_since, None
        match answer.kind:
            case Posted.BOUND:
                self._succeed()
            case Posted.UNKNOWN:
                self._doubtful_since = now
                self._refusal = None
                self._call = Call.READ
            case Posted.THROTTLED:
                return self._throttled_seconds(answer)
            case Posted.NOT_SENT:
                return self._not_sent(answer, now, since=not_sent_since)
            case Posted.CONFLICT | Posted.GONE:
                # The pod says why; and a 404 may be somebody else's, who knows nothing of pods.
                self._refusal = answer
                self._call = Call.READ
            case Posted.REFUSED:
                self._refuse(answer)
        return 0.0

    def read(self, answer: ReadAnswer) -> float:
        """Take what the pod looks like; return the seconds to wait before `next_call`."""
        self._hear(heard=answer.heard)
        match answer.kind:
            case Seen.ON_OUR_NODE:
                self._succeed()
            case Seen.GONE | Seen.ASSIGNED_ELSEWHERE | Seen.BEING_DELETED:
                self.fail(_ENDS[answer.kind], answer.message)
            case Seen.GATED | Seen.UNBOUND:
                return self._unbound(answer)
            case Seen.REFUSED if not self.in_doubt:
                # The POST was answered with 409 or 404, so nothing of ours was executed.
                self._fail_by_refusal(BindFailure.CONFLICT, answer.message)
            case Seen.REFUSED | Seen.UNKNOWN:
                return self._backoff_seconds()
        return 0.0

    def fail(self, reason: BindFailure, message: str) -> None:
        """End in failure; the caller vouches for its being certain."""
        request = self.request
        self.outcome = BindOutcome(
            request.uid, request.attempt, request.node, bound=False, reason=reason, message=message
        )

    def _hear(self, *, heard: bool) -> None:
        if heard and self.is_unheard:
            # It is back: how long it was away is no reason to wait that long for what comes next.
            self._backoff = None
        self.is_unheard = not heard

    def _succeed(self) -> None:
        request = self.request
        self.outcome = BindOutcome(request.uid, request.attempt, request.node, bound=True)

    def _backoff_seconds(self) -> float:
        if self._backoff is None:
            policy = self.policy
            self._backoff = Backoff(
                policy.backoff_initial_seconds,
                policy.backoff_maximum_seconds,
                uniform=self.uniform,
            )
        return self._backoff.next_seconds()

    def _throttled_seconds(self, answer: PostAnswer) -> float:
        asked = bounded_wait(answer.retry_after_seconds, self.policy.retry_after_maximum_seconds)
        # Never before the server asked for, and not all of us at that very moment.
        return max(asked * (1.0 + 0.5 * self.uniform()), self._backoff_seconds())

    def _not_sent(self, answer: PostAnswer, now: float, *, since: float | None) -> float:
        since = now if since is None else since
        self._not_sent_since = since
        if not self.in_doubt and now - since >= self.policy.not_sent_seconds:
            self.fail(BindFailure.NOT_SENT, f"not sent: {answer.message}")
            return 0.0
        return self._backoff_seconds()

    def _refuse(self, answer: PostAnswer) -> None:
        if self.in_doubt:
            self._refusal = answer
            self._call = Call.READ
        else:
            self.fail(BindFailure.REFUSED, answer.message)

    def _unbound(self, answer: ReadAnswer) -> float:
        pointless = self._refusal is not None or self._barred
        if not self.in_doubt or (pointless and self._settled()):
            reason = BindFailure.CONFLICT
            if answer.kind is Seen.GATED:
                reason = BindFailure.GATED
            elif self._refusal is None:
                reason = BindFailure.NOT_LEADING
            elif self._refusal.kind is not Posted.CONFLICT:
                reason = BindFailure.REFUSED
            self._fail_by_refusal(reason, answer.message)
            return 0.0
        self._call = Call.POST
        return self._backoff_seconds()

    def _fail_by_refusal(self, reason: BindFailure, message: str) -> None:
        refusal = self._refusal.message if self._refusal is not None else ""
        self.fail(reason, refusal or message or str(reason))

    def _settled(self) -> bool:
        since = self._doubtful_since
        return since is None or self._read_started_at - since >= self.policy.settle_seconds
