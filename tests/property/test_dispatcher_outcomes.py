"""Every bind ends exactly once, and rightly, whatever the server and the network do.

The world is drawn from a seed: answers are lost, late, doubled or errors; the server goes away
and comes back; pods are deleted, made again under the same name, bound by somebody else; we stop
leading, or are told to stop. A request that got no answer may be executed up to 100 seconds later,
which is more than an API server allows and less than the dispatcher's settling time. In one
namespace a webhook may be down from the start to the end: every Binding that arrives there is
answered 500 and not executed, among all the other mishaps.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.kube.errors import NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import JSON, Response
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.write.binding import BindFailure, BindOutcome, BindRequest
from k8s_scheduler.kube.write.dispatcher import Dispatcher, DispatcherConfig
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.clock import run_virtual
from tests.fakes.transport import FakeTransport, Request, encode, status

LATE_SECONDS = 100.0
TROUBLE_SECONDS = 150.0
US, OTHERS = "us", "others"
WELL, GUARDED = "well", "guarded"
DOWN = 'Internal error occurred: failed calling webhook "guard": connection refused'


@dataclass
class Pod:
    name: str
    uid: str
    node: str = ""
    bound_by: str = ""
    deleting: bool = False
    gated: bool = False

    def wire(self) -> dict[str, object]:
        metadata: dict[str, object] = {"name": self.name, "uid": self.uid}
        if self.deleting:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec: dict[str, object] = {"nodeName": self.node} if self.node else {}
        if self.gated:
            spec["schedulingGates"] = [{"name": "g"}]
        return {"metadata": metadata, "spec": spec}


@dataclass
class World:
    """Pods as the server has them, and what can go wrong on the way to it."""

    rng: random.Random
    trouble: float
    leading: bool = True
    away: bool = False
    healed: bool = False
    webhook_down: bool = False
    pods: dict[str, Pod] = field(default_factory=dict)
    by_uid: dict[str, Pod] = field(default_factory=dict)
    late: set[asyncio.Task[None]] = field(default_factory=set)

    def make(self, name: str) -> Pod:
        pod = Pod(name, f"uid-{name}-{len(self.by_uid)}", gated=self.rng.random() < 0.1)
        self.pods[name] = self.by_uid[pod.uid] = pod
        return pod

    def bind(self, name: str, uid: str, node: str, *, by: str) -> Response:
        pod = self.pods.get(name)
        if pod is None:
            return status(404, "NotFound", f'pods "{name}" not found')
        if pod.uid != uid or pod.node or pod.deleting or pod.gated:
            return status(409, "Conflict", "cannot be bound")
        pod.node, pod.bound_by = node, by
        return status(201, "")

    async def later(self, request: Request, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.execute(request)

    def execute(self, request: Request) -> Response:
        name = request.path.split("/")[6]
        if request.method == "GET":
            pod = self.pods.get(name)
            return status(404, "NotFound") if pod is None else Response(200, encode(pod.wire()))
        if self.webhook_down and f"/{GUARDED}/" in request.path:
            return status(500, "InternalError", DOWN)
        body = request.json()
        return self.bind(name, body["metadata"]["uid"], body["target"]["name"], by=US)

    def execute_late(self, request: Request) -> None:
        task = asyncio.ensure_future(self.later(request, self.rng.uniform(0, LATE_SECONDS)))
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def disturb(self, names: list[str]) -> None:
        """Change pods and the server at random moments, then heal everything."""
        end = asyncio.get_running_loop().time() + TROUBLE_SECONDS
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(self.rng.expovariate(0.3))
            if self.rng.random() < self.trouble:
                self.touch(self.rng.choice(names))
            self.away = self.rng.random() < self.trouble / 3
        self.away, self.healed = False, True
        for pod in self.by_uid.values():
            pod.gated = False

    def touch(self, name: str) -> None:
        pod = self.pods.get(name)
        happening = self.rng.choice(["delete", "remove", "replace", "steal", "open", "nothing"])
        if happening == "replace" or pod is None:
            self.make(name)
        elif happening == "delete":
            pod.deleting = True
        elif happening == "remove":
            del self.pods[name]
        elif happening == "steal":
            self.bind(name, pod.uid, self.rng.choice(["n0", "n1", "n2"]), by=OTHERS)
        elif happening == "open":
            pod.gated = False


NEVER, LEASE_LOST, STOPPED = "never", "lease lost", "stopped"


class Network(FakeTransport):
    """What lies between the dispatcher and the world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

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
        if may_send is not None and not may_send():
            raise NotSent("it may not be sent any more")
        request = Request(method, path, query or {}, body, content_type, timeout_seconds)
        world = self.world
        assert method == "GET" or world.leading, "a write started without leading"
        if world.away:
            await asyncio.sleep(0.01)
            raise NotSent("refused")
        await asyncio.sleep(world.rng.uniform(0.0, 0.2))
        if world.healed or world.rng.random() >= world.trouble:
            response = world.execute(request)
            await asyncio.sleep(world.rng.uniform(0.0, 0.2))
            return response
        return await self.mishap(request)

    async def mishap(self, request: Request) -> Response:
        world, rng = self.world, self.world.rng
        kind = rng.choice(["refused", "throttled", "denied", "lost", "late", "done", "doubled"])
        if kind == "refused":
            raise NotSent("refused")
        if kind == "throttled":
            return status(429, "TooManyRequests", Retry_After=str(rng.choice([0, 1, 5])))
        if kind == "denied" and request.method == "POST":
            return status(rng.choice([400, 403, 422]), "Denied", "denied")
        if kind == "late":
            world.execute_late(request)
        elif kind in {"done", "doubled"}:
            world.execute(request)
        if kind == "doubled":
            world.execute_late(request)
        return await self.no_answer(request)

    async def no_answer(self, request: Request) -> Response:
        rng = self.world.rng
        if rng.random() < 0.3:
            return status(rng.choice([500, 502, 503, 504]), "ServerError")
        await asyncio.sleep(rng.uniform(0.0, request.timeout_seconds))
        raise OutcomeUnknown("no answer")

    def open(self, request: Request) -> NoReturn:
        raise AssertionError("the dispatcher watches nothing")


async def live(
    seed: int, *, pods: int, trouble: float, ending: str, webhook_down: bool = False
) -> None:
    loop = asyncio.get_running_loop()
    rng = random.Random(seed)
    world = World(rng, trouble, webhook_down=webhook_down)
    outcomes: list[BindOutcome] = []
    dispatcher = Dispatcher(
        Caller(
            transport=Network(world),
            may_write=lambda: world.leading,
            timeout_seconds=4.0,
            timing=Timing(clock=loop.time, uniform=rng.random),
        ),
        metrics=KubeMetrics(CollectorRegistry()),
        on_bind_outcome=outcomes.append,
        config=DispatcherConfig(bind_workers=3),
    )
    names = [f"p{number}" for number in range(pods)]
    requests = {}
    for number, name in enumerate(names):
        node = NodeName(f"n{number % 2}")
        namespace = GUARDED if number % 3 == 0 else WELL
        requests[name] = BindRequest(PodUid(world.make(name).uid), namespace, name, node, number)
    run = asyncio.ensure_future(dispatcher.run())
    disturbance = asyncio.ensure_future(world.disturb(names))
    for request in requests.values():
        await asyncio.sleep(rng.uniform(0.0, 5.0))
        dispatcher.submit_bind(request)
    if ending != NEVER:
        await asyncio.sleep(rng.uniform(0.0, 10.0))
    if ending == LEASE_LOST:
        world.leading = False
    elif ending == STOPPED:
        dispatcher.stop_accepting()
    await disturbance
    assert await dispatcher.drain(1000.0) == 0
    await asyncio.sleep(LATE_SECONDS)
    assert not world.late
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    judge(world, requests, outcomes)


def judge(world: World, requests: dict[str, BindRequest], outcomes: list[BindOutcome]) -> None:
    ended = [(outcome.uid, outcome.attempt, outcome.node) for outcome in outcomes]
    asked = [(request.uid, request.attempt, request.node) for request in requests.values()]
    assert sorted(ended) == sorted(asked)
    for outcome in outcomes:
        pod = world.by_uid[outcome.uid]
        if outcome.bound:
            assert pod.node == outcome.node
            assert outcome.reason is None
            continue
        assert outcome.message
        # A pod that is gone holds nothing any more, wherever it was.
        if outcome.reason is BindFailure.GONE:
            assert world.pods.get(pod.name) is not pod
        else:
            assert pod.bound_by != US, f"bound by us but reported as {outcome}"


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    pods=st.integers(1, 8),
    trouble=st.sampled_from([0.0, 0.2, 0.5, 0.8, 0.95]),
    ending=st.sampled_from([NEVER, LEASE_LOST, STOPPED]),
    webhook_down=st.booleans(),
)
@example(seed=0, pods=8, trouble=0.0, ending=NEVER, webhook_down=False)
@example(seed=0, pods=8, trouble=0.0, ending=NEVER, webhook_down=True)
@example(seed=0, pods=8, trouble=0.0, ending=STOPPED, webhook_down=True)
def test_every_bind_ends_once_and_rightly(
    seed: int, pods: int, trouble: float, ending: str, webhook_down: bool
) -> None:
    run_virtual(live(seed, pods=pods, trouble=trouble, ending=ending, webhook_down=webhook_down))
