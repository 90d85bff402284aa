"""What tests of the writing half share: pods in a fake API server, and something that runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.write.binding import BindOutcome, BindRequest
from k8s_scheduler.kube.write.conditions import ConditionPatch
from k8s_scheduler.kube.write.dispatcher import Dispatcher, DispatcherConfig
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.api import FakeApi
from tests.fakes.clock import settle
from tests.fakes.transport import Lost

PODS = "/api/v1/pods"
WALL_NS = 1_767_323_045_000_006_000  # 2026-01-02T03:04:05.000006Z


def loop_clock() -> Callable[[], float]:
    """Return the clock of the running loop, virtual or not."""
    return asyncio.get_running_loop().time


def loop_timing(*, is_wall_moving: bool = False) -> Timing:
    """Return the timing of the running loop; its wall clock stands still unless told otherwise."""
    clock = loop_clock()
    return Timing(
        clock=clock,
        wall_clock_ns=lambda: WALL_NS + (round(clock() * 1e9) if is_wall_moving else 0),
        uniform=lambda: 0.5,
    )


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run something beside the test; if it breaks, the test does."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
    error = results[0]
    if error is not None and not isinstance(error, asyncio.CancelledError):
        raise error


def pod_path(name: str = "p") -> str:
    return f"/api/v1/namespaces/a/pods/{name}"


def binding_path(name: str = "p") -> str:
    return f"{pod_path(name)}/binding"


def bind(name: str = "p", *, node: str = "n1", attempt: int = 1) -> BindRequest:
    return BindRequest(PodUid(f"uid-{name}"), "a", name, NodeName(node), attempt)


def condition(name: str = "p", message: str = "no node") -> ConditionPatch:
    return ConditionPatch(
        uid=PodUid(f"uid-{name}"),
        namespace="a",
        name=name,
        reason="Unschedulable",
        message=message,
        observed_generation=3,
    )


class Desk:
    """A dispatcher on a fake API server, with everything it reports kept."""

    def __init__(self, *, api: FakeApi | None = None, **config: Any) -> None:
        self.api = api or FakeApi()
        # What was held back from when on, and how many outcomes there were by then.
        self.held: list[tuple[str, ...]] = []
        self.held_at: list[int] = []
        self.rooms: list[int] = []
        self.leading = True
        self.outcomes: list[BindOutcome] = []
        self.registry = CollectorRegistry()
        self.dispatcher = Dispatcher(
            Caller(
                transport=self.api,
                may_write=lambda: self.leading,
                timeout_seconds=4.0,
                timing=loop_timing(),
            ),
            metrics=KubeMetrics(self.registry),
            on_bind_outcome=self.outcomes.append,
            on_held_back=self._hold,
            on_room=lambda: self.rooms.append(self.dispatcher.bind_room()),
            config=DispatcherConfig(**config),
        )

    def _hold(self, namespaces: tuple[str, ...]) -> None:
        self.held.append(namespaces)
        self.held_at.append(len(self.outcomes))

    def add_pod(self, name: str = "p", *, namespace: str = "a", **spec: Any) -> None:
        metadata = {"namespace": namespace, "name": name, "uid": f"uid-{name}"}
        self.api.create(PODS, {"metadata": metadata, "spec": spec})

    def node_of(self, name: str = "p") -> str:
        pod = self.api.object(pod_path(name))
        assert pod is not None
        node: str = pod["spec"].get("nodeName", "")
        return node

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"k8s_scheduler_{name}", labels) or 0.0

    @asynccontextmanager
    async def left_in_doubt(self) -> AsyncIterator[None]:
        """Run with a bind whose answer was lost, and a server that is away since."""
        self.add_pod()
        self.api.script("POST", binding_path(), Lost(executed=False))
        self.dispatcher.submit_bind(bind())
        async with running(self.dispatcher.run()):
            await settle()
            self.api.refusing = True
            yield

    async def settled(self, timeout_seconds: float = 600.0) -> list[BindOutcome]:
        """Run until nothing is pending; return the outcomes."""
        async with running(self.dispatcher.run()):
            await self.dispatcher.drain(timeout_seconds)
        return self.outcomes
