"""Asks the API server who somebody is (TokenReview), and what they may do (SubjectAccessReview).

Reviews change nothing, so one without an answer is simply asked for again, a few times and within
one deadline. What is left then is an exception: "nobody said no" is never an answer.
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
    ServerError,
    TooManyRequests,
)
from k8s_scheduler.kube.errors import TransportError as NoAnswer
from k8s_scheduler.kube.http.protocol import Response, Transport

TOKEN_REVIEWS: Final = "tokenreviews.authentication.k8s.io"  # noqa: S105  a resource
ACCESS_REVIEWS: Final = "subjectaccessreviews.authorization.k8s.io"
ANONYMOUS: Final = "system:anonymous"
UNAUTHENTICATED: Final = "system:unauthenticated"
AUTHENTICATED: Final = "system:authenticated"

# kube-scheduler's deadline for both.
REVIEW_SECONDS: Final = 10.0
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.25
_WHO_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_MAY_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


NOBODY: Final = User(ANONYMOUS, groups=(UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class Permission:
    """What the API server says about somebody's right; `reason` may be empty."""

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


class Reviewer:
    """Asks; the two kinds of questions may go to different servers. Raises KubeError."""

    def __init__(self, authentication: Transport, authorization: Transport) -> None:
        self._authentication = authentication
        self._authorization = authorization

    async def authenticate(self, token: str) -> User | None:
        """Return whose token it is; None if the server does not know it."""
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
        """Return whether somebody may do something with a path that is no resource."""
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


async def _ask(
    transport: Transport, path: str, body: Mapping[str, object], kind: type[Review]
) -> Review:
    encoded = msgspec.json.encode(body)
    try:
        async with asyncio.timeout(REVIEW_SECONDS):
            response = await _post(transport, path, encoded)
    except TimeoutError:
        raise OutcomeUnknown(f"no answer within {REVIEW_SECONDS:.0f} s") from None
    if not response.ok:
        raise response.error()
    try:
        return msgspec.json.decode(response.body, type=kind)
    except UNREADABLE as error:
        raise KubeError(f"the answer is no review: {error}") from error


async def _post(transport: Transport, path: str, body: bytes) -> Response:
    """Send it, again if there is no answer or the server has a bad moment."""
    for left in reversed(range(_TRIES)):
        try:
            response = await transport.request(
                "POST", path, body=body, timeout_seconds=REVIEW_SECONDS
            )
        except NoAnswer:
            if not left:
                raise
        else:
            if response.ok or not left:
                return response
            if not isinstance(response.error(), ServerError | TooManyRequests):
                return response
        await asyncio.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")
