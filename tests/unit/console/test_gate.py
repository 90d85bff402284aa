"""Who may see which page, and that nothing but a clear yes opens the door."""

import asyncio
import logging

import pytest

from k8s_scheduler.console import gate as gates
from k8s_scheduler.console.gate import (
    CACHE_SIZE,
    GateTimes,
    HealthOnly,
    Knock,
    ReviewingGate,
)
from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.turns import (
    PER_ADDRESS_BURST,
    PER_ADDRESS_PER_SECOND,
    REVIEWS_AT_ONCE,
    STRANGERS_PER_SECOND,
    WAITING_MOST,
)
from k8s_scheduler.kube.errors import Forbidden, NotSent
from k8s_scheduler.kube.reviews import ANONYMOUS_USER, Permission, User
from tests.fakes.clock import FakeClock

SCRAPER = User("scraper", uid="u", groups=("g", "system:authenticated"))
YES, NO = Permission(allowed=True), Permission(allowed=False)


class Reviews:
    """Knows tokens and rights, and counts how often it was asked."""

    def __init__(self, users=None, rights=None):
        self.users = {"good": SCRAPER} if users is None else users
        self.rights = {("scraper", "get", "/metrics")} if rights is None else rights
        self.tokens: list[str] = []
        self.questions: list[tuple[str, str, str]] = []
        self.failure: Exception | None = None
        self.most_at_once = self._now = 0

    async def authenticate(self, token):
        self.tokens.append(token)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        if self.failure:
            raise self.failure
        return self.users.get(token)

    async def authorize(self, user, *, verb, path):
        self.questions.append((user.name, verb, path))
        if self.failure:
            raise self.failure
        return YES if (user.name, verb, path) in self.rights else NO


def make(reviews=None, clock=None, paths=None, **times):
    return ReviewingGate(
        reviews or Reviews(),
        paths=OpenPaths() if paths is None else OpenPaths(paths),
        times=GateTimes(**times),
        clock=clock or FakeClock(),
    )


def bearing(token, path="/metrics", method="GET", address=""):
    return Knock(method, path, f"Bearer {token}", address=address)


class TestWho:
    """Everybody is somebody: by certificate, by token, or nobody in particular."""

    async def test_a_token_with_the_right_gets_in(self):
        assert await make().admit(bearing("good")) is None

    @pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer   ", "Digest x"])
    async def test_without_a_bearer_token_one_is_anonymous(self, header):
        reviews = Reviews()
        refusal = await make(reviews).admit(Knock("GET", "/metrics", header))
        assert (refusal.status, refusal.message) == (
            403,
            'forbidden: User "system:anonymous" cannot get path "/metrics"',
        )
        assert reviews.tokens == []
        assert reviews.questions == [("system:anonymous", "get", "/metrics")]

    async def test_anonymous_may_be_given_the_right(self):
        reviews = Reviews(rights={(ANONYMOUS_USER.name, "get", "/metrics")})
        assert await make(reviews).admit(Knock("GET", "/metrics")) is None

    @pytest.mark.parametrize("token", ["bad", "bad\udcff", "schlüssel"])
    async def test_an_unknown_token_is_unauthorized_and_no_right_is_asked_for(self, token):
        reviews = Reviews(rights={(ANONYMOUS_USER.name, "get", "/metrics")})
        refusal = await make(reviews).admit(bearing(token))
        assert (refusal.status, refusal.reason, refusal.message) == (
            401,
            "Unauthorized",
            "Unauthorized",
        )
        assert reviews.questions == []

    async def test_a_verified_certificate_goes_before_a_token(self):
        reviews = Reviews(rights={("certified", "get", "/metrics")})
        knock = Knock("GET", "/metrics", "Bearer bad", User("certified"))
        assert await make(reviews).admit(knock) is None
        assert reviews.tokens == []

    async def test_masters_are_not_asked_about(self):
        reviews = Reviews(users={"good": User("admin", groups=("system:masters",))})
        assert await make(reviews).admit(bearing("good", "/anything")) is None
        assert reviews.questions == []


class TestWhat:
    """Every path but the open ones, whatever is or will be there."""

    @pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
    async def test_health_asks_nobody_whatever_is_shown(self, path):
        reviews = Reviews()
        for header in ("", "Bearer bad"):
            assert await make(reviews).admit(Knock("GET", path, header)) is None
        assert (reviews.tokens, reviews.questions) == ([], [])

    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/metrics/slis",
            "/metrics/resources",
            "/configz",
            "/healthz/",
            "/healthz/ping",
            "/livezz",
            "//livez",
            "/livez/../metrics",
            "/metrics/../livez",
            "/LIVEZ",
            "livez/x",
        ],
    )
    async def test_everything_else_is_asked_about_by_its_own_name(self, path):
        reviews = Reviews()
        refusal = await make(reviews).admit(bearing("good", path))
        assert refusal.message == f'forbidden: User "scraper" cannot get path "{path}"'
        assert reviews.questions == [("scraper", "get", path)]

    @pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS"])
    async def test_the_verb_is_the_method(self, method):
        refusal = await make().admit(bearing("good", method=method))
        assert refusal.message == (
            f'forbidden: User "scraper" cannot {method.lower()} path "/metrics"'
        )

    async def test_what_the_authorizer_says_is_passed_on(self):
        class Strict(Reviews):
            async def authorize(self, user, *, verb, path):
                return Permission(allowed=False, reason="not on Sundays")

        refusal = await make(Strict()).admit(bearing("good"))
        assert refusal.message.endswith('path "/metrics": not on Sundays')

    async def test_open_paths_may_be_chosen(self):
        door = make(paths=["/metrics*", "/exact"])
        for path in ("/metrics", "/metrics/slis", "/exact"):
            assert await door.admit(Knock("GET", path)) is None
        for path in ("/livez", "/exactly", "/"):
            assert (await door.admit(Knock("GET", path))).status == 403

    def test_a_star_in_the_middle_is_refused(self):
        with pytest.raises(ValueError, match=r'only trailing \* allowed in "a\*b"'):
            OpenPaths(["/a*b"])

    async def test_without_anybody_to_ask_only_health_is_shown(self):
        assert await HealthOnly().admit(Knock("GET", "/livez")) is None
        assert (await HealthOnly().admit(bearing("good"))).status == 403


class TestFailures:
    """A review that fails keeps the door shut, and is told to the operator."""

    async def test_a_token_that_cannot_be_looked_up_is_unauthorized(self, caplog):
        reviews = Reviews()
        reviews.failure = NotSent("connection refused")
        door = make(reviews)
        assert (await door.admit(bearing("good"))).status == 401
        assert "create tokenreviews.authentication.k8s.io: connection refused" in caplog.text
        reviews.failure = None
        assert await door.admit(bearing("good")) is None  # a failure is not remembered

    async def test_a_right_that_cannot_be_looked_up_is_an_internal_error(self, caplog):
        reviews = Reviews()
        door = make(reviews)
        assert await door.admit(bearing("good")) is None
        reviews.failure = NotSent("connection refused")
        refusal = await door.admit(bearing("good", "/configz"))
        assert refusal.status == 500
        assert "create subjectaccessreviews.authorization.k8s.io: connection" in caplog.text

    @pytest.mark.parametrize(
        ("knock", "resource"),
        [
            (bearing("good"), "tokenreviews.authentication.k8s.io"),
            (Knock("GET", "/metrics"), "subjectaccessreviews.authorization.k8s.io"),
        ],
    )
    async def test_a_missing_right_of_ours_is_named(self, knock, resource, caplog):
        reviews = Reviews()
        plural, _, group = resource.partition(".")
        text = f'User "us" cannot create resource "{plural}" in API group "{group}"'
        reviews.failure = Forbidden(text, status=403)
        assert (await make(reviews).admit(knock)).status in {401, 500}
        assert f"missing permission: create {resource}: {text}" in caplog.text

    async def test_a_failure_is_said_once_a_minute(self, caplog):
        reviews, clock = Reviews(), FakeClock()
        reviews.failure = NotSent("refused")
        door = make(reviews, clock)
        for number in range(20):
            await door.admit(bearing("good", address=f"a{number}"))
        assert len(caplog.records) == 1
        assert caplog.records[0].levelno == logging.WARNING
        clock.advance(60)
        await door.admit(bearing("good"))
        assert "19 more" in caplog.text


class TestMemory:
    """Answers are good for a while; the caches have bounds and know no token."""

    async def test_a_scraper_is_asked_about_once_in_a_while(self):
        reviews, clock = Reviews(), FakeClock()
        door = make(reviews, clock)
        for _ in range(5):
            assert await door.admit(bearing("good")) is None
        assert (len(reviews.tokens), len(reviews.questions)) == (1, 1)
        clock.advance(10)
        await door.admit(bearing("good"))
        assert (len(reviews.tokens), len(reviews.questions)) == (2, 2)

    async def test_a_no_is_remembered_too(self):
        reviews = Reviews()
        door = make(reviews)
        for _ in range(5):
            await door.admit(bearing("bad"))
            await door.admit(bearing("good", "/configz"))
        assert sorted(reviews.tokens) == ["bad", "good"]
        assert len(reviews.questions) == 1

    async def test_each_kind_of_answer_has_a_time_of_its_own(self):
        reviews, clock = Reviews(), FakeClock()
        door = make(reviews, clock, token_seconds=30, allowed_seconds=20, denied_seconds=0)
        for _ in range(2):
            await door.admit(bearing("good"))
            await door.admit(bearing("good", "/configz"))
            clock.advance(15)
        assert reviews.tokens == ["good"]
        assert [path for _, _, path in reviews.questions].count("/metrics") == 1
        assert [path for _, _, path in reviews.questions].count("/configz") == 2
        clock.advance(5)
        await door.admit(bearing("good"))
        assert [path for _, _, path in reviews.questions].count("/metrics") == 2

    async def test_other_groups_are_another_question(self):
        reviews = Reviews(rights={("a", "get", "/metrics")})
        door = make(reviews)
        for groups in (("x",), ("y",)):
            await door.admit(Knock("GET", "/metrics", certified=User("a", groups=groups)))
        assert len(reviews.questions) == 2

    async def test_made_up_tokens_and_paths_do_not_fill_the_memory(self):
        clock = FakeClock()
        door = make(clock=clock, token_seconds=1e9, allowed_seconds=1e9, denied_seconds=1e9)
        for number in range(3 * CACHE_SIZE):
            clock.advance(1.0)
            await door.admit(bearing(f"made-up-{number}"))
            await door.admit(bearing("good", f"/made-up/{number}"))
        assert len(door._users) == len(door._rights) == CACHE_SIZE

    async def test_no_token_is_kept_or_shown(self):
        door = make()
        knock = bearing("good")
        await door.admit(knock)
        assert all(isinstance(key, bytes) and len(key) == 32 for key in door._users._entries)
        assert b"good" not in b"".join(door._users._entries)
        assert "good" not in repr(knock)


class TestLoad:
    """Clients that can reach the port neither keep us asking nor keep scrapers out."""

    async def test_few_reviews_are_under_way_at_a_time(self):
        reviews = Reviews()
        door = make(reviews)
        await asyncio.gather(*strangers(door, WAITING_MOST))
        assert reviews.most_at_once == REVIEWS_AT_ONCE
        assert len(reviews.tokens) == WAITING_MOST

    async def test_more_than_can_wait_are_turned_away(self, caplog):
        clock = FakeClock()
        door = make(Reviews(), clock)
        asked = asyncio.gather(
            *strangers(door, WAITING_MOST + 8), door.admit(Knock("GET", "/livez"))
        )
        refusals = await asked
        assert [r.status for r in refusals[:-1]].count(429) == 8
        assert refusals[-1] is None
        assert "turned away" in caplog.text
        clock.advance(1.0)
        assert await door.admit(bearing("good", address="new")) is None

    async def test_an_address_is_asked_about_at_a_rate(self):
        clock = FakeClock()
        door = make(Reviews(), clock)
        told = [await door.admit(bearing(f"t{n}", address="one")) for n in range(30)]
        assert [r.status for r in told] == [401] * int(PER_ADDRESS_BURST) + [429] * 10
        clock.advance(1.0)
        told = [await door.admit(bearing(f"u{n}", address="one")) for n in range(10)]
        assert [r.status for r in told].count(401) == PER_ADDRESS_PER_SECOND

    async def test_all_addresses_together_are_asked_about_at_a_rate(self):
        clock = FakeClock()
        reviews = Reviews()
        door = make(reviews, clock)
        for second in range(10):
            for n in range(200):
                await door.admit(bearing(f"{second}-{n}", address=f"10.0.{second}.{n}"))
            clock.advance(1.0)
        assert len(reviews.tokens) <= STRANGERS_PER_SECOND * (10 + 2)

    @pytest.mark.parametrize(
        ("token", "address"),
        [("good", "shared"), ("replaced", "scraper")],
        ids=["token", "address"],
    )
    async def test_scrapers_come_through_however_many_strangers_ask(self, token, address):
        """A scraper is known by its token, and after a rotation by its address."""
        clock = FakeClock()
        users = {name: User("prometheus") for name in ("good", "replaced")}
        door = make(Reviews(users, {("prometheus", "get", "/metrics")}), clock)
        assert await door.admit(bearing("good", address="scraper")) is None
        for second in range(60):
            clock.advance(1.0)
            await asyncio.gather(
                *(door.admit(bearing(f"{second}-{n}", address=f"a{n}")) for n in range(60)),
                *(door.admit(bearing(f"{second}+{n}", address="shared")) for n in range(60)),
            )
            if second % 15 == 14:
                assert await door.admit(bearing(token, address=address)) is None

    async def test_a_token_without_the_right_makes_nobody_known(self):
        door = make(Reviews({"valid": User("pod")}, set()))
        await door.admit(bearing("valid", address="pod"))
        told = [await door.admit(bearing(f"t{n}", address="pod")) for n in range(30)]
        assert [r.status for r in told].count(429) > 0
        assert door._turns._addresses.get("pod") is None


def strangers(door, count):
    return [door.admit(bearing(f"t{n}", address=f"10.0.0.{n}")) for n in range(count)]


def test_the_defaults_are_kube_schedulers():
    assert GateTimes() == GateTimes(token_seconds=10, allowed_seconds=10, denied_seconds=10)
    assert gates.MASTERS == "system:masters"
