"""Affinity terms that placed pods hold: who is picked, by how many, and for how long."""

import pytest

from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.terms.held_terms import NO_TERMS, HeldTerms, TermKind, terms_of
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
    assert held.holders_of(x) == {}


def test_ids_are_used_again_for_other_terms():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    first = held.acquire((x,))
    held.release(first)
    assert held.acquire((y,)) == first
    assert (held.holders_of(x), held.holders_of(y)) == ({}, {first: 1})


def test_who_holds_a_term():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    both, one = held.acquire((x, y)), held.acquire((y,))
    assert (held.holders_of(x), held.holders_of(y)) == ({both: 1}, {both: 1, one: 1})


def test_somebody_is_told_of_holders_that_come():
    held = HeldTerms()
    told = []
    held.listen(told.append)
    x, y = terms(selecting(app="x"), selecting(app="y"))
    both = held.acquire((x, y))
    assert held.acquire((x, y)) == both
    assert held.acquire(()) == NO_TERMS
    assert told == [both]
    held.release(both)
    held.release(NO_TERMS)
    assert held.acquire((x, y)) == both
    assert told == [both]
    held.release(both)
    held.release(both)
    assert held.acquire((y, x)) == both
    assert told == [both, both], "the id means another holder"


def test_the_version_says_whether_the_same_terms_are_held():
    held = HeldTerms()
    x, y = terms(selecting(app="x"), selecting(app="y"))
    versions = [held.version]
    one = held.acquire((x,))
    versions.append(held.version)
    both = held.acquire((x, y))
    versions.append(held.version)
    assert len(set(versions)) == 3
    held.acquire((y,))
    held.release(one)
    assert held.version == versions[-1], "another holder, the same terms"
    held.release(both)
    assert held.version > versions[-1], "nobody holds x any more"


def test_pods_that_write_their_terms_alike_are_one_holder():
    held = HeldTerms()
    first, second = (away(make_pod(name), app="x").obj() for name in ("p", "q"))
    elsewhere = away(make_pod("r").namespace("other"), app="x").obj()
    holder = held.acquire_for(first)
    assert held.acquire_for(second) == holder
    assert held.acquire_for(elsewhere) != holder
    assert held.holders_of(*terms_of(first)) == {holder: 1}
    held.release(holder)
    assert held.holders_of(*terms_of(first)) == {holder: 1}, "the other pod is there"


def test_what_was_read_of_a_holder_is_forgotten_with_it():
    held = HeldTerms()
    pod, other = away(make_pod("p"), app="x").obj(), away(make_pod("q"), app="y").obj()
    held.release(held.acquire_for(pod))
    taken = held.acquire_for(other)
    found = held.acquire_for(pod)
    assert found != taken
    assert held.holders_of(*terms_of(pod)) == {found: 1}


def test_a_pod_with_node_affinity_alone_holds_nothing():
    held = HeldTerms()
    pod = make_pod("p")
    pod.raw["spec"]["affinity"] = {"nodeAffinity": {}}
    assert held.acquire_for(pod.obj()) == NO_TERMS


def test_no_terms_have_an_id_that_stays():
    held = HeldTerms()
    assert held.acquire(()) == NO_TERMS
    held.release(NO_TERMS)
    assert held.acquire(()) == NO_TERMS


def test_a_pod_may_hold_the_same_term_twice():
    held = HeldTerms()
    (x,) = terms(selecting(app="x"))
    holder = held.acquire((x, x))
    assert held.holders_of(x) == {holder: 2}
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
