"""Who else serves a schedulerName of ours: seen from the other's Lease, told, or waited for."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from k8s_scheduler.api.config.extras import Rivals
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.app.rivals.news import AGAIN_SECONDS, RivalNews
from k8s_scheduler.app.rivals.rivals import (
    GIVE_WAY_SECONDS,
    LOOK_SECONDS,
    SOON_SECONDS,
    Ourselves,
    RivalWatch,
)
from k8s_scheduler.app.rivals.served_names import LABEL, NOTE, encode
from k8s_scheduler.kube.lease.other_leases import MOST_LEASES
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import virtual_time
from tests.fakes.transport import Lost, status
from tests.unit.kube.write_fakes import loop_clock, running

LEASES = "/apis/coordination.k8s.io/v1/leases"
REFUSE = Rivals(action="Refuse", namespaces=("ours", "theirs", "kube-system"))
FORBIDDEN = status(
    403,
    "Forbidden",
    'leases.coordination.k8s.io is forbidden: User "u" cannot list resource "leases"',
)


class Recorder:
    def __init__(self):
        self.events = []

    def record(self, event, *, is_own):
        assert is_own
        self.events.append(event)


class Scene:
    """A watch on a server where others have Leases."""

    def __init__(self, settings=Rivals(), *, names=("mine",), lease="ours/sched", in_pod=False):  # noqa: B008
        self.api, self.names, self.settings = FakeApi(), set(names), settings
        self.recorder, self.registry = Recorder(), CollectorRegistry()
        clock = loop_clock()
        self.watch = RivalWatch(
            self.api,
            Ourselves(lease=lease, names=lambda: self.names, settings=lambda: self.settings),
            RivalNews(
                self.recorder,
                pod=OwnPod(self.api, "ours", "me") if in_pod else None,
                metrics=KubeMetrics(self.registry),
                clock=clock,
            ),
            clock=clock,
        )

    def hold(self, key="theirs/sched", names=("mine",), *, holder="they", note=None, **spec):
        """Have a Lease held by another; again it is a renewal."""
        namespace, name = key.split("/")
        text = encode(tuple(names), holder) if note is None else note
        content = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "labels": {LABEL: "true"},
                "annotations": {NOTE: text},
            },
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
        }
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        if self.api.object(path) is None:
            self.api.create(LEASES, content)
        else:
            self.api.update(path, content)

    async def renew(self, *keys, **options):
        """Renew Leases for ever, as those do who hold them."""
        while True:
            for key in keys:
                self.hold(key, **options)
            await asyncio.sleep(2.0)

    def metric(self, name, **labels):
        return self.registry.get_sample_value(f"k8s_scheduler_{name}", labels)

    def lists(self):
        return len(self.api.asked("GET", LEASES))


class TestWarn:
    """What lives is told; nothing is held up."""

    @virtual_time
    async def test_a_living_rival_is_told_within_seconds(self, caplog):
        scene = Scene()
        scene.hold("ours/sched", holder="me")
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(5.0)
        (record,) = [r for r in caplog.records if "Another Lease serves" in r.getMessage()]
        assert record.fields["lease"] == "theirs/sched"
        assert record.fields["holder"] == "they"
        assert record.fields["scheduler_names"] == "mine"
        assert scene.metric("rivals") == 1
        (event,) = scene.recorder.events
        assert (event.regarding.kind, event.regarding.namespace) == ("Lease", "ours")
        assert event.regarding.uid
        assert event.related.name == "sched"
        assert event.reason == "SchedulerNameShared"
        assert event.note == (
            "Another Lease serves schedulerNames of ours, both decide about the same pods: "
            "Lease theirs/sched (holder they) serves mine"
        )

    @virtual_time
    async def test_it_may_lead_and_decide_at_any_time_without_asking(self):
        scene = Scene()
        scene.hold()
        assert scene.watch.may_lead()
        assert await scene.watch.may_decide()
        await scene.watch.until_none()
        assert scene.api.requests == []

    @pytest.mark.parametrize(
        "other",
        [
            {"names": ("else",)},
            {"note": "nonsense"},
            {"note": ""},
            {"key": "ours/sched"},
            {"holder": ""},
            {"note": encode(("mine",), "a former holder")},
        ],
        ids=["other names", "garbage", "no note", "our own", "released", "of a former holder"],
    )
    @virtual_time
    async def test_others_are_no_rivals(self, other):
        scene = Scene()
        key = other.pop("key", "theirs/sched")
        async with running(scene.renew(key, **other)), running(scene.watch.run()):
            await asyncio.sleep(200.0)
        assert scene.metric("rivals") == 0
        assert scene.recorder.events == []

    @virtual_time
    async def test_what_a_crash_or_an_uninstalled_release_left_behind_is_not_told(self):
        scene = Scene()
        scene.hold()
        async with running(scene.watch.run()):
            await asyncio.sleep(200.0)
        assert scene.recorder.events == []

    @virtual_time
    async def test_looks_are_rare_once_all_is_settled(self):
        scene = Scene()
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(10.0)
            before = scene.lists()
            await asyncio.sleep(10 * LOOK_SECONDS)
        assert before <= 3
        assert scene.lists() - before == 10

    @virtual_time
    async def test_however_many_new_leases_come_looks_stay_rare(self):
        """Anybody who may write Leases can make some with every second."""
        scene = Scene()

        async def flood():
            for number in range(10_000):
                scene.hold(f"theirs/l{number}")
                await asyncio.sleep(1.0)

        async with running(flood()), running(scene.watch.run()):
            await asyncio.sleep(60.0)
            before = len(scene.api.requests)
            await asyncio.sleep(600.0)
        assert len(scene.api.requests) - before <= 10 * 20

    @virtual_time
    async def test_it_is_said_again_after_a_while_and_when_it_is_over(self, caplog):
        caplog.set_level("INFO")
        scene = Scene()
        async with running(scene.watch.run()):
            async with running(scene.renew("theirs/sched")):
                await asyncio.sleep(AGAIN_SECONDS + LOOK_SECONDS + 5.0)
                said = [r for r in caplog.records if "Another Lease" in r.getMessage()]
                assert len(said) == 2
            # The next look may still see a renewal that it did not know of.
            await asyncio.sleep(2 * LOOK_SECONDS + 1.0)
        assert scene.metric("rivals") == 0
        assert "No other Lease serves our schedulerNames any more" in caplog.text

    @virtual_time
    async def test_a_name_that_a_reload_adds_is_looked_for_at_once(self):
        scene = Scene(names=("else",))
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(100.0)
            assert scene.metric("rivals") == 0
            scene.names.add("mine")
            scene.watch.look_soon()
            await asyncio.sleep(SOON_SECONDS + 0.5)
            assert scene.metric("rivals") == 1

    @virtual_time
    async def test_many_are_named_in_part_and_counted(self):
        scene = Scene()
        keys = [f"theirs/l{number}" for number in range(30)]
        names = tuple(f"name-{number}" for number in range(40))
        scene.names.update(names)
        async with running(scene.renew(*keys, names=names)), running(scene.watch.run()):
            await asyncio.sleep(5.0)
        assert scene.metric("rivals") == 30

    @virtual_time
    async def test_without_a_lease_of_ones_own_the_event_is_about_the_pod(self):
        scene = Scene(lease="", in_pod=True)
        pod = {"metadata": {"namespace": "ours", "name": "me", "uid": "pod-uid"}}
        scene.api.create("/api/v1/pods", pod)
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(5.0)
        (event,) = scene.recorder.events
        assert (event.regarding.kind, event.regarding.uid) == ("Pod", "pod-uid")

    @virtual_time
    async def test_ignored_nothing_is_asked_and_what_was_known_is_forgotten(self):
        scene = Scene()
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(5.0)
            assert scene.metric("rivals") == 1
            scene.settings = Rivals(action="Ignore")
            scene.watch.look_soon()
            await asyncio.sleep(0.1)
            assert scene.metric("rivals") == 0
            asked = len(scene.api.requests)
            await asyncio.sleep(1000.0)
        assert len(scene.api.requests) == asked


class TestKubeScheduler:
    """Its Lease has no note, and counts where we serve its name."""

    @virtual_time
    async def test_it_is_a_rival_of_who_serves_the_default_scheduler(self):
        scene = Scene(names=("default-scheduler",))
        kube = "kube-system/kube-scheduler"
        async with running(scene.renew(kube, note="")), running(scene.watch.run()):
            await asyncio.sleep(5.0)
        assert scene.metric("rivals") == 1

    @virtual_time
    async def test_and_found_without_the_label(self):
        scene = Scene(names=("default-scheduler",))
        scene.hold("kube-system/kube-scheduler", note="")
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

        async def renew():
            while True:
                lease = scene.api.object(path)
                lease["metadata"].pop("labels", None)
                scene.api.update(path, lease)
                await asyncio.sleep(2.0)

        async with running(renew()), running(scene.watch.run()):
            await asyncio.sleep(5.0)
        assert scene.metric("rivals") == 1

    @pytest.mark.parametrize(
        ("names", "settings", "lease"),
        [
            (("mine",), Rivals(), "ours/sched"),
            (("default-scheduler",), Rivals(namespaces=("theirs",)), "ours/sched"),
            (("default-scheduler",), Rivals(), "kube-system/kube-scheduler"),
        ],
        ids=["another name", "a namespace that is not looked into", "one Lease for both"],
    )
    @virtual_time
    async def test_else_it_is_none(self, names, settings, lease):
        scene = Scene(settings, names=names, lease=lease)
        kube = "kube-system/kube-scheduler"
        async with running(scene.renew(kube, note="")), running(scene.watch.run()):
            await asyncio.sleep(70.0)
        assert scene.metric("rivals") == 0


class TestRefuse:
    """Who does not lead yet waits for who lives, or may live."""

    @virtual_time
    async def test_nothing_is_taken_before_a_look(self):
        scene = Scene(REFUSE)
        assert not scene.watch.may_lead()
        async with running(scene.watch.run()):
            await asyncio.sleep(0.1)
            assert scene.watch.may_lead()

    @virtual_time
    async def test_it_waits_while_a_rival_lives_and_not_for_longer(self, caplog):
        scene = Scene(REFUSE)
        async with running(scene.watch.run()):
            async with running(scene.renew("theirs/sched")):
                await asyncio.sleep(100.0)
                assert not scene.watch.may_lead()
                assert "Not leading: another Lease serves schedulerNames of ours" in caplog.text
            await asyncio.sleep(10.0)
            assert not scene.watch.may_lead()
            # What it has not seen renewed for its duration, by our own clock, is dead.
            await asyncio.sleep(8.0)
            assert scene.watch.may_lead()

    @virtual_time
    async def test_a_lease_that_is_given_back_or_gone_is_seen_soon(self):
        scene = Scene(REFUSE)
        async with running(scene.watch.run()):
            async with running(scene.renew("theirs/sched")):
                await asyncio.sleep(20.0)
            scene.hold(holder="")
            await asyncio.sleep(SOON_SECONDS + 0.1)
            assert scene.watch.may_lead()
            async with running(scene.renew("theirs/sched")):
                await asyncio.sleep(LOOK_SECONDS + 5.0)
                assert not scene.watch.may_lead()
            scene.api.delete("/apis/coordination.k8s.io/v1/namespaces/theirs/leases/sched")
            await asyncio.sleep(SOON_SECONDS + 0.1)
            assert scene.watch.may_lead()

    @pytest.mark.parametrize("skew", ["1990-01-01T00:00:00.000000Z", "2190-01-01T00:00:00.000000Z"])
    @virtual_time
    async def test_the_clocks_of_others_do_not_matter(self, skew):
        scene = Scene(REFUSE)
        scene.hold(renewTime=skew)
        async with running(scene.watch.run()):
            await asyncio.sleep(13.0)
            assert not scene.watch.may_lead()
            await asyncio.sleep(4.0)
            assert scene.watch.may_lead()

    @virtual_time
    async def test_a_rival_outside_of_the_trusted_namespaces_is_none(self):
        scene = Scene(REFUSE)
        async with running(scene.renew("tenant/sched")), running(scene.watch.run()):
            await asyncio.sleep(10.0)
            assert scene.watch.may_lead()

    @pytest.mark.parametrize(
        "answer", [FORBIDDEN, status(404, "NotFound"), status(500, "InternalError"), Lost()]
    )
    @virtual_time
    async def test_what_cannot_be_looked_at_holds_nothing_up(self, answer):
        scene = Scene(REFUSE)
        scene.api.script("GET", "*/leases", *[answer] * 99)
        async with running(scene.watch.run()):
            await asyncio.sleep(4.0)
            assert scene.watch.may_lead()
            assert await scene.watch.may_decide()

    @virtual_time
    async def test_nor_does_a_server_that_never_answers(self):
        scene = Scene(REFUSE)
        scene.api.script("GET", "*/leases", *[Lost(after_seconds=1000.0)] * 99)
        started = loop_clock()()
        assert await scene.watch.may_decide()
        assert loop_clock()() - started <= 3.0

    @virtual_time
    async def test_who_leads_already_is_told_and_goes_on(self, caplog):
        scene = Scene(REFUSE)
        async with running(scene.watch.run()):
            await asyncio.sleep(0.1)
            assert await scene.watch.may_decide()
            async with running(scene.renew("theirs/sched")):
                await asyncio.sleep(2 * LOOK_SECONDS + 1.0)
        assert "both decide about the same pods" in caplog.text
        assert "Not leading" not in caplog.text

    @virtual_time
    async def test_two_that_begin_at_once_do_not_both_decide(self):
        scene = Scene(REFUSE, lease="ours/sched")
        async with running(scene.watch.run()):
            await asyncio.sleep(0.1)
            assert scene.watch.may_lead()
            # Its Lease is written after our look and before ours.
            scene.hold("theirs/sched")
            assert not await scene.watch.may_decide()
            assert not scene.watch.may_lead()

    @pytest.mark.parametrize(
        ("other", "after_seconds"), [("z/sched", SOON_SECONDS), ("a/sched", GIVE_WAY_SECONDS)]
    )
    @virtual_time
    async def test_of_two_that_met_the_later_in_the_alphabet_waits_longer(
        self, other, after_seconds
    ):
        scene = Scene(Rivals(action="Refuse", namespaces=("a", "z")), lease="m/sched")
        async with running(scene.watch.run()):
            await asyncio.sleep(0.1)
            scene.hold(other)
            assert not await scene.watch.may_decide()
            scene.hold(other, holder="")
            scene.watch.look_soon()
            await asyncio.sleep(after_seconds - 0.5 if after_seconds > SOON_SECONDS else 0.0)
            assert not scene.watch.may_lead()
            await asyncio.sleep(0.6)
            assert scene.watch.may_lead()

    @virtual_time
    async def test_a_process_without_a_lease_waits_before_it_decides(self):
        scene = Scene(REFUSE, lease="")
        async with running(scene.renew("theirs/sched")):
            waiting = asyncio.create_task(scene.watch.until_none())
            await asyncio.sleep(60.0)
            assert not waiting.done()
        await asyncio.sleep(20.0)
        assert waiting.done()


class TestFaults:
    """What goes wrong is said once, and is no failure."""

    @virtual_time
    async def test_a_missing_right_is_one_line_that_says_what_is_not_checked(self, caplog):
        scene = Scene()
        scene.api.script("GET", LEASES, *[FORBIDDEN] * 99)
        async with running(scene.watch.run()):
            await asyncio.sleep(1000.0)
        (record,) = caplog.records
        assert record.getMessage() == (
            "It is not seen whether another Lease serves our schedulerNames: "
            "missing permission: list leases.coordination.k8s.io"
        )
        assert 'User "u"' in record.fields["error"]
        assert scene.metric("rival_looks_total", result="forbidden") >= 10

    @virtual_time
    async def test_it_is_said_again_after_the_right_was_there(self, caplog):
        scene = Scene()
        scene.api.script("GET", LEASES, FORBIDDEN, scene.api.answer, FORBIDDEN)
        async with running(scene.watch.run()):
            await asyncio.sleep(2.5 * LOOK_SECONDS)
        assert caplog.text.count("missing permission") == 2
        assert scene.metric("rival_looks_total", result="complete") == 1

    @pytest.mark.parametrize(
        "answer",
        [status(404, "NotFound"), status(500, "InternalError"), status(429, "x"), Lost()],
    )
    @virtual_time
    async def test_other_failures_are_counted_and_said_now_and_then(self, answer, caplog):
        scene = Scene()
        scene.api.script("GET", LEASES, *[answer] * 99)
        async with running(scene.watch.run()):
            await asyncio.sleep(10 * LOOK_SECONDS - 1.0)
        assert len(caplog.records) == 1
        assert scene.metric("rival_looks_total", result="failure") == 10

    @virtual_time
    async def test_a_look_that_fails_keeps_what_is_known(self):
        scene = Scene(REFUSE)
        async with running(scene.renew("theirs/sched")), running(scene.watch.run()):
            await asyncio.sleep(10.0)
            scene.api.script("GET", "*/leases", *[status(500, "InternalError")] * 2)
            await asyncio.sleep(3.0)
            assert not scene.watch.may_lead()

    @virtual_time
    async def test_more_leases_than_are_looked_at_are_said_and_counted(self, caplog):
        scene = Scene()
        for number in range(MOST_LEASES + 1):
            scene.hold(f"theirs/l{number:04}", names=("else",))
        async with running(scene.watch.run()):
            await asyncio.sleep(1.0)
        assert scene.metric("rival_looks_total", result="partial") == 1
        assert "more than 200 Leases say that schedulers hold them" in caplog.text
