"""Who waits for something before its Bind is asked again when that has changed, and only then."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.engine.pods.pre_bind_index import PreBindIndex
from k8s_scheduler.core.framework.views.reads import NodeCount, Reads
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.plugins.volume_binding import VolumeBinding
from k8s_scheduler.core.state.news.changes import ChangeLog
from k8s_scheduler.core.state.news.facts import LABELS, NODE, ROOM, FactLog
from k8s_scheduler.core.state.objects import ObjectStore
from k8s_scheduler.core.state.rows import NodeRow
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import claiming
from tests.unit.core.harness import only
from tests.unit.core.plugins.storage_bench import HOST, storage_class, volume
from tests.unit.core.plugins.test_volume_binding_live import BOUND, Shop

PV, PVC = Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM
A, B, C = PodUid("a"), PodUid("b"), PodUid("c")
ROW, OTHER_ROW = NodeRow(3), NodeRow(4)


def of_objects(*reads):
    found = Reads()
    for read in reads:
        found.object(read, None)
    return found


def of_volume(name="v"):
    return of_objects(("get", PV, "", name))


class Desk:
    """Someone to ask, and a cluster in which things change."""

    def __init__(self):
        self.facts = FactLog()
        self.objects = ObjectStore(ChangeLog(), self.facts)
        self.awaited = PreBindIndex(self.objects, self.facts)
        self.version = 0

    def put(self, kind, name, namespace=""):
        self.version += 1
        metadata = {"name": name, "namespace": namespace, "resourceVersion": str(self.version)}
        found = msgspec.convert({"metadata": metadata}, kind.type)
        self.objects.put(kind, namespace, name, found)
        return found

    def asked(self):
        """Return who is asked on an occasion."""
        return self.awaited.occasion("cba".index)


@pytest.fixture
def desk():
    return Desk()


class TestObjects:
    def test_of_those_that_wait_only_whom_it_concerns(self, desk):
        desk.awaited.asked(A, of_volume("v"), ROW)
        desk.awaited.asked(B, of_volume("w"), ROW)
        desk.put(PV, "w")
        assert desk.asked() == [B]
        assert desk.asked() == []

    def test_all_whom_it_concerns_in_the_order_of_their_departure(self, desk):
        for uid in (A, B, C):
            desk.awaited.asked(uid, of_volume(), ROW)
        desk.put(PV, "v")
        assert desk.asked() == [C, B, A]

    @pytest.mark.parametrize("what", ["get", "original"])
    def test_a_namesake_is_another_object(self, desk, what):
        desk.awaited.asked(A, of_objects((what, PVC, "s", "v")), ROW)
        desk.put(PVC, "v", "t")
        desk.put(PV, "v", "s")
        assert desk.asked() == []
        desk.put(PVC, "v", "s")
        assert desk.asked() == [A]

    def test_lists(self, desk):
        desk.awaited.asked(A, of_objects(("list", PVC, "s", "")), ROW)
        desk.awaited.asked(B, of_objects(("list_all", PVC, "", "")), ROW)
        desk.put(PVC, "v", "t")
        assert desk.asked() == [B]
        desk.put(PVC, "v", "s")
        assert desk.asked() == [B, A]

    def test_what_is_assumed_given_back_or_gone_has_changed(self, desk):
        found = desk.put(PV, "v")
        desk.awaited.asked(A, of_volume(), ROW)
        desk.objects.assume(PV, found)
        assert desk.asked() == [A]
        desk.objects.revert(PV, "", "v", quietly=True)
        assert desk.asked() == [A]
        desk.objects.remove(PV, "", "v")
        assert desk.asked() == [A]

    def test_only_what_was_read_last_counts(self, desk):
        desk.awaited.asked(A, of_volume("v"), ROW)
        desk.awaited.asked(A, of_volume("w"), ROW)
        desk.put(PV, "v")
        assert desk.asked() == []


class TestNodes:
    def wait(self, desk, uid=A):
        reads = of_volume()
        reads.column("label/zone", wide=False)
        desk.awaited.asked(uid, reads, ROW)

    def test_facts_that_were_read_of_its_own_node(self, desk):
        self.wait(desk)
        desk.facts.note(ROW, ROOM)
        desk.facts.note(OTHER_ROW, LABELS)
        assert desk.asked() == []
        desk.facts.note(ROW, LABELS)
        assert desk.asked() == [A]
        assert desk.asked() == []

    def test_a_node_that_goes_concerns_all_on_their_way_to_it(self, desk):
        desk.awaited.asked(A, of_volume(), ROW)
        desk.facts.note(ROW, NODE)
        assert desk.asked() == [A]

    def test_what_happened_before_is_no_news(self, desk):
        desk.facts.note(ROW, LABELS)
        self.wait(desk)
        assert desk.asked() == []

    def test_all_are_asked_if_too_much_has_happened_to_know(self, desk):
        self.wait(desk)
        for _ in range(3 * FactLog.LIMIT):
            desk.facts.note(OTHER_ROW, ROOM)
        assert desk.asked() == [A]
        assert desk.asked() == []


class TestUnfollowed:
    def beyond(self, how):
        reads = of_volume()
        match how:
            case "everywhere":
                reads.everywhere("label/zone")
            case "scalar":
                reads.scalar("node_count", 1)
            case "count":
                reads.node_count(NodeCount.ALL)
        return reads

    @pytest.mark.parametrize("how", ["everywhere", "scalar", "count"])
    def test_who_reads_beyond_its_node_is_always_asked(self, desk, how):
        desk.awaited.asked(A, self.beyond(how), ROW)
        assert desk.asked() == desk.asked() == [A]

    def test_so_is_who_reads_no_object(self, desk):
        desk.awaited.asked(A, Reads(), ROW)
        assert desk.asked() == desk.asked() == [A]

    def test_so_is_who_has_no_node(self, desk):
        desk.awaited.asked(A, of_volume(), None)
        assert desk.asked() == desk.asked() == [A]

    def test_so_is_a_pod_that_has_changed(self, desk):
        desk.awaited.asked(A, of_volume(), ROW)
        desk.awaited.changed(A)
        desk.awaited.changed(B)
        assert desk.asked() == desk.asked() == [A]

    def test_not_because_others_were_asked(self, desk):
        desk.awaited.ask_always(A)
        assert desk.awaited.rest(lambda uid: 0) == []


@pytest.mark.parametrize("uid", [A, B, C])
def test_whom_nobody_waits_for_any_more_is_not_asked(desk, uid):
    desk.awaited.asked(A, of_volume(), ROW)
    desk.awaited.ask_always(B)
    desk.put(PV, "v")
    desk.awaited.forget(uid)
    assert desk.asked() == [other for other in (B, A) if other != uid]
    desk.put(PV, "v")
    desk.facts.note(ROW, NODE)
    assert desk.asked() == [other for other in (B, A) if other != uid]


class TestInACore:
    """Two pods on their way with a local volume each, their writes answered."""

    @pytest.fixture
    def shop(self, monkeypatch):
        shop = Shop()
        for number in ("1", "2"):
            shop.local(f"v{number}", f"n{number}")
            shop.claim(f"c{number}", "local")
        for number in ("1", "2"):
            [write] = shop.come(f"p{number}", f"c{number}")
            shop.answer(write)
        self.asked = []
        plain = VolumeBinding.pre_bound

        def pre_bound(plugin, state, pod, rows):
            self.asked.append(pod.metadata.name)
            return plain(plugin, state, pod, rows)

        monkeypatch.setattr(VolumeBinding, "pre_bound", pre_bound)
        shop.out.clear()
        return shop

    def other_of(self, shop):
        """Return the pod on its way to the other node than the first pod, and its volume."""
        return "p2", {"n1": "v1", "n2": "v2"}[shop.node_of("p2")]

    def test_who_waits_for_other_objects_is_left_alone(self, shop):
        shop.put(storage_class("another", "csi.b"))
        shop.claim("c3", "local")
        shop.local("v3", "n1")
        shop.tick(1)
        assert self.asked == []

    def test_its_own_claim_and_volume(self, shop):
        pod, name = self.other_of(shop)
        reference = {"namespace": "default", "name": "c2", "uid": "uid-c2"}
        node = shop.node_of("p2")
        shop.put(volume(name, of="local", pin=[node], phase="Bound", claimRef=reference))
        assert (self.asked, only(Bind, shop.out)) == ([pod], [])
        shop.claim("c2", "local", to=name, phase="Bound", annotations={BOUND: "yes"})
        assert self.asked == [pod, pod]
        assert [bind.name for bind in only(Bind, shop.out)] == [pod]

    def test_its_own_node(self, shop):
        node = shop.node_of("p1")
        shop.node(make_node(node).label(**{HOST: "another"}).obj())
        shop.tick(1)
        assert self.asked == ["p1"]
        assert shop.place("p1") == "backoff"

    def test_a_pod_that_has_changed(self, shop):
        pod = claiming(make_pod("p1").request(cpu="1").version(7), "c1")
        shop.pod(pod.obj())
        shop.tick(1)
        assert self.asked == ["p1"]
        shop.tick(1)
        assert self.asked == ["p1"]

    def test_after_a_checkpoint_all_are_asked_once(self, shop):
        twin = Shop.over(shop.twin(), shop)
        twin.tick(1)
        assert self.asked == ["p1", "p2"]
        twin.tick(1)
        assert self.asked == ["p1", "p2"]

    def test_terms_are_let_go(self, shop):
        assert [dict(flight.state.terms) for flight in inside(shop.core).flights] == [{}, {}]
