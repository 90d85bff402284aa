"""Pods of a namespace that is held back are passed over, lose nothing, and come when they may."""

from k8s_scheduler.core.messages.incoming import HoldBack, Restore
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FULL, FullHarness
from tests.unit.core.engine.test_checkpoints import recorded


def bench(*, nodes=("n1",)):
    found = FullHarness()
    for name in nodes:
        found.node(make_node(name).offers(cpu="8", memory="8Gi", pods="110").obj())
    return found


def hold(core, *namespaces):
    return core.tell(HoldBack(core.now, namespaces))


def pods(core, namespace, *names, priority=0):
    for name in names:
        core.pod(make_pod(name).namespace(namespace).priority(priority).obj())


def names(binds):
    return [bind.name for bind in binds]


def test_others_go_first_even_if_they_matter_less():
    core = bench()
    pods(core, "sick", "s1", "s2", priority=100)
    pods(core, "well", "w1", "w2")
    assert hold(core, "sick") == []
    assert names(core.binds()) == ["w1", "w2"]
    assert not core.core.has_work
    assert len(inside(core.core).queue) == 2


def test_they_come_in_their_order_when_they_may():
    core = bench()
    hold(core, "sick")
    pods(core, "sick", "s1")
    pods(core, "sick", "s2", priority=7)
    pods(core, "well", "w1", priority=3)
    assert names(core.binds()) == ["w1"]
    pods(core, "well", "w2", priority=3)
    hold(core)
    assert core.core.has_work
    assert names(core.binds()) == ["s2", "w2", "s1"]


def test_each_message_takes_the_place_of_the_last():
    core = bench()
    pods(core, "a", "a1")
    pods(core, "b", "b1")
    hold(core, "a", "b")
    assert core.binds() == []
    hold(core, "a")
    hold(core, "a")
    assert names(core.binds()) == ["b1"]


def test_those_that_are_gone_or_change_are_not_forgotten():
    core = bench()
    hold(core, "sick")
    pods(core, "sick", "s1", "s2")
    core.drop_pod(make_pod("s1").namespace("sick").obj())
    pods(core, "sick", "s2", priority=5)
    hold(core)
    assert names(core.binds()) == ["s2"]


def test_an_attempt_under_way_ends_as_ever():
    core = bench()
    pods(core, "sick", "s1")
    [bind] = core.binds()
    hold(core, "sick")
    core.result(bind, bound=False, message="held back")
    core.tick(2.0)
    assert core.binds() == []
    hold(core)
    assert names(core.binds()) == ["s1"]


def test_a_rejected_one_is_not_tried_early_instead():
    core = bench(nodes=())
    pods(core, "sick", "s1")
    pods(core, "well", "w1")
    core.schedule()
    hold(core, "sick")
    core.node(make_node("n1").offers(cpu="8", memory="8Gi", pods="110").obj())
    # Both are woken and have a backoff; nothing else is there to do.
    core.settle()
    assert [bind.name for bind in core.out if hasattr(bind, "node")] == ["w1"]
    hold(core)
    assert names(core.binds()) == ["s1"]


def test_a_core_restored_from_a_checkpoint_passes_over_the_same():
    core = bench()
    pods(core, "sick", "s1")
    pods(core, "well", "w1", "w2")
    hold(core, "sick")
    core.schedule(limit=1)
    restore, read = recorded(core.core, HoldBack(9.0, ("x",)))
    assert read == HoldBack(9.0, ("x",))
    assert isinstance(restore, Restore)
    twin = Scheduler(FULL)
    twin.handle(restore)
    assert twin.checkpoint() == core.core.checkpoint()
    other = FullHarness()
    other.core = twin
    assert names(other.binds()) == names(core.binds()) == ["w2"]
    assert hold(other) == []
    assert names(other.binds()) == ["s1"]
