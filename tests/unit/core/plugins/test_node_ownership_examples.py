"""NodeOwnership by example: nodes of others are no candidates, and stay part of the cluster."""

from dataclasses import replace

import pytest

from k8s_scheduler.api.config.extras import NodeOwnershipSettings
from k8s_scheduler.api.config.node_selector import AffinityRequirement, Selector, Term
from k8s_scheduler.api.config.profiles.node_ownership import within_own_nodes
from k8s_scheduler.core.messages.outgoing import Bind, Evict
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FULL, FullHarness, near, promised, spread, zoned
from tests.unit.core.harness import Harness, only

NOT_OURS = "node(s) didn't match the node ownership of this scheduler"
OURS = NodeOwnershipSettings(Selector((Term((AffinityRequirement("owner", "In", ("us",)),)),)))


class Owner(FullHarness):
    """Drives a core that owns the nodes with `owner=us`."""

    def __init__(self, ownership: NodeOwnershipSettings = OURS) -> None:
        profiles = tuple(within_own_nodes(p, ownership) for p in FULL.profiles)
        Harness.__init__(self, replace(FULL, profiles=profiles))


@pytest.fixture
def h():
    return Owner()


def test_only_own_nodes_are_candidates(h):
    h.node(zoned("theirs").obj())
    h.node(zoned("ours").label(owner="us").obj())
    h.node(zoned("of-others").label(owner="them").obj())
    for i in range(3):
        h.pod(make_pod(f"p{i}").request(cpu="1").obj())
    assert [bind.node for bind in h.binds()] == ["ours"] * 3


def test_the_text_says_so_and_preemption_does_not_help(h):
    h.node(zoned("theirs").obj())
    h.node(zoned("ours", cpu="1").label(owner="us").obj())
    h.pod(make_pod("victim").request(cpu="2").on("theirs").priority(0).obj())
    h.pod(make_pod("p").request(cpu="4").priority(10).obj())
    assert h.binds() == []
    assert only(Evict, h.out) == []
    ((_, _, note),) = h.events()
    assert note == (
        f"0/2 nodes are available: 1 Insufficient cpu, 1 {NOT_OURS}. preemption: 0/2 nodes are "
        "available: 2 Preemption is not helpful for scheduling."
    )


def test_a_label_that_makes_a_node_ours_wakes_its_pods(h):
    h.node(zoned("n").obj())
    h.pod(make_pod("p").request(cpu="1").obj())
    assert h.binds() == []
    assert h.parked() == ["p"]
    h.node(zoned("n").label(owner="us").obj())
    h.tick(2)
    assert [bind.node for bind in only(Bind, h.schedule())] == ["n"]


def test_another_label_wakes_nobody(h):
    h.node(zoned("n").obj())
    h.pod(make_pod("p").request(cpu="1").obj())
    h.settle()
    h.node(zoned("n").label(colour="red").obj())
    h.tick(2)
    h.settle()
    assert h.parked() == ["p"]
    assert h.parked_in_vain() == []


def test_a_node_that_ceases_to_be_ours_is_left_at_once(h):
    """Pods of one shape share what was found out: a label has to spoil it."""
    h.node(zoned("n").label(owner="us").obj())
    h.pod(make_pod("p0").request(cpu="1").obj())
    assert len(h.binds()) == 1
    h.node(zoned("n").obj())
    h.pod(make_pod("p1").request(cpu="1").obj())
    assert h.binds() == []
    h.node(zoned("n").label(owner="us").obj())
    h.tick(2)
    assert [bind.name for bind in only(Bind, h.schedule())] == ["p1"]


def test_a_promise_elsewhere_is_not_kept(h):
    h.node(zoned("theirs").obj())
    h.node(zoned("ours").label(owner="us").obj())
    h.pod(promised(make_pod("p").request(cpu="1"), "theirs").obj())
    assert [bind.node for bind in h.binds()] == ["ours"]


def test_pods_on_nodes_of_others_count_for_affinity_and_spreading(h):
    h.node(zoned("theirs", "east").obj())
    h.node(zoned("ours", "west").label(owner="us").obj())
    h.pod(make_pod("friend").label(app="db").on("theirs").obj())
    h.pod(near(make_pod("p").request(cpu="1"), app="db").obj())
    assert h.binds() == []
    # One is in the west, none in the east: the next would have to go there.
    h.pod(make_pod("even").label(app="web").on("ours").obj())
    h.pod(spread(make_pod("q").label(app="web").request(cpu="1"), app="web").obj())
    assert h.binds() == []


@pytest.mark.parametrize(
    ("requirement", "field"),
    [
        (AffinityRequirement("owner", "NotIn", ("them",)), False),
        (AffinityRequirement("owner", "Exists"), False),
        (AffinityRequirement("metadata.name", "In", ("ours",)), True),
    ],
    ids=["expression", "presence", "field"],
)
def test_selectors_of_every_form(requirement, field):
    term = Term(match_fields=(requirement,)) if field else Term((requirement,))
    h = Owner(NodeOwnershipSettings(Selector((term,))))
    h.node(make_node("ours").label(owner="us").obj())
    h.node(make_node("theirs").label(owner="them").obj())
    h.pod(make_pod("p").obj())
    assert "ours" in h.core.judge(make_pod("p").obj()).feasible


def test_without_ownership_a_profile_is_as_it_was():
    profile = FULL.profiles[0]
    assert within_own_nodes(profile, NodeOwnershipSettings()) is profile
