"""A tick gives back rows of nodes that are gone; decisions go on as if nothing had happened."""

from k8s_scheduler.core.messages.incoming import Restore
from k8s_scheduler.core.state.nodes.node_table import NodeTable
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness

GHOSTS = NodeTable.SPARED
NODES = 3


def haunted() -> Harness:
    """Return a core with few nodes, and as many rows of nodes that never were as are cut off."""
    h = Harness()
    for number in range(NODES):
        h.node(make_node(f"n{number}").offers(cpu="4", memory="8Gi", pods="10").obj())
    for _ in range(2):
        replicas(h)
    for number in range(GHOSTS):
        h.pod(make_pod(f"g{number}").on(f"ghost-{number}").obj())
    # Evaluations and counts of as many rows.
    replicas(h)
    for number in range(GHOSTS):
        h.drop_pod(make_pod(f"g{number}").obj())
    return h


def replicas(h: Harness) -> list[str]:
    """Let two pods of one shape come; return where they go."""
    for name in ("a", "b"):
        h.pod(make_pod(f"{name}{len(h.told)}").request(cpu="100m").obj())
    binds = h.binds()
    for bind in binds:
        h.result(bind)
    return [bind.node for bind in binds]


def test_a_tick_gives_rows_back():
    h = haunted()
    assert h.core.holdings.row_count == NODES + GHOSTS
    h.tick(1.0)
    assert h.core.holdings.row_count == NODES


def test_a_core_that_is_restored_in_between_goes_on_as_the_original():
    h = haunted()
    twin = Harness()
    twin.core.handle(Restore(h.now, h.core.checkpoint()))
    twin.told = list(h.told)
    for each in (h, twin):
        each.tick(1.0)
    assert twin.core.holdings.row_count == h.core.holdings.row_count == NODES
    for _ in range(3):
        assert replicas(twin) == replicas(h)
    assert twin.core.checkpoint() == h.core.checkpoint()


def test_a_checkpoint_of_a_shortened_table_is_that_of_one_that_was_never_longer():
    h = haunted()
    h.tick(1.0)
    entry = h.core.checkpoint()
    assert entry.row_count == NODES
    other = Harness()
    other.core.handle(Restore(h.now, entry))
    assert other.core.checkpoint() == entry


def test_nothing_is_kept_of_rows_that_are_gone():
    h = haunted()
    assert len(inside(h.core).shapes)
    h.tick(1.0)
    assert not len(inside(h.core).shapes)
    assert not len(inside(h.core).cache.pods.counters)
    assert len(replicas(h)) == 2


def test_evaluations_stay_while_no_row_is_given_back():
    h = haunted()
    h.tick(1.0)
    h.pod(make_pod("late").on("ghost-late").obj())
    for _ in range(3):
        replicas(h)
    h.drop_pod(make_pod("late").obj())
    kept = len(inside(h.core).shapes)
    assert kept
    h.tick(1.0)
    assert len(inside(h.core).shapes) == kept


def test_a_node_in_the_place_of_a_row_that_was_cut_off_takes_pods():
    h = haunted()
    h.tick(1.0)
    h.pod(make_pod("large").request(cpu="16").obj())
    assert not h.binds()
    h.node(make_node("new").offers(cpu="32", memory="8Gi", pods="10").obj())
    h.tick(15.0)
    assert [bind.node for bind in h.binds()] == ["new"]
