"""Caches shrink when memory is short, before anything else has to give, and grow again later."""

from types import SimpleNamespace

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.app.process.memory import (
    LEAST_BUDGET_BYTES,
    Caches,
    CacheSize,
    MemoryWatch,
    ProcessMemory,
    default_limit_bytes,
)
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.messages.incoming import LimitCaches, Restore
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.harness import Harness, only

MIB = 1024 * 1024
LIMIT = 1000 * MIB
BUDGET = 64 * MIB


class Process:
    """A process whose memory is what a test says."""

    def __init__(self, limit=LIMIT):
        self.used = 0
        self.budgets = []
        self.given_back = 0
        self.metrics = Metrics()
        self.sizes = {"requests": CacheSize(0, 0)}
        # What the allocator has given out: all, unless a test says otherwise.
        self.given_out = None
        self.watch = MemoryWatch(
            limit,
            Caches(BUDGET, self.budgets.append, lambda: self.sizes),
            metrics=self.metrics.scheduler,
            memory=SimpleNamespace(
                resident=lambda: self.used, used=lambda: self.given_out, give_back=self.give_back
            ),
        )

    def give_back(self):
        self.given_back += 1

    def looks(self, count, used):
        self.used = used
        for _ in range(count):
            self.watch.look()

    def value(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
def process():
    return Process()


class TestShrinking:
    """More than 90 % of the limit."""

    def test_the_budget_is_halved_step_by_step_and_memory_given_back(self, process, caplog):
        process.looks(1, 901 * MIB)
        assert (process.budgets, process.given_back) == ([BUDGET // 2], 1)
        assert "Memory is short, caches shrink" in caplog.text
        process.looks(4, 901 * MIB)
        assert len(process.budgets) == 1
        process.looks(1, 901 * MIB)
        assert process.budgets == [BUDGET // 2, BUDGET // 4]
        assert process.value("k8s_scheduler_memory_shrinks_total") == 2
        assert process.value("k8s_scheduler_cache_budget_bytes") == BUDGET // 4

    def test_it_ends_at_the_least_and_says_once_a_minute_that_more_is_needed(self, process, caplog):
        process.looks(100, 950 * MIB)
        assert process.budgets[-1] == LEAST_BUDGET_BYTES
        caplog.clear()
        process.looks(120, 950 * MIB)
        assert caplog.text.count("raise the limit") == 2

    def test_below_that_nothing_happens(self, process):
        process.looks(100, 899 * MIB)
        assert process.budgets == []

    def test_without_a_limit_nothing_happens(self):
        process = Process(limit=0)
        process.looks(100, 10**15)
        assert process.budgets == []


class TestGrowing:
    """Less than 75 % of the limit."""

    def test_the_budget_is_doubled_each_minute_up_to_what_it_was(self, process):
        process.looks(6, 950 * MIB)
        del process.budgets[:]
        process.looks(59, 700 * MIB)
        assert process.budgets == []
        process.looks(200, 700 * MIB)
        assert process.budgets == [BUDGET // 2, BUDGET]

    def test_in_between_it_stays_as_it_is(self, process):
        process.looks(1, 950 * MIB)
        process.looks(200, 800 * MIB)
        assert process.budgets == [BUDGET // 2]


class TestGivingBack:
    """What is free goes back to the system, seldom, and if it is worth it."""

    class Freeing(Process):
        """A process that gives back all that is free."""

        def give_back(self):
            super().give_back()
            self.used = self.given_out + 20 * MIB

    @pytest.fixture(params=[0, LIMIT], ids=["without a limit", "with a limit"])
    def freeing(self, request):
        process = self.Freeing(request.param)
        process.given_out = 80 * MIB
        # What is fixed is found out once.
        process.looks(60, 100 * MIB)
        assert (process.given_back, process.used) == (1, 100 * MIB)
        return process

    def test_what_became_free_is_given_back_within_a_minute_and_once(self, freeing):
        freeing.given_out = 200 * MIB
        freeing.looks(60, 220 * MIB)
        assert freeing.given_back == 1
        freeing.given_out = 80 * MIB
        freeing.looks(59, 220 * MIB)
        assert freeing.given_back == 1
        freeing.looks(1, 220 * MIB)
        assert (freeing.given_back, freeing.used) == (2, 100 * MIB)
        freeing.looks(600, 100 * MIB)
        assert freeing.given_back == 2

    def test_less_than_a_tenth_is_not_worth_it(self, freeing):
        freeing.looks(600, 107 * MIB)
        freeing.given_out = 480 * MIB
        freeing.looks(600, 540 * MIB)
        assert freeing.given_back == 1

    def test_what_can_not_be_given_back_is_not_asked_for_again(self, freeing):
        calls = []
        freeing.watch._memory.give_back = lambda: calls.append(freeing.used)
        freeing.looks(600, 150 * MIB)
        assert calls == [150 * MIB]

    def test_where_the_allocator_tells_nothing_nothing_is_done(self):
        process = Process(limit=0)
        process.looks(600, 500 * MIB)
        assert process.given_back == 0


def test_caches_are_shown_by_name(process):
    process.sizes = {"requests": CacheSize(5, 2)}
    process.looks(2, 0)
    process.sizes = {"requests": CacheSize(7, 3)}
    process.looks(1, 0)
    assert process.value("k8s_scheduler_cache_bytes", cache="requests") == 7
    assert process.value("k8s_scheduler_cache_dropped_total", cache="requests") == 3


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.max": "1000\n"}, 800),
        ({"memory.max": "max\n"}, 0),
        ({"memory/memory.limit_in_bytes": "1000\n"}, 800),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0),
        ({}, 0),
    ],
)
def test_the_default_is_a_share_of_the_limit_of_the_cgroup(tmp_path, files, limit):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert default_limit_bytes(tmp_path) == limit


def test_memory_can_be_read_and_given_back():
    memory = ProcessMemory()
    memory.give_back()
    assert MIB < memory.resident() < 2**40


def test_a_core_that_is_told_so_keeps_less_and_decides_the_same():
    setup = Setup(profiles=default_configuration(known_plugins()).profiles)
    told, plain = Harness(setup), Harness(setup)
    for core in (told, plain):
        for number in range(5):
            core.node(make_node(f"n{number}").offers(cpu="8", memory="9Gi", pods="99").obj())
    chosen = []
    for number in range(30):
        if number == 15:
            before = len(inside(told.core).shapes)
            told.tell(LimitCaches(told.now, 1))
            assert (before, len(inside(told.core).shapes)) == (5, 1)
        pod = make_pod(f"p{number}").uid(f"u{number}").request(cpu=f"{100 + number % 5}m").obj()
        for core in (told, plain):
            core.pod(pod)
        one, other = (only(Bind, core.schedule()) for core in (told, plain))
        assert one == other
        chosen += one
    assert len(chosen) == 30
    restored = Scheduler(setup)
    restored.handle(Restore(told.now, told.core.checkpoint()))
    assert restored.checkpoint() == told.core.checkpoint()
