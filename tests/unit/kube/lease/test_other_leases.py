"""Leases of others: whatever is on them, they are read in bounded pieces, one by one."""

import pytest

from k8s_scheduler.kube.errors import Forbidden, KubeError, NotSent
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.lease.holder_liveness import USUAL_SECONDS, HolderLiveness, Liveness
from k8s_scheduler.kube.lease.other_leases import (
    MOST_LEASES,
    MOST_NOTE_CHARACTERS,
    PAGE_LEASES,
    OtherLease,
    labelled_leases,
    one_lease,
)
from tests.fakes.api import FakeApi
from tests.fakes.clock import FakeClock
from tests.fakes.transport import encode, status

LEASES = "/apis/coordination.k8s.io/v1/leases"
LABEL, NOTE = "example.com/label", "example.com/note"


def make_lease(api, name, namespace="a", *, labelled=True, note=None, **spec):
    metadata = {"name": name, "namespace": namespace}
    if labelled:
        metadata["labels"] = {LABEL: "true"}
    if note is not None:
        metadata["annotations"] = {NOTE: note}
    spec = {"holderIdentity": "h", "leaseDurationSeconds": 15, **spec}
    api.create(LEASES, {"metadata": metadata, "spec": spec})


async def look(api, **options):
    return await labelled_leases(api, LABEL, note=NOTE, timeout_seconds=1.0, **options)


class TestLooking:
    """What is asked for, and what is kept of the answer."""

    async def test_a_lease_is_told_with_what_matters(self):
        api = FakeApi()
        make_lease(api, "one", note="text")
        make_lease(api, "not ours", labelled=False)
        found = await look(api)
        assert found.complete
        (lease,) = found.leases
        assert (lease.key, lease.holder, lease.note) == ("a/one", "h", "text")
        assert lease.duration_seconds == 15.0
        assert lease.uid == "uid-1"

    async def test_lists_are_consistent_and_by_the_label(self):
        api = FakeApi()
        await look(api)
        (request,) = api.requests
        assert request.path == LEASES
        assert request.query == {"labelSelector": LABEL, "limit": str(PAGE_LEASES)}

    async def test_only_the_namespaces_that_are_named_are_asked_for(self):
        api = FakeApi()
        for namespace in ("a", "b", "c"):
            make_lease(api, "x", namespace)
        found = await look(api, namespaces=("c", "a"))
        assert [lease.key for lease in found.leases] == ["c/x", "a/x"]
        assert len(api.requests) == 2

    async def test_more_than_a_page_is_read_page_by_page(self):
        api = FakeApi()
        for number in range(2 * PAGE_LEASES + 1):
            make_lease(api, f"l{number}")
        found = await look(api)
        assert len(found.leases) == 2 * PAGE_LEASES + 1
        assert len(api.requests) == 3
        assert found.complete

    async def test_a_look_ends_however_many_there_are(self):
        api = FakeApi()
        for number in range(MOST_LEASES + 50):
            make_lease(api, f"l{number:04}")
        found = await look(api)
        assert len(found.leases) == MOST_LEASES
        assert not found.complete
        assert len(api.requests) == MOST_LEASES // PAGE_LEASES

    async def test_as_many_as_are_looked_at_are_complete(self):
        api = FakeApi()
        for number in range(MOST_LEASES):
            make_lease(api, f"l{number:04}")
        assert (await look(api)).complete

    async def test_long_texts_are_cut_and_long_notes_left_out(self):
        api = FakeApi()
        make_lease(api, "long", holderIdentity="h" * 5000, note="n" * (MOST_NOTE_CHARACTERS + 1))
        (lease,) = (await look(api)).leases
        assert len(lease.holder) == 300
        assert lease.note == ""

    @pytest.mark.parametrize(
        "item",
        [
            {"metadata": {"name": 3}},
            {"metadata": {"name": "x", "annotations": [1]}},
            {"metadata": {"name": "x"}, "spec": {"holderIdentity": 5}},
            {"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": "long"}},
        ],
    )
    async def test_one_that_cannot_be_read_spoils_no_other(self, item):
        api = FakeApi()
        good = {"metadata": {"name": "good", "namespace": "a"}, "spec": None}
        api.script("GET", LEASES, Response(200, encode({"metadata": {}, "items": [item, good]})))
        (lease,) = (await look(api)).leases
        assert lease.key == "a/good"
        assert (lease.holder, lease.duration_seconds) == ("", None)

    @pytest.mark.parametrize("seconds", [0, -5, None])
    async def test_a_duration_that_is_none_is_not_taken(self, seconds):
        api = FakeApi()
        make_lease(api, "x", leaseDurationSeconds=seconds)
        (lease,) = (await look(api)).leases
        assert lease.duration_seconds is None

    @pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"items": 3}', b"[" * 100_000])
    async def test_an_answer_that_is_no_list_is_an_error(self, body):
        api = FakeApi()
        api.script("GET", LEASES, Response(200, body))
        with pytest.raises(KubeError):
            await look(api)

    @pytest.mark.parametrize(
        "answer", [status(403, "Forbidden"), status(404, "NotFound"), status(503, "x"), NotSent("")]
    )
    async def test_whatever_is_refused_is_an_error(self, answer):
        api = FakeApi()
        api.script("GET", LEASES, answer)
        with pytest.raises(KubeError) as caught:
            await look(api)
        assert isinstance(caught.value, Forbidden) == (getattr(answer, "status", 0) == 403)


async def test_one_lease_is_found_by_its_name_with_a_list():
    api = FakeApi()
    make_lease(api, "kube-scheduler", "kube-system", labelled=False)
    make_lease(api, "other", "kube-system")
    found = await one_lease(api, "kube-system", "kube-scheduler", note=NOTE, timeout_seconds=1.0)
    assert found is not None
    assert found.key == "kube-system/kube-scheduler"
    assert await one_lease(api, "a", "kube-scheduler", note=NOTE, timeout_seconds=1.0) is None


def lease(version="1", holder="h", seconds=15.0):
    return OtherLease("a", "l", "u", version, holder, seconds, "")


class TestPulse:
    """A holder lives if its Lease is seen renewed, and is dead when it is not for long enough."""

    def setup_method(self):
        self.clock = FakeClock()
        self.liveness = HolderLiveness(self.clock)

    def seen(self, found):
        self.liveness.look([found])
        return self.liveness.of(found)

    def test_at_first_sight_nothing_is_known(self):
        assert self.seen(lease()) is Liveness.UNKNOWN

    def test_a_renewal_is_a_sign_of_life(self):
        self.seen(lease("1"))
        assert self.seen(lease("2")) is Liveness.LIVE

    def test_unchanged_for_its_duration_it_is_dead_also_between_looks(self):
        assert self.seen(lease()) is Liveness.UNKNOWN
        self.clock.advance(14.9)
        assert self.seen(lease()) is Liveness.UNKNOWN
        self.clock.advance(0.1)
        assert self.liveness.of(lease()) is Liveness.DEAD

    def test_who_lived_is_dead_a_duration_after_its_last_renewal_was_seen(self):
        self.seen(lease("1"))
        self.clock.advance(100.0)
        assert self.seen(lease("2")) is Liveness.LIVE
        self.clock.advance(15.0)
        assert self.seen(lease("2")) is Liveness.DEAD
        assert self.seen(lease("3")) is Liveness.LIVE

    def test_without_a_duration_it_is_the_usual_one(self):
        assert self.seen(lease(seconds=None)) is Liveness.UNKNOWN
        self.clock.advance(USUAL_SECONDS)
        assert self.liveness.of(lease(seconds=None)) is Liveness.DEAD

    def test_a_released_one_is_nobodys_at_once(self):
        self.seen(lease("1"))
        assert self.seen(lease("2", holder="")) is Liveness.DEAD
        assert self.seen(lease("3", holder="another")) is Liveness.LIVE

    def test_one_that_is_gone_is_forgotten(self):
        self.seen(lease("1"))
        self.liveness.look([])
        assert self.liveness.of(lease("1")) is Liveness.DEAD
        assert self.seen(lease("2")) is Liveness.UNKNOWN
