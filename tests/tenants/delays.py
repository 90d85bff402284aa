"""How long pods of others wait for their decision, on the whole core, as the daemon drives it.

The clock is a virtual one that goes on by the CPU each message takes, and to the next thing that
happens when there is nothing to do. What happens: pods of others come and go, nodes change, a
second is over. Decisions are asked for in the steps and batches of the pump.
"""

import heapq
import itertools
import time
from collections.abc import Callable

from k8s_scheduler.app.process.gc_pauses import watched_collector
from k8s_scheduler.core.messages.outgoing import Bind
from k8s_scheduler.obs.metrics import Metrics
from tests.as_made import Raw, as_made
from tests.bench.plain_decisions import CALIBRATED_MILLISECONDS, calibration_milliseconds
from tests.bench.workloads import HOST, ZONE, owned, plain, related, spread
from tests.tenants import crowding
from tests.tenants.tenant import Harm, Tenant
from tests.tenants.world import BATCH, STEP, World

PODS_PER_SECOND = 40
NODES_PER_SECOND = 2
LIFE_SECONDS = 2.0

Deed = Callable[[], None]


class Day:
    """A stretch of time in the life of a cluster."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._speed = CALIBRATED_MILLISECONDS / calibration_milliseconds()
        self._events: list[tuple[float, int, Deed]] = []
        self._order = itertools.count()
        self._come: dict[str, float] = {}
        self._numbers = itertools.count()
        # As in the pump: decisions between two looks at the clock.
        self._at_once = STEP
        self.delays: list[float] = []
        self.busy_seconds = 0.0

    def live(self, seconds: float) -> list[float]:
        """Let time pass; return how long each pod of others has waited."""
        world, end = self._world, self._world.now + seconds
        self.delays = []
        self._every(1 / PODS_PER_SECOND, self._pod_comes, end)
        self._every(1 / NODES_PER_SECOND, self._node_changes, end)
        self._every(1.0, lambda: world.tick(0.0), end)
        while world.now < end or self._come:
            while self._events and self._events[0][0] <= world.now:
                self._spend(heapq.heappop(self._events)[2])
            if world.core.has_work:
                self._batch()
            elif self._events:
                world.now = max(world.now, self._events[0][0])
            else:
                break
        return self.delays

    def _batch(self) -> None:
        """Decide as the pump does until something else has its turn."""
        world, left, started, is_first = self._world, BATCH.max_pods, self._world.now, True
        while left > 0 and world.core.has_work:
            step = min(left, self._at_once)
            self._spend(lambda step=step: self._schedule(step))
            left -= step
            is_full = world.now - started >= BATCH.max_milliseconds / 1000
            self._at_once = 1 if is_full and is_first else STEP
            if is_full:
                return
            is_first = False

    def _schedule(self, step: int) -> None:
        for instruction in self._world.schedule(step):
            if isinstance(instruction, Bind) and instruction.uid in self._come:
                self._bound.append(instruction.uid)

    def _spend(self, deed: Deed) -> None:
        """Do something; the clock goes on by what it took."""
        self._bound: list[str] = []
        started = time.process_time()
        deed()
        spent = (time.process_time() - started) * self._speed
        self._world.now += spent
        self.busy_seconds += spent
        for name in self._bound:
            self.delays.append(self._world.now - self._come.pop(name))
            self._at(self._world.now + LIFE_SECONDS, lambda name=name: self._world.drop_pod(name))

    def _at(self, moment: float, deed: Deed) -> None:
        heapq.heappush(self._events, (moment, next(self._order), deed))

    def _every(self, seconds: float, deed: Deed, end: float) -> None:
        moment = self._world.now
        while moment < end:
            self._at(moment, deed)
            moment += seconds

    def _pod_comes(self) -> None:
        number = next(self._numbers)
        name = f"day-{self._world.now:.6f}-{number}"
        raw = as_made(_ordinary(number), name, number, run=0)
        raw["metadata"].update(name=name, uid=name, namespace="others")
        self._come[name] = self._world.now
        self._world.pod(raw)

    def _node_changes(self) -> None:
        number = next(self._numbers)
        self._world.node(self._world.node_raw(number % self._world.nodes, room=251 + number % 7))


def _ordinary(number: int) -> Raw:
    kinds = (
        lambda: plain("replica", cpu="1m"),
        lambda: spread("even", key=ZONE, action="DoNotSchedule"),
        lambda: related("apart", side="podAntiAffinity", key=HOST),
        lambda: owned("web"),
        lambda: plain("job", cpu=f"{1 + number}m"),
    )
    return kinds[number % len(kinds)]()


def percentile(delays: list[float], share: float) -> float:
    """Return what so large a share of the delays is below."""
    return sorted(delays)[int(len(delays) * share)]


DELAYS = ("  p50", "  p90", "  p99")
_SHARES = (0.5, 0.9, 0.99)
_MANY = 10_000
_SECONDS = 20.0
DELAYING: dict[str, Harm] = {
    "10,000 parked shapes, too large": crowding.parked("too large"),
    "10,000 parked shapes, no such node": crowding.parked("no such node"),
    "10,000 parked shapes, no such friend": crowding.parked("no such friend"),
    "10,000 parked shapes, away from all": crowding.parked("away from all"),
    "10,000 failing shapes": crowding.failing(),
}


def delayed(
    world: World, harm: Harm, *, count: int = _MANY, seconds: float = _SECONDS
) -> tuple[float, ...]:
    """Return how much longer pods of others wait with harm than without.

    The worse of two times: as it is all the time, and when the tenant's pods have been parked for
    so long that all of them are tried again.
    """
    # As in the daemon, from the start to the end: what has grown is taken out of the collector's
    # sight as it grows, not all of it by the first collection after.
    with watched_collector(Metrics().gc_pause_seconds, clock=time.process_time):
        return _delayed(world, harm, count=count, seconds=seconds)


def _delayed(world: World, harm: Harm, *, count: int, seconds: float) -> tuple[float, ...]:
    day, tenant = Day(world), Tenant(world)
    day.live(2.0)
    without = _shares(day.live(seconds))
    tenant.do(harm(count))
    during = _shares(day.live(seconds))
    world.now += world.core.setup.queue.parked_limit_seconds - seconds
    again = _shares(day.live(seconds))
    return tuple(
        max(one, two) - least for one, two, least in zip(during, again, without, strict=True)
    )


def _shares(delays: list[float]) -> list[float]:
    return [percentile(delays, share) for share in _SHARES]
