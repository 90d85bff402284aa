"""The cache's corners: what is noted for waking, and pods that move or come back."""

import pytest

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.state.cache import Cache, CacheError
from k8s_scheduler.core.state.news.changes import Change
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import claiming


@pytest.fixture
def cache():
    found = Cache()
    for name in ("n0", "n1"):
        found.put_node(make_node(name).obj())
    found.changes.drain()
    return found


def news(cache):
    """Return what was noted, by node."""
    return {cache.nodes.name_of(row): change for row, change in cache.changes.drain().rows.items()}


def test_a_pod_on_its_way_through_life(cache):
    pod = make_pod("p").request(cpu="2")
    cache.assume(pod.obj(), cache.nodes.row_of("n0"))
    assert news(cache) == {}
    cache.announce("uid-p")
    assert news(cache) == {"n0": Change.ASSIGNED_POD_ADD}
    # That it is there is no news any more when the watch confirms it.
    cache.put_bound(pod.on("n0").obj())
    assert news(cache) == {}
    cache.put_bound(pod.label(app="x").obj())
    assert news(cache) == {"n0": Change.ASSIGNED_POD_LABEL}
    pod.raw["spec"]["containers"] = []
    cache.put_bound(pod.request(cpu="1").obj())
    assert news(cache) == {"n0": Change.ASSIGNED_POD_SCALE_DOWN}
    cache.remove_pod("uid-p")
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE}
    cache.remove_pod("uid-p")
    assert news(cache) == {}


def test_labels_that_came_with_the_binding_are_news(cache):
    pod = make_pod("p")
    cache.assume(pod.obj(), cache.nodes.row_of("n0"))
    news(cache)
    cache.put_bound(pod.on("n0").label(zone="z").obj())
    assert news(cache) == {"n0": Change.ASSIGNED_POD_LABEL}
    assert not cache.is_assumed("uid-p")


def test_a_pod_confirmed_elsewhere_is_news_on_both_nodes(cache):
    pod = make_pod("p").request(cpu="1")
    cache.assume(pod.obj(), cache.nodes.row_of("n0"))
    news(cache)
    cache.put_bound(pod.on("n1").obj())
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE, "n1": Change.ASSIGNED_POD_ADD}
    assert (cache.pod_count, cache.assumed_count) == (1, 0)


def test_a_forgotten_pod_leaves_room(cache):
    cache.assume(make_pod("p").obj(), cache.nodes.row_of("n0"))
    news(cache)
    cache.forget("uid-p")
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE}
    with pytest.raises(CacheError, match="not assumed"):
        cache.forget("uid-p")


def test_nobody_takes_room_twice(cache):
    cache.assume(make_pod("p").obj(), cache.nodes.row_of("n0"))
    with pytest.raises(CacheError, match="already takes room"):
        cache.assume(make_pod("p").obj(), cache.nodes.row_of("n1"))


def test_a_pod_re_created_under_its_name_is_another_pod(cache):
    first = claiming(make_pod("p").uid("one"), "c").on("n0").obj()
    second = claiming(make_pod("p").uid("two"), "c").on("n0").obj()
    cache.put_bound(first)
    cache.put_bound(second)
    row = cache.nodes.row_of("n0")
    assert list(cache.volumes.on(row)) == ["one", "two"]
    assert dict(cache.volumes.rows_using("default", "c")) == {row: 2}
    cache.remove_pod("one")
    assert [p.uid for p in cache.pods_on(row)] == ["two"]
    assert dict(cache.volumes.rows_using("default", "c")) == {row: 1}


def test_a_pod_that_cannot_be_read_leaves_things_as_they_were(cache):
    good = make_pod("p").request(cpu="1").on("n0").obj()
    cache.put_bound(good)
    before = cache.pods_on(cache.nodes.row_of("n0"))
    with pytest.raises(QuantityError):
        cache.put_bound(make_pod("p").request(cpu="a lot").on("n1").obj())
    assert cache.pods_on(cache.nodes.row_of("n0")) == before
    with pytest.raises(QuantityError):
        cache.put_bound(make_pod("q").request(cpu="a lot").on("n2").obj())
    assert cache.nodes.row_of("n2") is None


def test_pods_seen_before_their_node_keep_its_row(cache):
    cache.put_bound(make_pod("p").request(cpu="1").on("n2").obj())
    row = cache.nodes.row_of("n2")
    assert cache.nodes.node_at(row) is None
    cache.put_node(make_node("n2").obj())
    assert cache.nodes.row_of("n2") == row
    cache.remove_node("n2")
    assert [p.uid for p in cache.pods_on(row)] == ["uid-p"]
    cache.remove_pod("uid-p")
    assert cache.nodes.row_of("n2") is None
    assert cache.nodes.claim_row(NodeName("n3")) == row


# Promises


def nominate(cache, node, **labels):
    cache.nominate(make_pod("vip").label(**labels).obj(), NodeName(node))


def test_a_promise_that_ends_or_moves_is_news_where_it_was(cache):
    nominate(cache, "n0")
    assert news(cache) == {}
    nominate(cache, "n1")
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE}
    cache.end_nomination("uid-vip")
    assert news(cache) == {"n1": Change.ASSIGNED_POD_DELETE}
    cache.end_nomination("uid-vip")
    assert news(cache) == {}


def test_a_promise_on_a_node_that_is_not_there_is_no_news(cache):
    nominate(cache, "gone")
    cache.end_nomination("uid-vip")
    assert news(cache) == {}


def test_a_promise_redeemed_elsewhere_is_news_where_it_was(cache):
    nominate(cache, "n0")
    cache.assume(make_pod("vip").obj(), cache.nodes.row_of("n1"))
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE}
    assert cache.nominations.node_of(PodUid("uid-vip")) is None


def test_a_promised_pod_with_other_labels_is_news(cache):
    """Others may look at its labels: the promise is another one."""
    nominate(cache, "n0", app="x")
    news(cache)
    nominate(cache, "n0", app="y")
    assert news(cache) == {"n0": Change.ASSIGNED_POD_DELETE}
    assert cache.nominations.on(NodeName("n0"))["uid-vip"].metadata.labels == {"app": "y"}


def test_pods_that_take_the_same_share_one_record_of_it(cache):
    for name in ("p", "q"):
        cache.put_bound(make_pod(name).request(cpu="100m").on("n0").obj())
    cache.put_bound(make_pod("r").request(cpu="200m").on("n0").obj())
    first, second, other = cache.pods_on(cache.nodes.row_of(NodeName("n0")))
    assert first.requests is second.requests
    assert first.requests != other.requests
