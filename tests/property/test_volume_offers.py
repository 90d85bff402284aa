"""An index that lives through changes offers what one that is made anew would offer."""

from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.api.node import Node
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.volumes.offers import CapacityDemand
from tests.unit.core.state.volumes.test_by_class import HOST, capacity

KIND = Kind.CSI_STORAGE_CAPACITY
CLASSES = ["x", "y"]
HOSTS = ["n0", "n1", "n2", None]

# Name -> class, capacity and host.
contents = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.sampled_from(CLASSES), st.sampled_from(["1", "2"]), st.sampled_from(HOSTS)),
)


def put(cache, content):
    for name in "abcdefgh":
        if name not in content:
            cache.objects.remove(KIND, "s", name)
    for name, (of, size, host) in content.items():
        cache.objects.put(KIND, "s", name, capacity(name, of, size=size, host=host))


def offered(cache, of):
    """Return the two best of each host, and of what reaches all, for two demands."""
    index = cache.offers.of(KIND, of)
    if index is None:
        return None
    labels = cache.nodes.labels
    found = []
    for size in (1, 2):
        choices = index.choices(CapacityDemand(size), 2, labels)
        for _, levels in choices.tables:
            ids = labels.column(HOST)[cache.nodes.present_rows()]
            found += [named(index, level[ids].tolist()) for level in levels]
        found += [named(index, slots) for _, slots in choices.selected]
        # Better offers have lower ranks.
        everything = [slot for slot, offer in enumerate(index._offers) if offer is not None]
        found.append(named(index, sorted(everything, key=lambda slot: choices.rank[slot])))
    return found


def named(index, slots):
    return [None if slot < 0 else index.offer(slot).thing.metadata.name for slot in slots]


def cache_with_nodes():
    cache = Cache()
    for name in ("n0", "n1"):
        cache.put_node(make_node(name))
    return cache


def make_node(name):
    return Node(metadata=ObjectMeta(name=name, labels={HOST: name}))


@given(st.lists(contents, min_size=2, max_size=5))
def test_a_changed_index_equals_a_new_one(history):
    cache = cache_with_nodes()
    for content in history:
        put(cache, content)
        anew = cache_with_nodes()
        put(anew, content)
        for of in CLASSES:
            assert offered(cache, of) == offered(anew, of)
