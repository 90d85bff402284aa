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
     │  └──── wait ──◄───┤ unbound or gated, in doubt, sent less than `post_limit` times
     │                   │
     │          wait ──◄─┤ ... sent as often as that: only read from now on
     │                   └ ... and refused, given up or not leading, settled ─► FAILED
     └ may not write: no doubt ──────────────────────────────────────────► FAILED not leading
                      in doubt → READ

A POST without a usable answer may still be executed, as long as the pod is unbound: the bind is in
doubt. So in doubt "unbound" does not end the bind: the same POST to the same node is sent again,
until the pod is bound or gone. That is pointless if the server refuses the repetition, if we may
not write any more, or if `post_limit` POSTs were all in doubt (a webhook that is down makes the
server answer 500 for ever). Then nothing more is sent, and the bind ends once the pod was read
unbound `settle_seconds` after the last doubtful POST.

Why nothing of ours can land after that:

* A bind has one request at a time, and none is sent after the last doubtful one. The transport ends
  a call after a few seconds and closes its connection, so the request has left us by then or never
  will. Its bytes are in the server, or in a proxy on the way, whose own time-outs are of the order
  of a minute.
* kube-apiserver ends a request at `--request-timeout` (60 s by default), and a write after 34 s
  whatever that flag says (`requestTimeoutUpperBound` in its endpoints/handlers). It writes into
  etcd under the same context: no write begins after that is over.
* A write that etcd has taken in by then is an entry in the log of its leader. A leader without a
  quorum steps down within an election timeout (seconds); one that has it commits the entry; a newly
  elected one commits what its log holds of earlier terms before it answers a read, and what its log
  does not hold is lost for good.
* The read names no resourceVersion, so the API server does not answer it from its cache but asks
  etcd, which answers by quorum. Begun 120 s after the last doubtful POST (34 s for the server, the
  rest for proxies and etcd), it shows the pod bound, or no request of ours binds it any more.

An answer that says that admission gave the request up (`binding.is_unstored`) leaves nothing to
land by itself. While the process runs the bind is settled as any other: a proxy may have sent the
request twice. A process that stops goes by the answer and one read: the settling would cost every
namespace a Lease that has to run out.

Invariants: exactly one outcome; `bound` only if the pod was seen or made bound to our node;
failure only if no request of ours can bind it any more. A failure must never be reported because
of an answer that is missing.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from k8s_scheduler.kube.waiting import bounded_wait
from k8s_scheduler.kube.write.binding import (
    BindFailure,
    BindOutcome,
    BindRequest,
    PodSeen,
    PostAnswer,
    Posted,
    ReadAnswer,
)
from k8s_scheduler.lib.backoff import Backoff


class BindStep(Enum):
    """What has to be asked of the server next."""

    POST = auto()
    READ = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPolicy:
    """How long and how often a bind is repeated."""

    backoff_initial_seconds: float = 0.1
    backoff_maximum_seconds: float = 10.0
    retry_after_maximum_seconds: float = 30.0
    not_sent_seconds: float = 30.0
    settle_seconds: float = 120.0
    # So many doubtful POSTs, each followed by a read that shows the pod unbound; with the backoff
    # above that takes about half a minute.
    post_limit: int = 8
    # How often a bind that is not sent any more is read until it is settled.
    settling_read_seconds: float = 30.0


_ENDS = {
    PodSeen.GONE: BindFailure.GONE,
    PodSeen.ASSIGNED_ELSEWHERE: BindFailure.ASSIGNED_ELSEWHERE,
    PodSeen.BEING_DELETED: BindFailure.BEING_DELETED,
}


class BindMachine(msgspec.Struct, eq=False):
    """The state of one bind. Ask `next_call`, do it, tell `posted` or `read`, wait, ask again."""

    request: BindRequest
    policy: BindPolicy
    submitted_at: float
    uniform: Callable[[], float] = random.random
    outcome: BindOutcome | None = None
    # Whether the last call got no answer: the bind waits for the server, not for a time.
    is_unheard: bool = False
    _call: BindStep = BindStep.POST
    _doubtful_since: float | None = None
    _not_sent_since: float | None = None
    _refusal: PostAnswer | None = None
    _barred: bool = False
    _read_started_at: float = 0.0
    # Doubtful POSTs so far, what the last one was answered, and whether any may yet be executed.
    _doubtful_posts: int = 0
    _doubt: str = ""
    _may_land: bool = False
    _stopping: bool = False
    # Most binds never wait.
    _backoff: Backoff | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether a request of ours may yet bind the pod."""
        return self._doubtful_since is not None

    @property
    def doubtful_since(self) -> float | None:
        """When the last request without a usable answer was given up; None if there is none."""
        return self._doubtful_since

    @property
    def is_given_up(self) -> bool:
        """Whether it is not sent any more, and only waits to be settled."""
        return self._doubtful_posts >= self.policy.post_limit

    def next_call(self, now: float, *, may_write: bool, stopping: bool = False) -> BindStep | None:
        """Return what to ask the server now; None when the bind has ended.

        A process that is `stopping` does not send again what admission has given up: one read
        ends it.
        """
        self._stopping = stopping
        self._barred = not may_write or (stopping and self.in_doubt and not self._may_land)
        if self.outcome is not None:
            return None
        if self._barred and self._call is BindStep.POST:
            if not self.in_doubt:
                self.fail(BindFailure.NOT_LEADING, "not leading")
                return None
            self._call = BindStep.READ
        if self._call is BindStep.READ:
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
                self._doubtful_posts += 1
                self._doubt = answer.message
                self._may_land |= answer.may_land
                self._refusal = None
                self._call = BindStep.READ
            case Posted.THROTTLED:
                return self._throttled_seconds(answer)
            case Posted.NOT_SENT:
                return self._not_sent(answer, now, since=not_sent_since)
            case Posted.CONFLICT | Posted.GONE:
                # The pod shows why; and a 404 may be a proxy's, which knows nothing of pods.
                self._refusal = answer
                self._call = BindStep.READ
            case Posted.REFUSED:
                self._refuse(answer)
        return 0.0

    def read(self, answer: ReadAnswer) -> float:
        """Take what the pod looks like; return the seconds to wait before `next_call`."""
        self._hear(heard=answer.heard)
        match answer.kind:
            case PodSeen.ON_OUR_NODE:
                self._succeed()
            case PodSeen.GONE | PodSeen.ASSIGNED_ELSEWHERE | PodSeen.BEING_DELETED:
                self.fail(_ENDS[answer.kind], answer.message)
            case PodSeen.GATED | PodSeen.UNBOUND:
                return self._unbound(answer)
            case PodSeen.REFUSED if not self.in_doubt:
                # The POST was answered with 409 or 404, so nothing of ours was executed.
                self._fail_by_refusal(BindFailure.CONFLICT, answer.message)
            case PodSeen.REFUSED | PodSeen.UNKNOWN:
                return self._backoff_seconds()
        return 0.0

    def fail(self, reason: BindFailure, message: str) -> None:
        """End in failure; the caller must be certain of it."""
        request = self.request
        self.outcome = BindOutcome(
            request.uid, request.attempt, request.node, bound=False, reason=reason, message=message
        )

    def _hear(self, *, heard: bool) -> None:
        if heard and self.is_unheard:
            # The server is back: the waits of the outage must not lengthen those that follow.
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
        # Never sooner than the server asks for, and not all binds at the same moment.
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
            self._call = BindStep.READ
        else:
            self.fail(BindFailure.REFUSED, answer.message)

    def _unbound(self, answer: ReadAnswer) -> float:
        pointless = self._refusal is not None or self._barred or self.is_given_up
        if not self.in_doubt or (pointless and self._settled()):
            self._fail_by_refusal(self._reason(answer.kind), answer.message)
            return 0.0
        if self.is_given_up:
            return self._settling_seconds()
        self._call = BindStep.POST
        return self._backoff_seconds()

    def _reason(self, seen: PodSeen) -> BindFailure:
        if seen is PodSeen.GATED:
            return BindFailure.GATED
        if self._refusal is not None:
            is_conflict = self._refusal.kind is Posted.CONFLICT
            return BindFailure.CONFLICT if is_conflict else BindFailure.REFUSED
        if not self.in_doubt:
            return BindFailure.CONFLICT
        is_ours = self.is_given_up or self._stopping
        return BindFailure.NOT_EXECUTED if is_ours else BindFailure.NOT_LEADING

    def _fail_by_refusal(self, reason: BindFailure, message: str) -> None:
        refusal = self._refusal.message if self._refusal is not None else self._doubt
        self.fail(reason, refusal or message or str(reason))

    def _settled(self) -> bool:
        since = self._doubtful_since
        if since is None or (self._stopping and not self._may_land):
            return True
        return self._read_started_at - since >= self.policy.settle_seconds

    def _settling_seconds(self) -> float:
        """Return the wait before the next read; the one that settles it is the last."""
        policy, since = self.policy, self._doubtful_since or 0.0
        left_seconds = since + policy.settle_seconds - self._read_started_at
        wait_seconds = min(left_seconds, policy.settling_read_seconds)
        # Those that were given up together are not read together.
        return max(wait_seconds, 0.0) + self.uniform()
