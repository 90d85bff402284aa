"""Two whole daemons with Leases of their own that serve the same schedulerName."""

import asyncio
import json

from k8s_scheduler.api.config.extras import Rivals, SchedulerExtras
from k8s_scheduler.app.rivals.served_names import LABEL, NOTE
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.unit.app.daemon_scene import NODES, PODS, daemon, node, nodes_of, pod

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/events"
REFUSE = SchedulerExtras(rivals=Rivals(action="Refuse", namespaces=("kube-system",)))


def holder(api, name):
    lease = api.object(f"{LEASES}/{name}")
    return "" if lease is None else lease["spec"].get("holderIdentity", "")


@virtual_time
async def test_a_lease_says_which_names_its_holder_serves():
    api = FakeApi()
    async with daemon(api, elect=True, lease="one"):
        await asyncio.sleep(5.0)
        metadata = api.object(f"{LEASES}/one")["metadata"]
        assert metadata["labels"] == {LABEL: "true"}
        assert json.loads(metadata["annotations"][NOTE]) == {
            "by": holder(api, "one"),
            "schedulerNames": ["default-scheduler"],
        }


@virtual_time
async def test_who_warns_leads_at_once_and_both_say_so(caplog):
    api = FakeApi()
    async with daemon(api, elect=True, lease="one") as (first, _):
        await asyncio.sleep(5.0)
        async with daemon(api, elect=True, lease="two", seed=2) as (second, _):
            await asyncio.sleep(1.0)
            assert first.elector.is_leading
            assert second.elector.is_leading
            await asyncio.sleep(10.0)
            assert [e["regarding"]["name"] for e in api.objects(EVENTS).values()] == ["two"]
            assert "Another Lease serves schedulerNames of ours" in caplog.text
            # The first one finds out by its ordinary looks.
            await asyncio.sleep(120.0)
            said = {e["regarding"]["name"] for e in api.objects(EVENTS).values()}
            assert said == {"one", "two"}


@virtual_time
async def test_who_refuses_decides_nothing_until_the_other_is_gone():
    api = FakeApi()
    api.create(NODES, node("n1"))
    async with daemon(api, elect=True, lease="one"):
        await asyncio.sleep(5.0)
        started = daemon(api, elect=True, lease="two", extras=REFUSE, seed=2)
        second, _ = await started.__aenter__()
        await asyncio.sleep(60.0)
        assert not second.elector.is_leading
        assert holder(api, "two") == ""
    # The first one has given its Lease back.
    await asyncio.sleep(5.0)
    assert second.elector.is_leading
    api.create(PODS, pod("p"))
    await asyncio.sleep(5.0)
    assert nodes_of(api) == {"p": "n1"}
    await started.__aexit__(None, None, None)


@virtual_time
async def test_of_two_that_refuse_and_begin_at_once_exactly_one_leads():
    for seed in range(20):
        api = FakeApi()
        async with (
            daemon(api, elect=True, lease="one", extras=REFUSE, seed=seed) as (first, _),
            daemon(api, elect=True, lease="two", extras=REFUSE, seed=seed + 100) as (second, _),
        ):
            both = 0
            for _ in range(600):
                await asyncio.sleep(0.05)
                both += first.pump._allowed and second.pump._allowed
            assert both == 0
            assert first.elector.is_leading + second.elector.is_leading == 1


@virtual_time
async def test_without_an_election_it_waits_too_before_it_decides():
    api = FakeApi()
    api.create(NODES, node("n1"))
    api.create(PODS, pod("p"))
    async with daemon(api, elect=True, lease="one") as (first, _):
        first.pump.forbid()
        async with daemon(api, elect=False, extras=REFUSE, seed=2) as (second, _):
            await asyncio.sleep(60.0)
            assert not second.pump._allowed
