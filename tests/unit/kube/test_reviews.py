"""Questions to the API server about people and their rights."""

import pytest

from k8s_scheduler.kube.errors import Forbidden, KubeError, NotSent, OutcomeUnknown, ServerError
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.reviews import ANONYMOUS_USER, Permission, Reviewer, User
from tests.fakes.clock import virtual_time
from tests.fakes.transport import FakeTransport, encode, status

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SCRAPER = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "u1",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["p-0"]},
}


def review(**answer) -> Response:
    return Response(201, encode({"kind": "Review", "status": answer}))


def reviewer(path, *answers):
    api = FakeTransport()
    api.script("POST", path, *answers)
    return api, Reviewer(api, api)


async def test_a_known_token_has_an_owner():
    api, asks = reviewer(TOKENS, review(authenticated=True, user=SCRAPER))
    user = await asks.authenticate("t0ken")
    assert user == User(
        "system:serviceaccount:monitoring:prometheus",
        uid="u1",
        groups=("system:serviceaccounts", "system:authenticated"),
        extra={"authentication.kubernetes.io/pod-name": ("p-0",)},
    )
    (asked,) = api.requests
    assert asked.json() == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "t0ken"},
    }


async def test_whoever_is_known_is_authenticated():
    _, asks = reviewer(TOKENS, review(authenticated=True, user={"username": "a"}))
    user = await asks.authenticate("x")
    assert user.groups == ("system:authenticated",)


@pytest.mark.parametrize("answer", [{}, {"authenticated": False, "error": "expired"}])
async def test_an_unknown_token_has_none(answer):
    _, asks = reviewer(TOKENS, review(**answer))
    assert await asks.authenticate("x") is None


async def test_all_that_is_known_of_somebody_is_part_of_the_question():
    api, asks = reviewer(ACCESS, review(allowed=True, reason="by a role"))
    user = User("a", uid="u", groups=("g",), extra={"k": ("v", "w")})
    assert await asks.authorize(user, verb="get", path="/metrics") == Permission(
        allowed=True, reason="by a role"
    )
    (asked,) = api.requests
    assert asked.json()["spec"] == {
        "user": "a",
        "uid": "u",
        "groups": ["g"],
        "extra": {"k": ["v", "w"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@virtual_time
async def test_a_server_with_a_bad_moment_is_asked_again():
    api, asks = reviewer(
        ACCESS, OutcomeUnknown("reset"), status(503, "ServiceUnavailable"), review(allowed=True)
    )
    assert (await asks.authorize(ANONYMOUS_USER, verb="get", path="/")).allowed
    assert len(api.requests) == 3


@pytest.mark.parametrize(
    ("answers", "expected", "asked"),
    [
        ([NotSent("refused")] * 3, NotSent, 3),
        ([status(500, "InternalError")] * 3, ServerError, 3),
        ([status(403, "Forbidden", "no")], Forbidden, 1),
        ([Response(201, b"{}")], KubeError, 1),
        ([Response(201, b"<html>")], KubeError, 1),
        ([Response(201, b'{"x":' + b"[" * 9999)], KubeError, 1),
        ([review(reason="nothing said of allowed")], KubeError, 1),
    ],
    ids=["away", "broken", "forbidden", "empty", "no JSON", "deep", "half an answer"],
)
def test_no_answer_is_an_error_and_never_a_yes(answers, expected, asked):
    @virtual_time
    async def ask():
        api, asks = reviewer(ACCESS, *answers)
        with pytest.raises(expected):
            await asks.authorize(ANONYMOUS_USER, verb="get", path="/")
        assert len(api.requests) == asked

    ask()
