"""Asks the API server for the user of a token (TokenReview) and its rights (SubjectAccessReview).

Reviews change nothing, so one without an answer is repeated, a few times and within one deadline.
After that the review fails with an exception: a missing answer never grants a right.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from k8s_scheduler.kube.errors import (
    UNREADABLE,
    KubeError,
    OutcomeUnknown,
    TransportError,
)
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy
from k8s_scheduler.kube.http.protocol import Response, Transport
from k8s_scheduler.kube.http.response_meaning import is_unavailable

TOKEN_REVIEWS: Final = "tokenreviews.authentication.k8s.io"  # noqa: S105  a resource
ACCESS_REVIEWS: Final = "subjectaccessreviews.authorization.k8s.io"
ANONYMOUS: Final = "system:anonymous"
UNAUTHENTICATED: Final = "system:unauthenticated"
AUTHENTICATED: Final = "system:authenticated"

# kube-scheduler's deadline for both.
REVIEW_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.25
_WHO_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_MAY_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class User:
    """A user, as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS_USER: Final = User(ANONYMOUS, groups=(UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class Permission:
    """The API server's answer about one right of a user; `reason` may be empty."""

    allowed: bool
    reason: str = ""


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


Review = TypeVar("Review", _TokenReview, _AccessReview)


# A missing credential does not come back within a second, so it is not asked for again.
_POLICY: Final = RetryPolicy(
    tries=3,
    is_retried=is_unavailable,
    retried_errors=TransportError,
    first_wait_seconds=_PAUSE_SECONDS,
    longest_wait_seconds=_PAUSE_SECONDS,
    longest_retry_after_seconds=0.0,
)


class Reviewer:
    """Sends reviews; the two kinds may go to different servers. Raises KubeError."""

    def __init__(self, authentication: Transport, authorization: Transport) -> None:
        self._authentication = Caller(transport=authentication, timeout_seconds=REVIEW_SECONDS)
        self._authorization = Caller(transport=authorization, timeout_seconds=REVIEW_SECONDS)

    async def authenticate(self, token: str) -> User | None:
        """Return the user of a token; None if the server does not know it."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        review = await _ask(self._authentication, _WHO_PATH, body, _TokenReview)
        user = review.status.user
        if not review.status.authenticated:
            return None
        groups = tuple(user.groups or ())
        return User(
            user.username,
            uid=user.uid,
            groups=groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED),
            extra={key: tuple(values) for key, values in (user.extra or {}).items()},
        )

    async def authorize(self, user: User, *, verb: str, path: str) -> Permission:
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        }
        review = await _ask(self._authorization, _MAY_PATH, body, _AccessReview)
        return Permission(review.status.allowed, review.status.reason)


async def _ask(caller: Caller, path: str, body: Mapping[str, object], kind: type[Review]) -> Review:
    encoded = msgspec.json.encode(body)
    try:
        async with asyncio.timeout(REVIEW_SECONDS):
            response = await _post(caller, path, encoded)
    except TimeoutError:
        raise OutcomeUnknown(f"no answer within {REVIEW_SECONDS:.0f} s") from None
    if not response.ok:
        raise response.error()
    try:
        return msgspec.json.decode(response.body, type=kind)
    except UNREADABLE as error:
        raise KubeError(f"the answer is no review: {error}") from error


async def _post(caller: Caller, path: str, body: bytes) -> Response:
    """Return the definite answer; raises the last problem when no try got one."""
    tries = caller.tries(_POLICY)
    async for _ in tries:
        response = await tries.send("POST", path, body=body)
        if response is not None:
            return response
    raise tries.problem or KubeError("the review was not sent")
