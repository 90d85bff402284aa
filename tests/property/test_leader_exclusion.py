"""At most one elector may write at any moment, and a dead leader is followed by a living one.

Two or three processes share one lease. Each has a clock of its own (other zero, slightly other
speed) and is stopped for a while now and then, as a virtual machine or a swapping process is.
Requests are executed never, late (long after their answer was given up) or twice; answers are
lost. Watches are refused, tell of changes long after looks have shown them, break, speak gibberish
or go silent. Processes give the lease back, die and start again. All of it is drawn from a seed and
runs on virtual time.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import JSON, Response
from k8s_scheduler.kube.lease.elector import LOOK_SECONDS, Elector
from k8s_scheduler.kube.lease.lease import LeaseConfig
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import run_virtual
from tests.fakes.transport import WATCH, FakeStream, FakeTransport, Request, status

# Closer together than anybody should set them, so that the margins are really used.
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 11.0, 10.0, 2.0
LONGEST_LOOK_SECONDS = LOOK_SECONDS * 1.2
# A few requests there and back.
TRAVEL_SECONDS = 0.4
RUN_SECONDS = 400.0
LATE_SECONDS = 60.0
GIBBERISH = [
    b"}{",
    b"\xff",
    b'{"type":"ADDED","object":{"metadata":{"name":"l"},"spec":[]}}',
    b"[" * 9999,
]


def now() -> float:
    return asyncio.get_running_loop().time()


class World:
    """The lease on its server, and the rule that must hold."""

    def __init__(self, seed: int, trouble: float) -> None:
        self.rng = random.Random(seed)
        self.trouble = trouble
        self.api = FakeApi()
        self.processes: list[Process] = []
        self.late: set[asyncio.Task[None]] = set()
        self.reigns = 0
        self.watched = 0

    def check(self) -> None:
        """Called wherever an elector waits: it cannot begin to lead between two checks."""
        writers = [p.identity for p in self.processes if p.elector.may_write()]
        assert len(writers) <= 1, f"at {now()} more than one may write: {writers}"
        for process in self.processes:
            process.check_term()

    def leader(self) -> "Process | None":
        return next((p for p in self.processes if p.elector.may_write()), None)

    async def watch(self) -> None:
        while True:
            self.check()
            await asyncio.sleep(0.5)

    def execute_late(self, request: Request, seconds: float) -> None:
        async def later() -> None:
            await asyncio.sleep(seconds)
            self.api.answer(request)
            self.check()

        task = asyncio.ensure_future(later())
        self.late.add(task)
        task.add_done_callback(self.late.discard)


class TroubledWatch:
    """A watch on its way to one process: in order, and late by as much as it likes."""

    def __init__(self, process: "Process", stream: FakeStream) -> None:
        self.process = process
        self.stream = stream
        self.status, self.headers = stream.status, stream.headers

    async def read(self) -> bytes:
        return await self.stream.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        world, rng = self.process.world, self.process.world.rng
        async for chunk in self.stream.chunks():
            await asyncio.sleep(rng.uniform(0.0, 0.05))
            if rng.random() < world.trouble:
                mishap = rng.choice(["late", "late", "late", "cut", "dead", "gibberish"])
                if mishap == "late":
                    await asyncio.sleep(rng.choice([0.5, 3.0, 9.0, 16.0, 40.0]) * rng.random())
                elif mishap == "cut":
                    raise OutcomeUnknown("reset")
                elif mishap == "dead":
                    await asyncio.Event().wait()
                else:
                    yield rng.choice(GIBBERISH) + b"\n"
            await self.process.thaw()
            world.watched += 1
            yield chunk
            world.check()


class Process(FakeTransport):
    """One scheduler process: its clock, its pauses, its way to the server, its life."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__()
        self.world = world
        self.number = number
        self.zero = world.rng.uniform(-1e6, 1e6)
        self.speed = world.rng.uniform(0.98, 1.02) if world.trouble else 1.0
        self.stopped_until = 0.0
        self.term_is_over = False
        self.births = 0
        self.identity = ""
        self.elector = self.born()

    def born(self) -> Elector:
        self.births += 1
        self.identity = f"process-{self.number}-{self.births}"
        self.elector = Elector(
            self,
            LeaseConfig(
                name="l",
                namespace="s",
                identity=self.identity,
                lease_duration_seconds=LEASE_SECONDS,
                renew_deadline_seconds=RENEW_SECONDS,
                retry_period_seconds=RETRY_SECONDS,
            ),
            metrics=KubeMetrics(CollectorRegistry()),
            timing=Timing(
                clock=self.clock,
                wall_clock_ns=lambda: 10**18,  # a wall clock that stands still must not matter
                sleep=self.sleep,
                uniform=self.world.rng.random,
            ),
        )
        return self.elector

    def check_term(self) -> None:
        """Who could not write for a moment may not write again before it has the lease anew."""
        if not self.elector.is_leading:
            self.term_is_over = False
        elif self.elector.may_write():
            assert not self.term_is_over, f"at {now()} {self.identity} may write again"
        else:
            self.term_is_over = True

    def clock(self) -> float:
        return self.zero + now() * self.speed

    async def thaw(self) -> None:
        if now() < self.stopped_until:
            await asyncio.sleep(self.stopped_until - now())
            await self.thaw()

    async def sleep(self, seconds: float) -> None:
        self.world.check()
        await asyncio.sleep(seconds / self.speed)
        await self.thaw()

    async def pauses(self) -> None:
        rng = self.world.rng
        while True:
            await asyncio.sleep(rng.expovariate(1 / 40))
            if rng.random() < self.world.trouble:
                self.stopped_until = now() + rng.choice([0.5, 3.0, 9.0, 14.0, 16.0, 40.0])

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        may_send: Callable[[], bool] | None = None,
    ) -> Response:
        assert timeout_seconds > 0
        request = Request(method, path, query or {}, body, content_type, timeout_seconds)
        await self.thaw()
        try:
            return await self.travel(request, timeout_seconds / self.speed)
        finally:
            await self.thaw()
            self.world.check()

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[TroubledWatch]:
        world, rng = self.world, self.world.rng
        await self.thaw()
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        stream = world.api.open(Request(WATCH, path, query or {}))
        try:
            if rng.random() < world.trouble:
                mishap = rng.choice(["refused", "error", "never"])
                if mishap == "refused":
                    raise NotSent("refused")
                if mishap == "never":
                    await asyncio.sleep(rng.uniform(0.0, LATE_SECONDS))
                    raise OutcomeUnknown("no answer")
                refusal = status(rng.choice([403, 410, 429, 500]), "Error")
                yield TroubledWatch(self, FakeStream(refusal.status, body=refusal.body))
            else:
                yield TroubledWatch(self, stream)
        finally:
            stream.close()

    async def travel(self, request: Request, timeout_seconds: float) -> Response:
        world, rng = self.world, self.world.rng
        if rng.random() >= world.trouble:
            await asyncio.sleep(rng.uniform(0.0, 0.05))
            response = world.api.answer(request)
            await asyncio.sleep(rng.uniform(0.0, 0.05))
            return response
        mishap = rng.choice(["refused", "error", "never", "executed", "late", "doubled", "slow"])
        if mishap == "refused":
            raise NotSent("refused")
        if mishap == "error":
            return status(rng.choice([429, 500, 503]), "Error")
        executed = mishap in {"executed", "doubled"}
        if executed:
            world.api.answer(request)
        if mishap in {"late", "doubled"}:
            world.execute_late(request, rng.uniform(0.0, LATE_SECONDS))
        if mishap == "slow":
            return await self.slow(request, timeout_seconds)
        await asyncio.sleep(min(rng.expovariate(0.2), timeout_seconds))
        if executed and rng.random() < 0.3:
            return status(504, "Timeout")
        raise OutcomeUnknown("no answer")

    async def slow(self, request: Request, timeout_seconds: float) -> Response:
        there, back = (timeout_seconds * self.world.rng.random() ** power for power in (3, 0.3))
        await asyncio.sleep(there)
        response = self.world.api.answer(request)
        await asyncio.sleep(min(back, timeout_seconds - there))
        if there + back >= timeout_seconds:
            raise OutcomeUnknown("no answer in time")
        return response

    async def live(self) -> None:
        """Lead again and again; end each reign by loss, release or death."""
        rng = self.world.rng
        while True:
            await self.elector.acquire()
            self.world.check()
            self.world.reigns += 1
            reign = asyncio.ensure_future(self.elector.hold())
            await asyncio.wait({reign}, timeout=rng.expovariate(1 / 60))
            end = rng.choice(["go on", "release", "die"])
            if end == "go on":
                await reign
            await stop(reign)
            assert not self.elector.is_leading
            if end == "release":
                await self.elector.release()
            elif end == "die":
                self.born()
            await self.sleep(rng.uniform(0.0, 10.0))


async def stop(*tasks: "asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if result is not None and not isinstance(result, asyncio.CancelledError):
            raise result


async def reign_in_trouble(seed: int, processes: int, trouble: float) -> None:
    world = World(seed, trouble)
    world.processes = [Process(world, number) for number in range(processes)]
    tasks = [asyncio.ensure_future(world.watch())]
    tasks += [asyncio.ensure_future(process.live()) for process in world.processes]
    tasks += [asyncio.ensure_future(process.pauses()) for process in world.processes]
    done, _ = await asyncio.wait(tasks, timeout=RUN_SECONDS)
    # When the trouble ends somebody leads soon, whatever state it left behind.
    world.trouble = 0.0
    reigns = world.reigns
    if not done:
        await asyncio.sleep(LATE_SECONDS + 2 * LEASE_SECONDS + 60.0)
        assert world.reigns > reigns or world.leader() is not None
        assert world.watched > 0
    await stop(*tasks)


async def follow(seed: int, end: Callable[[Process, asyncio.Task[None]], Any]) -> float:
    """Let three processes compete, end the leader's reign, return how long the next one takes."""
    world = World(seed, 0.0)
    world.processes = [Process(world, number) for number in range(3)]

    succession = asyncio.Event()

    async def lead(process: Process) -> None:
        await process.elector.acquire()
        succession.set()
        await process.elector.hold()

    tasks = {p.number: asyncio.ensure_future(lead(p)) for p in world.processes}
    watch = asyncio.ensure_future(world.watch())
    await asyncio.sleep(world.rng.uniform(20.0, 60.0))
    first = world.leader()
    assert first is not None
    before = now()
    succession.clear()
    await end(first, tasks.pop(first.number))
    world.processes.remove(first)
    await succession.wait()
    took_seconds = now() - before
    lease = world.api.object("/apis/coordination.k8s.io/v1/namespaces/s/leases/l")
    assert lease is not None
    assert lease["spec"]["leaseTransitions"] == 1, json.dumps(lease)
    await stop(watch, *tasks.values())
    assert world.api.watches == []
    return took_seconds


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    processes=st.integers(2, 3),
    trouble=st.sampled_from([0.0, 0.1, 0.3, 0.6]),
)
@example(seed=1, processes=3, trouble=0.3)
def test_never_two_may_write(seed: int, processes: int, trouble: float) -> None:
    run_virtual(reign_in_trouble(seed, processes, trouble))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_dead_leader_is_followed_within_a_lease_and_a_look(seed: int) -> None:
    async def die(process: Process, task: asyncio.Task[None]) -> None:
        with suppress(asyncio.CancelledError):
            task.cancel()
            await task

    took_seconds = run_virtual(follow(seed, die))
    # Not before its time either: the dead one, had it lived, might have written until its renew
    # deadline, which counts from its last renewal, a retry period ago at most.
    shortest_seconds = LEASE_SECONDS - RETRY_SECONDS - TRAVEL_SECONDS
    assert shortest_seconds < took_seconds < LEASE_SECONDS + LONGEST_LOOK_SECONDS + TRAVEL_SECONDS


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_released_lease_is_taken_at_once(seed: int) -> None:
    async def give_back(process: Process, task: asyncio.Task[None]) -> None:
        with suppress(asyncio.CancelledError):
            task.cancel()
            await task
        assert await process.elector.release()

    # The watch shows it: there is no look to wait for.
    assert run_virtual(follow(seed, give_back)) < TRAVEL_SECONDS
