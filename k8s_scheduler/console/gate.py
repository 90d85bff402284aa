"""Who may see a page: every client for health, for the rest those that the API server allows.

As kube-scheduler does it, for every path there is and will be:

    open path ─────────────────────────────────────────────────────► served
    client certificate, bearer token, or neither: system:anonymous
      └─ TokenReview ── unknown ─► 401       no answer ─► 401 and a log line
           └─ SubjectAccessReview ─ no ─► 403    no answer ─► 500 and a log line
                └─ yes ────────────────────────────────────────────► served

Whatever goes wrong on the way keeps the door shut. Answers are kept for a few seconds, so that a
scraper costs the API server next to nothing, in caches of a fixed size: a stream of made-up tokens
cannot fill the memory. A token is never kept: the caches know it by its HMAC under a key of this
process. How many reviews are made, and for which client first, is in `turns.py`: a client that can
reach the port cannot keep the API server busy through us, nor keep scrapers out.

One difference from kube-scheduler: an open path is open also to a client with a bad token, which
would get 401 there. Health must not depend on whether the API server can be asked.
"""

import hashlib
import hmac
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.turns import BusyError, ReviewTurns
from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import Forbidden, KubeError
from k8s_scheduler.kube.reviews import (
    ACCESS_REVIEWS,
    ANONYMOUS_USER,
    TOKEN_REVIEWS,
    Permission,
    User,
)
from k8s_scheduler.lib.expiring import ExpiringCache

logger = logging.getLogger(__name__)

DEFAULT_TTL_SECONDS: Final = 10.0
CACHE_SIZE: Final = 1024
# A member of this group may do everything, at every API server: no need to ask.
MASTERS: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class Knock:
    """A request, as far as the door is concerned."""

    method: str
    path: str
    authorization: str = field(default="", repr=False)
    # Who the client's certificate names, if there was one and it was verified.
    certified: User | None = None
    # Where the connection comes from.
    address: str = ""

    @property
    def token(self) -> str:
        """The bearer token; empty if there is none."""
        scheme, _, rest = self.authorization.strip().partition(" ")
        return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a page is not shown: an HTTP status, the API's word for it, and a text."""

    status: int
    reason: str
    message: str


class Gate(Protocol):
    """Decides who is let in."""

    async def admit(self, knock: Knock) -> Refusal | None:
        """Return None for a client that may see the page."""
        ...


class Reviews(Protocol):
    """Knows people and their rights: `kube.reviews.Reviewer`."""

    async def authenticate(self, token: str) -> User | None:
        """Return whose token it is, or None."""
        ...

    async def authorize(self, user: User, *, verb: str, path: str) -> Permission:
        """Return whether the user may do this with the path."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTimes:
    """How long answers are good for."""

    token_seconds: float = DEFAULT_TTL_SECONDS
    allowed_seconds: float = DEFAULT_TTL_SECONDS
    denied_seconds: float = DEFAULT_TTL_SECONDS


UNAUTHORIZED: Final = Refusal(401, "Unauthorized", "Unauthorized")
_BUSY: Final = Refusal(429, "TooManyRequests", "too many requests, please try again later")


class HealthOnly:
    """Shows open paths and nothing else: what is served without an API server to ask."""

    def __init__(self, paths: OpenPaths | None = None) -> None:
        self._open = OpenPaths() if paths is None else paths

    async def admit(self, knock: Knock) -> Refusal | None:
        """Let in for open paths."""
        return None if knock.path in self._open else _forbidden(ANONYMOUS_USER, knock)


class ReviewingGate:
    """Asks the API server about everybody, and remembers for a while."""

    def __init__(
        self,
        reviews: Reviews,
        *,
        paths: OpenPaths,
        times: GateTimes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reviews = reviews
        self._open = paths
        self._times = times
        self._key = os.urandom(32)
        self._users: ExpiringCache[bytes, tuple[User | None]] = ExpiringCache(
            size=CACHE_SIZE, clock=clock
        )
        self._rights: ExpiringCache[bytes, Permission] = ExpiringCache(size=CACHE_SIZE, clock=clock)
        self._turns = ReviewTurns(clock)
        self._log = BoundedLog(logger, clock)

    async def admit(self, knock: Knock) -> Refusal | None:
        """Return None for a client that may see the page."""
        if knock.path in self._open:
            return None
        try:
            return await self._judge(knock)
        except BusyError:
            self._log.warning("busy", "requests are turned away: too many need a review")
            return _BUSY

    async def _judge(self, knock: Knock) -> Refusal | None:
        user, token = knock.certified, b""
        if user is None and knock.token:
            token = self._digest(knock.token.encode("utf-8", "surrogateescape"))
            try:
                user = await self._whose(knock, token)
            except KubeError as error:
                self._complain(TOKEN_REVIEWS, error)
                user = None
            if user is None:
                return UNAUTHORIZED
        user = user or ANONYMOUS_USER
        if MASTERS in user.groups:
            return None
        try:
            permission = await self._permission(user, knock, token)
        except KubeError as error:
            self._complain(ACCESS_REVIEWS, error)
            text = f'Internal Server Error: "{knock.path}": the right could not be looked up'
            return Refusal(500, "InternalError", text)
        if not permission.allowed:
            return _forbidden(user, knock, permission.reason)
        self._turns.let_in(token, knock.address)
        return None

    async def _whose(self, knock: Knock, token: bytes) -> User | None:
        if not knock.token.isascii():
            return None
        known = self._users.get(token)
        if known is None:
            async with self._turns.turn(token, knock.address):
                known = (await self._reviews.authenticate(knock.token),)
            self._users.put(token, known, seconds=self._times.token_seconds)
        return known[0]

    async def _permission(self, user: User, knock: Knock, token: bytes) -> Permission:
        verb = knock.method.lower()
        extra = {key: list(values) for key, values in sorted(user.extra.items())}
        about = [user.name, user.uid, list(user.groups), extra, verb, knock.path]
        key = self._digest(msgspec.json.encode(about))
        known = self._rights.get(key)
        if known is None:
            async with self._turns.turn(token, knock.address):
                known = await self._reviews.authorize(user, verb=verb, path=knock.path)
            times = self._times
            seconds = times.allowed_seconds if known.allowed else times.denied_seconds
            self._rights.put(key, known, seconds=seconds)
        return known

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, hashlib.sha256)

    def _complain(self, resource: str, error: KubeError) -> None:
        if isinstance(error, Forbidden):
            self._log.forbidden("create", resource, namespace="", error=error)
        else:
            text = "cannot find out who may see a page: create %s: %s"
            self._log.warning(resource, text, resource, error)


def _forbidden(user: User, knock: Knock, reason: str = "") -> Refusal:
    """Word a refusal as kube-scheduler does."""
    text = f'forbidden: User "{user.name}" cannot {knock.method.lower()} path "{knock.path}"'
    return Refusal(403, "Forbidden", f"{text}: {reason}" if reason else text)
