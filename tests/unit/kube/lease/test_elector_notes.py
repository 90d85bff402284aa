"""What a holder says of itself is on its Lease with every write, and nothing else is lost."""

import asyncio

from prometheus_client import CollectorRegistry

from k8s_scheduler.kube.lease.claim import ElectorHooks
from k8s_scheduler.kube.lease.elector import Elector
from k8s_scheduler.kube.lease.lease import LeaseConfig
from k8s_scheduler.kube.lease.metadata import LeaseNotes
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.clock import virtual_time
from tests.unit.kube.elector_seat import LEASE, Seat, acquire, hold_by_other
from tests.unit.kube.write_fakes import loop_timing, running

LABELS = {"example.com/found-by": "true"}


class NotedSeat(Seat):
    """An elector with notes that can change, and leave to lead that can be withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.may_lead = "one", True
        self.elector = Elector(
            self.api,
            LeaseConfig(name="kube-scheduler", namespace="kube-system", identity="me"),
            metrics=KubeMetrics(CollectorRegistry()),
            timing=loop_timing(),
            hooks=ElectorHooks(
                notes=lambda: LeaseNotes(LABELS, {"example.com/note": self.text}),
                may_lead=lambda: self.may_lead,
            ),
        )

    def metadata(self) -> dict:
        lease = self.api.object(LEASE)
        assert lease is not None
        return lease["metadata"]


@virtual_time
async def test_a_lease_that_is_made_has_them() -> None:
    seat = NotedSeat()
    await seat.elector.acquire()
    assert seat.metadata()["labels"] == LABELS
    assert seat.metadata()["annotations"] == {"example.com/note": "one"}


@virtual_time
async def test_a_lease_that_is_taken_has_them_beside_what_others_wrote() -> None:
    seat = NotedSeat()
    hold_by_other(seat.api, holder="")
    await seat.elector.acquire()
    assert seat.metadata()["labels"] == {"team": "a", **LABELS}


@virtual_time
async def test_a_change_is_there_with_the_next_renewal() -> None:
    seat = NotedSeat()
    await seat.elector.acquire()
    async with running(seat.elector.hold()):
        seat.text = "two"
        await asyncio.sleep(2.1)
        assert seat.metadata()["annotations"] == {"example.com/note": "two"}


@virtual_time
async def test_they_are_put_back_where_somebody_removed_them() -> None:
    seat = NotedSeat()
    await seat.elector.acquire()
    async with running(seat.elector.hold()):
        lease = seat.api.object(LEASE)
        assert lease is not None
        del lease["metadata"]["annotations"], lease["metadata"]["labels"]
        seat.api.update(LEASE, lease)
        await asyncio.sleep(2.1)
        assert seat.metadata()["labels"] == LABELS


class TestRefusing:
    """Who may not lead takes no Lease, and goes on looking."""

    @virtual_time
    async def test_a_free_lease_is_left_alone_until_it_may_lead(self) -> None:
        seat = NotedSeat()
        seat.may_lead = False
        async with running(acquire(seat.elector)):
            await asyncio.sleep(30.0)
            assert seat.api.object(LEASE) is None
            # About twice a second: to be refused is no reason to ask more often.
            assert 40 <= len(seat.api.asked("GET")) <= 62
            seat.may_lead = True
            await asyncio.sleep(1.0)
            assert seat.elector.is_leading

    @virtual_time
    async def test_one_that_has_run_out_is_left_alone_as_well(self) -> None:
        seat = NotedSeat()
        hold_by_other(seat.api)
        seat.may_lead = False
        async with running(acquire(seat.elector)):
            await asyncio.sleep(60.0)
            assert seat.spec()["holderIdentity"] == "other"
            assert len(seat.api.asked("GET")) <= 122

    @virtual_time
    async def test_who_leads_goes_on_leading(self) -> None:
        seat = NotedSeat()
        await seat.elector.acquire()
        async with running(seat.elector.hold()):
            seat.may_lead = False
            await asyncio.sleep(60.0)
            assert seat.elector.may_write()

    @virtual_time
    async def test_a_lease_can_be_given_back_and_taken_again(self) -> None:
        seat = NotedSeat()
        await seat.elector.acquire()
        assert await seat.elector.release()
        assert seat.spec()["holderIdentity"] == ""
        await seat.elector.acquire()
        assert seat.elector.may_write()
        assert seat.spec()["holderIdentity"] == "me"
