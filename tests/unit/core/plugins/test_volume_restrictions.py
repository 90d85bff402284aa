"""VolumeRestrictions, rule by rule."""

import pytest

from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.plugins.volume_restrictions import VolumeRestrictions
from tests.call_counts import calls_of
from tests.unit.core.plugins.plugin_bench import pod_view
from tests.unit.core.plugins.storage_bench import StorageBench, claim, pod

NO_DISK = ("node(s) had no available disk", True)
USED_ELSEWHERE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
IN_USE = (USED_ELSEWHERE, True)
ONCE = "ReadWriteOncePod"


@pytest.fixture
def bench():
    return StorageBench(VolumeRestrictions(), a={}, b={})


def gce(*, read_only=False):
    return {"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}


def rbd(image="i", *, monitors=("m1",), pool="rbd", read_only=False):
    held = {"image": image, "monitors": list(monitors), "pool": pool, "readOnly": read_only}
    return {"rbd": held}


def iscsi(iqn="q", *, read_only=False):
    return {"iscsi": {"iqn": iqn, "targetPortal": "t", "readOnly": read_only}}


def ebs(volume_id):
    return {"awsElasticBlockStore": {"volumeID": volume_id, "readOnly": True}}


def _calls_for(disks):
    """Return how many calls it takes to judge a pod with so many disks beside another one."""
    bench = StorageBench(VolumeRestrictions(), a={})
    bench.place(pod(*(ebs(f"held-{n}") for n in range(disks)), name="other", node="a"))
    wanted = pod(*(ebs(f"wanted-{n}") for n in range(disks)))
    rejected = []
    calls = calls_of(lambda: rejected.extend(bench.rejections(wanted)))
    assert rejected == [None]
    return calls


class TestDisks:
    """A disk is on a node once, for some kinds unless everybody only reads."""

    @pytest.mark.parametrize(
        ("held", "wanted", "conflict"),
        [
            pytest.param(gce(), gce(), True, id="google, both write"),
            pytest.param(gce(read_only=True), gce(), True, id="google, one writes"),
            pytest.param(gce(read_only=True), gce(read_only=True), False, id="google, both read"),
            pytest.param(ebs("e"), ebs("e"), True, id="amazon, even if both read"),
            pytest.param(ebs("e"), ebs("f"), False, id="amazon, another disk"),
            pytest.param(iscsi(), iscsi(), True, id="iscsi, both write"),
            pytest.param(
                iscsi(read_only=True), iscsi(read_only=True), False, id="iscsi, both read"
            ),
            pytest.param(iscsi("q"), iscsi("r"), False, id="iscsi, another name"),
            pytest.param(rbd(), rbd(monitors=("m0", "m1")), True, id="ceph, a monitor in common"),
            pytest.param(rbd(), rbd(monitors=("m2",)), False, id="ceph, no monitor in common"),
            pytest.param(rbd(), rbd(pool="other"), False, id="ceph, another pool"),
            pytest.param(rbd(), rbd("j"), False, id="ceph, another image"),
            pytest.param(rbd(read_only=True), rbd(read_only=True), False, id="ceph, both read"),
            pytest.param(gce(), ebs("d"), False, id="different kinds"),
        ],
    )
    def test_conflicts_with_a_pod_of_the_same_node(self, bench, held, wanted, conflict):
        bench.place(pod(held, name="other", node="a", namespace="elsewhere"))
        assert bench.rejections(pod(wanted)) == [NO_DISK if conflict else None, None]

    @pytest.mark.parametrize("read_only", [True, False], ids=["readers", "a writer"])
    def test_a_pod_with_one_disk_twice_writes_if_it_writes_once(self, bench, read_only):
        bench.place(pod(gce(read_only=True), name="other", node="a"))
        wanted = pod(gce(read_only=read_only), gce(read_only=True))
        assert bench.rejections(wanted) == [None if read_only else NO_DISK, None]

    def test_many_disks_are_not_each_compared_with_each(self):
        # Two pods with 2,000 disks each, as large as etcd stores: 4 million pairs.
        assert _calls_for(200) < 3 * _calls_for(100)

    def test_a_pod_that_leaves_takes_its_disk_along(self, bench):
        bench.place(pod(gce(), name="other", node="a"))
        row = bench.cache.nodes.row_of("a")
        delta = bench.cache.delta(row)
        delta.remove(bench.cache.pods_on(row)[0])
        prepared = bench.prepare(pod(gce()))
        assert bench.judge(prepared, "a", delta=delta) == [None]
        assert bench.judge(prepared, "a") == [NO_DISK]

    def test_a_disk_matters_more_than_a_claim(self, bench):
        bench.put(claim("c", mode=ONCE)).place(pod("c", gce(), name="other", node="a"))
        assert bench.rejections(pod("c", gce())) == [NO_DISK, IN_USE]


class TestClaimsForOnePod:
    """A ReadWriteOncePod claim in use keeps others off every node."""

    def test_in_use_anywhere(self, bench):
        bench.put(claim("c", mode=ONCE)).place(pod("c", name="other", node="a"))
        assert bench.rejections(pod("c")) == [IN_USE, IN_USE]

    @pytest.mark.parametrize(
        ("mode", "other"),
        [
            pytest.param("ReadWriteOnce", pod("c", name="o", node="a"), id="another access mode"),
            pytest.param(ONCE, pod("d", name="o", node="a"), id="another claim"),
            pytest.param(ONCE, pod("c", name="o", node="gone"), id="a pod without a node"),
            pytest.param(ONCE, pod("c", name="o", node="a", namespace="x"), id="another namespace"),
        ],
    )
    def test_skipped_if_nobody_is_in_the_way(self, bench, mode, other):
        bench.put(claim("c", mode=mode)).place(other)
        assert bench.prepare(pod("c")) is SKIP

    def test_a_missing_claim_ends_it(self, bench):
        assert bench.refusal(pod("c")) == 'persistentvolumeclaim "c" not found'

    def test_a_pod_without_disks_and_claims_is_skipped(self, bench):
        assert bench.prepare(pod({"emptyDir": {}})) is SKIP

    def test_the_user_may_be_evicted(self, bench):
        bench.put(claim("c", mode=ONCE)).place(pod("c", name="other", node="a"))
        prepared = bench.prepare(pod("c"))
        evicted = bench.plugin.remove_pod(
            prepared, pod_view(pod("c", name="other")), bench.view("a")
        )
        assert bench.judge(evicted, "a") == [None]
        assert bench.judge(prepared, "a") == [IN_USE]
        back = bench.plugin.add_pod(evicted, pod_view(pod("c", name="other")), bench.view("a"))
        assert bench.judge(back, "a") == [IN_USE]

    def test_two_users_count_once_so_one_of_them_will_do(self, bench):
        users = [pod("c", name=name, node="a") for name in ("x", "y")]
        bench.put(claim("c", mode=ONCE)).place(*users)
        evicted = bench.plugin.remove_pod(
            bench.prepare(pod("c")), pod_view(users[0]), bench.view("a")
        )
        assert bench.judge(evicted, "a") == [None]

    def test_who_comes_counts_by_the_name_of_the_claim_alone(self, bench):
        bench.put(claim("c", mode=ONCE)).place(pod("c", name="other", node="a"))
        evicted = bench.plugin.remove_pod(
            bench.prepare(pod("c")), pod_view(pod("c", name="other")), bench.view("a")
        )
        stranger = pod_view(pod("c", name="stranger", namespace="elsewhere"))
        assert bench.judge(bench.plugin.add_pod(evicted, stranger, bench.view("a"))) == [
            IN_USE,
            IN_USE,
        ]
