"""Replicas that differ in labels alone are woken together, unless a plugin tells them apart."""

from tests.builders import PodBuilder, make_pod
from tests.unit.core.engine.cores import zoned
from tests.unit.core.queue.test_waking import Spy, away, h, names

__all__ = ["h"]


def replica(number: int) -> PodBuilder:
    return make_pod(f"db-{number}").label(app="db", member=f"db-{number}").request(cpu="3")


def small(h, cpu="2"):
    for name in ("n1", "n2"):
        h.node(zoned(name, cpu=cpu).obj())


def test_replicas_are_judged_once_for_all_whatever_their_labels(h, monkeypatch):
    small(h)
    for number in range(50):
        h.pod(replica(number).obj())
    h.settle()
    spy = Spy(h, monkeypatch)
    h.node(zoned("n1", cpu="2500m").obj())
    h.settle()
    assert spy.rows == [1]
    assert len(h.parked()) == 50


def test_one_that_others_shun_is_left_while_its_siblings_are_woken(h):
    small(h)
    h.pod(away(make_pod("hermit"), member="db-1").on("n1").obj())
    for number in range(3):
        h.pod(replica(number).obj())
    h.settle()
    assert h.parked() == ["db-0", "db-1", "db-2"]
    h.node(zoned("n1", cpu="16").obj())
    h.settle()
    assert h.parked() == ["db-1"]
    assert h.parked_in_vain() == []


def test_replicas_are_told_apart_as_soon_as_a_term_does(h, monkeypatch):
    small(h)
    for number in range(3):
        h.pod(replica(number).obj())
    h.settle()
    spy = Spy(h, monkeypatch)
    hermit = away(make_pod("hermit"), member="db-1").on("n1").obj()
    h.pod(hermit)
    h.node(zoned("n2", cpu="2500m").obj())
    h.settle()
    # The one that the term picks, and the others.
    assert spy.rows == [1, 1]
    h.drop_pod(hermit)
    h.node(zoned("n2", cpu="2600m").obj())
    h.settle()
    # The term is gone: they are one again.
    assert spy.rows[2:] == [2]
    assert h.parked_in_vain() == []


def test_they_are_woken_in_the_order_in_which_they_were_parked(h):
    small(h)
    h.pod(away(make_pod("hermit"), member="db-1").on("n1").obj())
    for number in (2, 1, 0, 3):
        h.pod(replica(number).obj())
        h.settle()
    h.node(zoned("n1", cpu="16").obj())
    h.settle()
    assert names(h) == ["db-2", "db-0", "db-3"]
