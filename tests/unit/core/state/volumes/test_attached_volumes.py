"""What is attached on a row is counted once, and as the objects and pods are by now."""

import random

import pytest

from k8s_scheduler.api.kinds import Kind, kind_named
from k8s_scheduler.core.framework.status import StatusError
from k8s_scheduler.core.plugins.node_volume_limits import NodeVolumeLimits
from k8s_scheduler.core.plugins.node_volume_limits.attachable import attachable
from k8s_scheduler.core.state.news.facts import VOLUMES
from tests.unit.core.plugins.storage_bench import (
    SPACE,
    StorageBench,
    claim,
    csi,
    csi_node,
    pod,
    storage_class,
    volume,
)

CLAIMS = 3000
PVC = Kind.PERSISTENT_VOLUME_CLAIM


@pytest.fixture
def bench():
    """One node, which can attach two volumes of csi.a, and a claim of one."""
    found = StorageBench(NodeVolumeLimits(), a={})
    found.put(csi_node("a", csi_a=2), claim("data", to="h"), volume("h", **csi("csi.a", "h")))
    return found


@pytest.fixture
def looks(bench, monkeypatch):
    """Kinds of the objects that were looked at, by anyone."""
    seen = []
    get = bench.cache.objects.get

    def counted(kind, namespace, name):
        seen.append(kind)
        return get(kind, namespace, name)

    monkeypatch.setattr(bench.cache.objects, "get", counted)
    return seen


def place_one_with_claims(bench, count=CLAIMS):
    bench.place(pod(*(f"c{number}" for number in range(count)), name="large", node="a"))


def rows_noted_since(bench, cursor):
    rows, facts = bench.cache.facts.since(cursor)
    return [row for row, fact in zip(rows, facts, strict=True) if fact & VOLUMES]


class TestWork:
    """A placed pod's claims are looked at once, not for every pod that asks."""

    def test_of_a_row_that_changed_what_came_is_looked_at(self, bench, looks):
        place_one_with_claims(bench)
        assert bench.rejections(pod("data")) == [None]
        for number in range(5):
            bench.place(pod("data", name=f"small{number}", node="a"))
            looks.clear()
            assert bench.rejections(pod("data")) == [None]
            assert len(looks) < 20

    def test_of_a_claim_that_changed_only_that_one(self, bench, looks):
        place_one_with_claims(bench)
        bench.put(volume("x", **csi("csi.a", "x")), volume("y", **csi("csi.a", "y")))
        assert bench.rejections(pod("data")) == [None]
        looks.clear()
        bench.put(claim("c7", to="x"))
        assert bench.rejections(pod("data")) == [None]
        bench.put(claim("c8", to="y"))
        assert bench.rejections(pod("data")) == [("node(s) exceed max volume count", True)]
        assert len(looks) < 40

    def test_of_a_row_without_some_pods_only_theirs(self, bench, looks):
        place_one_with_claims(bench)
        bench.put(claim("c1", to="x"), volume("x", **csi("csi.a", "x")))
        bench.put(claim("e", to="y"), volume("y", **csi("csi.a", "y")))
        bench.place(pod("e", "c1", name="small", node="a"))
        prepared = bench.prepare(pod("data"))
        assert bench.judge(prepared) == [("node(s) exceed max volume count", True)]
        delta = bench.cache.delta(bench.cache.nodes.row_of("a"))
        delta.remove(bench.cache.pods_on(delta.row)[1])
        looks.clear()
        assert bench.judge(prepared, "a", delta=delta) == [None]
        assert len(looks) < 20

    def test_nothing_is_known_of_rows_that_nobody_asks_about(self, bench, looks):
        place_one_with_claims(bench)
        assert not looks

    def test_a_pod_with_other_labels_and_the_same_volumes_is_not_looked_at_again(
        self, bench, looks
    ):
        place_one_with_claims(bench)
        assert bench.rejections(pod("data")) == [None]
        looks.clear()
        cursor = bench.cache.facts.position
        raw = pod(*(f"c{number}" for number in range(CLAIMS)), name="large", node="a")
        raw["metadata"]["labels"] = {"app": "changed"}
        bench.place(raw)
        assert not rows_noted_since(bench, cursor)
        assert bench.rejections(pod("data")) == [None]
        assert len(looks) < 20


class TestNotes:
    """Evaluations that are kept learn of objects behind what is attached from the log of facts."""

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param([claim("c1", to="x")], id="a claim"),
            pytest.param([volume("v2", **csi("csi.a", "other"))], id="a volume"),
            pytest.param([storage_class("fast", "csi.b")], id="a class"),
        ],
    )
    def test_a_change_is_noted(self, bench, change):
        bench.put(volume("x", **csi("csi.a", "x")), volume("v2", **csi("csi.a", "v2")))
        bench.put(claim("c2", to="v2"), claim("c3", of="fast"), storage_class("fast"))
        place_one_with_claims(bench, 5)
        bench.rejections(pod("data"))
        cursor = bench.cache.facts.position
        bench.put(*change)
        assert rows_noted_since(bench, cursor) == [bench.cache.nodes.row_of("a")]

    def test_what_changes_nothing_is_not(self, bench):
        place_one_with_claims(bench, 5)
        bench.rejections(pod("data"))
        cursor = bench.cache.facts.position
        bench.put(claim("c1"), claim("elsewhere", to="x"), volume("x", **csi("csi.a", "x")))
        assert rows_noted_since(bench, cursor) == []

    def test_where_all_is_forgotten_rows_have_to_be_looked_at_again(self, bench):
        place_one_with_claims(bench, 5)
        bench.rejections(pod("data"))
        cursor = bench.cache.facts.position
        bench.cache.forget_attached()
        assert rows_noted_since(bench, cursor) == [bench.cache.nodes.row_of("a")]
        assert bench.rejections(pod("data")) == [None]


class TestTrouble:
    """What fails the cycle fails it as before, and no longer than it is wrong."""

    def test_a_claim_of_somebody_else(self, bench):
        bench.put(claim("other-v0", to="x"), volume("x", **csi("csi.a", "x")))
        bench.place(pod({"ephemeral": {}}, "c1", name="other", node="a"))
        for _ in range(2):
            with pytest.raises(StatusError, match="pod is not owner"):
                bench.rejections(pod("data"))
        cursor = bench.cache.facts.position
        owner = {"uid": "uid-other", "controller": True}
        bench.put(claim("other-v0", to="x", ownerReferences=[owner]))
        assert rows_noted_since(bench, cursor) == [bench.cache.nodes.row_of("a")]
        assert bench.rejections(pod("data")) == [None]
        bench.put(claim("other-v0", to="x"))
        with pytest.raises(StatusError, match="pod is not owner"):
            bench.rejections(pod("data"))

    def test_a_disk_that_can_not_be_translated(self, bench):
        broken = {"awsElasticBlockStore": {"volumeID": "aws://zone/what"}}
        bench.place(pod(broken, "c1", name="other", node="a"))
        for _ in range(2):
            with pytest.raises(StatusError, match="from inline to csi"):
                bench.rejections(pod("data"))
        bench.cache.remove_pod("uid-other")
        assert bench.rejections(pod("data")) == [None]


class History:
    """Pods that come, change and go, and the objects behind their volumes."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.bench = StorageBench(NodeVolumeLimits(), a={}, b={})
        self.rows = [self.bench.cache.nodes.row_of(name) for name in ("a", "b")]

    def step(self):
        deed = self.rng.choice((self.place, self.place, self.remove, self.change, self.change))
        deed()
        if self.rng.random() < 0.02:
            self.bench.cache.forget_attached()

    def place(self):
        rng = self.rng
        sources = [
            *(f"c{number}" for number in range(4)),
            {"ephemeral": {}},
            {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-1", "vol-2"))}},
        ]
        if rng.random() < 0.1:
            sources.append({"awsElasticBlockStore": {"volumeID": "aws://zone/what"}})
        name, node = f"p{rng.randrange(4)}", rng.choice("ab")
        self.bench.place(pod(*rng.choices(sources, k=rng.randrange(4)), name=name, node=node))

    def remove(self):
        self.bench.cache.remove_pod(f"uid-p{self.rng.randrange(4)}")

    def change(self):
        rng, objects = self.rng, self.bench.cache.objects
        number = rng.randrange(4)
        owner = {"uid": f"uid-p{number}", "controller": rng.random() < 0.8}
        more = {"to": rng.choice(("", "h0", "h1")), "of": rng.choice(("", "fast"))}
        made = (
            claim(f"c{number}", **more),
            claim(f"p{number}-v{rng.randrange(2)}", **more, ownerReferences=[owner]),
            volume(f"h{number % 2}", **csi(rng.choice(("csi.a", "csi.b")), f"h{rng.randrange(2)}")),
            storage_class("fast", rng.choice(("csi.a", "csi.b"))),
        )
        found = rng.choice(made)
        if rng.random() < 0.3:
            namespace = SPACE if found["kind"] == PVC else ""
            objects.remove(kind_named(found["kind"]), namespace, found["metadata"]["name"])
        else:
            self.bench.put(found)

    def recount(self, row, users):
        """Return what is attached, looked at pod by pod; None where that fails."""
        used = {}
        try:
            for user in users:
                used |= attachable(
                    user.volumes, user, self.bench.view(), on_csi_node=True, must_exist=False
                )
        except StatusError:
            return None
        return used

    def compare(self):
        volumes = self.bench.cache.volumes
        for row in self.rows:
            users = volumes.on(row)
            same(volumes.attached_on(row), self.recount(row, users.values()))
            if users and volumes.attached_on(row) is not None:
                gone = self.rng.sample(list(users.values()), self.rng.randrange(len(users) + 1))
                left = [user for user in users.values() if user not in gone]
                same(volumes.attached_without(row, gone), self.recount(row, left))


def same(known, recounted):
    assert (known is None) == (recounted is None)
    if known is None:
        return
    drivers = list(recounted.values())
    counts = {driver: count for driver, count in known.by_driver.items() if count}
    assert counts == {driver: drivers.count(driver) for driver in set(drivers)}
    names = [f"{driver}/h{n}" for driver in ("csi.a", "csi.b") for n in range(2)]
    assert [n for n in names if n in known] == [n for n in names if n in recounted]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happened_it_equals_a_recount(seed):
    history = History(seed)
    for _ in range(60):
        history.step()
        if history.rng.random() < 0.7:
            history.compare()
    for number in range(4):
        history.bench.cache.remove_pod(f"uid-p{number}")
    attached = history.bench.cache.volumes._attached
    assert (attached._rows, attached._claims, attached._behind) == ({}, {}, {})
