"""NodeOwnership decides what the scalar rule decides, also from what is kept."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from k8s_scheduler.api.config.extras import NodeOwnershipSettings as Ownership
from k8s_scheduler.api.config.node_selector import (
    AffinityRequirement,
    Selector,
    Term,
    selector_errors,
)
from k8s_scheduler.api.config.profiles.node_ownership import within_own_nodes
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.messages.outgoing import Bind, Log
from k8s_scheduler.core.plugins.node_ownership import NOT_OWNED, NodeOwnership
from k8s_scheduler.core.state.cache import Cache
from tests.builders import Reading, make_node, make_pod
from tests.inside import inside
from tests.property.strategies import expressions, nodes
from tests.reference import scalar
from tests.unit.core.engine.cores import FULL
from tests.unit.core.harness import Harness, only


@st.composite
def selectors(draw):
    """Draw a selector that passes the checks of configuration: no term of it is empty."""
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        drawn = draw(st.lists(expressions(), min_size=1, max_size=2))
        terms.append(
            Term(
                tuple(
                    AffinityRequirement(e["key"], e["operator"], tuple(e.get("values") or ()))
                    for e in drawn
                )
            )
        )
    found = Selector(tuple(terms))
    # `Gt -1` is refused: it is no value that a label can have.
    assume(not selector_errors(found, ()))
    return found


@given(selector=selectors(), drawn=st.data())
def test_columns_equal_the_scalar_rule(selector, drawn):
    cluster = [drawn.draw(nodes(f"n{i}")).obj() for i in range(drawn.draw(st.integers(1, 6)))]
    cache = Cache()
    for node in cluster:
        cache.put_node(node)
    plugin = NodeOwnership(Ownership(selector))
    verdicts = VerdictTable()
    view = RowsView(
        cache,
        np.arange(len(cluster)),
        reader=Reading(plugin.name, Declarations(plugin.depends_on)),
        verdicts=verdicts,
    )
    codes = plugin.filter(None, view).tolist()
    owned = [
        any(scalar.term_matches(term, node) for term in selector.node_selector_terms)
        for node in cluster
    ]
    assert [code == 0 for code in codes] == owned
    assert {verdicts[code].reasons for code in codes if code} <= {(NOT_OWNED,)}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["flip", "pod"]), st.integers(0, 3)), min_size=1, max_size=25
    )
)
def test_what_is_kept_follows_the_labels(steps):
    """Every decision is made again from scratch, and no pod goes to a node that is not ours."""
    ours = Ownership(Selector((Term((AffinityRequirement("owner", "In", ("us",)),)),)))
    profiles = tuple(within_own_nodes(p, ours) for p in FULL.profiles)
    h = Harness(replace(FULL, profiles=profiles, verified_share=1.0))
    owned = dict.fromkeys(range(4), False)
    for i in owned:
        h.node(make_node(f"n{i}").obj())
    for number, (what, i) in enumerate(steps):
        if what == "flip":
            owned[i] = not owned[i]
            node = make_node(f"n{i}")
            h.node((node.label(owner="us") if owned[i] else node).obj())
        else:
            h.pod(make_pod(f"p{number}").request(cpu="100m").obj())
        h.tick(20)
        for bind in only(Bind, h.schedule()):
            assert owned[int(bind.node[1:])]
            h.result(bind)
        if any(owned.values()):
            assert len(inside(h.core).queue) == 0
    assert [log for log in only(Log, h.out) if "stale" in log.event] == []
