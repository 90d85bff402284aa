"""An informer running against a fake API server, with everything its handler was told."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Generic

from k8s_scheduler.api.meta import key_of
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.resources import NODES, PODS, Resource, T
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE, Pace
from k8s_scheduler.kube.watch.set_back import Signals
from k8s_scheduler.lib.slices import SliceMeter, silent_meter
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.clock import settle
from tests.fakes.transport import Json

PODS_PATH = PODS.list_path
NODES_PATH = NODES.list_path


@dataclass(slots=True)
class Watched(Generic[T]):
    """A running informer; `calls` are its handler's (old, new), `copy` is their replay."""

    informer: Informer[T]
    metrics: Metrics
    calls: list[tuple[T | None, T | None]] = field(default_factory=list)
    copy: dict[str, T] = field(default_factory=dict)
    deleted_uids: list[str] = field(default_factory=list)

    def take(self, old: T | None, new: T | None) -> None:
        """Be the handler: write the call down and check it against what went before."""
        self.calls.append((old, new))
        known = old or new
        assert known is not None, "a change of nothing into nothing"
        key = key_of(known.metadata)
        assert self.copy.get(key) == old, "old is not what was told last"
        if new is None:
            del self.copy[key]
            self.deleted_uids.append(known.metadata.uid)
            return
        if old is not None:
            assert old.metadata.uid == new.metadata.uid, "an update across uids"
        self.copy[key] = new

    def told(self) -> list[str]:
        """Return the calls as words: `add a/p`, `update a/p`, `delete a/p`."""
        words = []
        for old, new in self.calls:
            known = old or new
            assert known is not None
            verb = "add" if old is None else "delete" if new is None else "update"
            words.append(f"{verb} {key_of(known.metadata)}")
        return words

    def count(self, name: str, **labels: str) -> float:
        """Return a metric's value, 0 where it was never touched."""
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def watched(
    transport: Transport,
    resource: Resource[T],
    *,
    pace: Pace = DEFAULT_PACE,
    meter: SliceMeter | None = None,
    wait: bool = True,
    signals: Signals | None = None,
) -> AsyncIterator[Watched[T]]:
    """Run an informer for the length of a block; waits for its first list unless told not to."""
    metrics = Metrics()
    informer = Informer(
        transport,
        resource,
        metrics=metrics.kube,
        meter=meter or silent_meter(),
        pace=replace(pace, rng=random.Random(1)),
        signals=signals,
    )
    running = Watched(informer, metrics)
    informer.add_handler(running.take)
    task = asyncio.create_task(informer.run())
    try:
        if wait:
            await informer.synced.wait()
            await settle()
        yield running
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def pod(name: str, *, namespace: str = "a", node: str = "", phase: str = "Pending") -> Json:
    """Return a pod as JSON."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": phase},
    }


def bad_pod(name: str, *, namespace: str = "a") -> Json:
    """Return a pod whose priority is no number."""
    content = pod(name, namespace=namespace)
    content["spec"]["priority"] = "high"
    return content


def pod_path(name: str, *, namespace: str = "a") -> str:
    """Return a pod's path."""
    return PODS.object_path(name, namespace=namespace)


def node(name: str) -> Json:
    """Return a node as JSON."""
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}}
