"""Affinity terms that placed pods hold: who is picked, by how many, and for how long."""

import pytest

from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.held_terms import NO_TERMS, HeldTerms, TermKind, terms_of
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import REQUIRED, away, near


def term(**parts):
    return {"topologyKey": "zone", **parts}


def terms(*required, kind="podAffinity", namespace="home"):
    pod = make_pod("p").namespace(namespace)
    pod.raw["spec"]["affinity"] = {kind: {REQUIRED: list(required)}}
    return terms_of(pod.obj())


def selecting(**pairs):
    return term(labelSelector={"matchLabels": pairs})


def test_without_namespaces_the_pods_own_is_meant():
    (found,) = terms(selecting(app="x"))
    assert found.picks("home", {}, {"app": "x"})
    assert not found.picks("away", {}, {"app": "x"})


def test_listed_namespaces_go_instead_of_the_own_one():
    (found,) = terms({**selecting(app="x"), "namespaces": ["b", "a"]})
    assert found.namespaces == ("a", "b")
    assert not found.picks("home", {}, {"app": "x"})
    assert found.picks("b", {}, {"app": "x"})


def test_namespaces_by_label():
    red = {"matchLabels": {"team": "red"}}
    (found,) = terms({**selecting(app="x"), "namespaceSelector": red})
    assert found.picks("anywhere", {"team": "red"}, {"app": "x"})
    assert not found.picks("home", {}, {"app": "x"})
    (both,) = terms({**selecting(app="x"), "namespaceSelector": red, "namespaces": ["home"]})
    assert both.picks("home", {}, {"app": "x"})
    assert both.picks("anywhere", {"team": "red"}, {"app": "x"})


def test_the_empty_namespace_selector_picks_all():
    (found,) = terms({**selecting(app="x"), "namespaceSelector": {}})
    assert found.picks("anywhere", {}, {"app": "x"})


def test_an_absent_label_selector_picks_nobody_and_an_empty_one_everybody():
    (absent,) = terms(term())
    assert not absent.picks("home", {}, {"app": "x"})
    (empty,) = terms(term(labelSelector={}))
    assert empty.picks("home", {}, {})


def test_weights_and_kinds_tell_terms_apart():
    pod = make_pod("p")
    wishes = [{"weight": weight, "podAffinityTerm": selecting(app="x")} for weight in (1, 2)]
    pod.raw["spec"]["affinity"] = {
        kind: {
            REQUIRED: [selecting(app="x")],
            "preferredDuringSchedulingIgnoredDuringExecution": wishes,
        }
        for kind in ("podAffinity", "podAntiAffinity")
    }
    found = terms_of(pod.obj())
    assert len(set(found)) == 6
    assert sorted((t.kind, t.weight) for t in found) == sorted(
        [
            (TermKind.REQUIRED_AFFINITY, 0),
            (TermKind.PREFERRED_AFFINITY, 1),
            (TermKind.PREFERRED_AFFINITY, 2),
            (TermKind.REQUIRED_ANTI_AFFINITY, 0),
            (TermKind.PREFERRED_ANTI_AFFINITY, 1),
            (TermKind.PREFERRED_ANTI_AFFINITY, 2),
        ]
    )


def test_both_spellings_of_a_selector_are_one_term():
    expression = {"key": "app", "operator": "In", "values": ["x"]}
    assert terms(selecting(app="x")) == terms(
        term(labelSelector={"matchExpressions": [expression]})
    )


# Holders


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "x"}},
        {"matchLabels": {"app": "x", "tier": "t"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
        {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]},
        {},
    ],
)
def test_a_held_term_finds_whom_it_picks(selector):
    held = HeldTerms()
    (found,) = terms(term(labelSelector=selector))
    held.acquire((found,))
    assert held.picking("home", {}, {"app": "x", "tier": "t"}) == [found]
    assert held.picking("away", {}, {"app": "x", "tier": "t"}) == []
    assert held.picking("home", {}, {"other": "o"}) == ([found] if selector == {} else [])


def test_a_term_is_forgotten_with_its_last_holder():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    both, one = held.acquire((x, y)), held.acquire((x,))
    assert held.acquire((x,)) == one
    held.release(both)
    assert held.picking("home", {}, {"app": "y"}) == []
    held.release(one)
    assert held.picking("home", {}, {"app": "x"}) == [x]
    held.release(one)
    assert held.picking("home", {}, {"app": "x"}) == []
    assert held.weigh({x: 1}).tolist() == [0, 0, 0]


def test_ids_are_used_again_for_other_terms():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    first = held.acquire((x,))
    held.release(first)
    assert held.acquire((y,)) == first
    assert held.weigh({x: 1, y: 5})[first] == 5


def test_weights_add_up_per_holder():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    both, one = held.acquire((x, y)), held.acquire((y,))
    found = held.weigh({x: 3, y: -5})
    assert (found[NO_TERMS], found[both], found[one]) == (0, -2, -5)


def test_no_terms_have_an_id_that_stays():
    held = HeldTerms()
    assert held.acquire(()) == NO_TERMS
    held.release(NO_TERMS)
    assert held.acquire(()) == NO_TERMS


def test_a_pod_may_hold_the_same_term_twice():
    held = HeldTerms()
    (x,) = terms(selecting(app="x"))
    holder = held.acquire((x, x))
    assert held.weigh({x: 2})[holder] == 4
    assert held.picking("home", {}, {"app": "x"}) == [x]
    held.release(holder)
    assert held.picking("home", {}, {"app": "x"}) == []


def test_a_pod_with_the_same_term_twice_can_leave():
    cache = Cache()
    cache.put_node(make_node("n").obj())
    pod = away(away(make_pod("p"), app="x"), app="x").on("n").obj()
    cache.put_bound(pod)
    cache.remove_pod(pod.metadata.uid)
    assert cache.pod_count == 0
    assert cache.pods.held_terms.picking("default", {}, {"app": "x"}) == []


def test_an_unreadable_term_of_a_placed_pod_does_not_take_the_readable_lists_along():
    cache = Cache()
    cache.put_node(make_node("n").obj())
    pod = near(away(make_pod("p"), app="x"), app="y").on("n")
    bad = {"matchExpressions": [{"key": "app", "operator": "Sometimes"}]}
    pod.raw["spec"]["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"] = bad
    cache.put_bound(pod.obj())
    found = cache.pods.held_terms.picking("default", {}, {"app": "x"})
    assert [t.kind for t in found] == [TermKind.REQUIRED_ANTI_AFFINITY]
