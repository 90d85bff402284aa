"""Whatever the cluster and the network do, the informer ends up knowing what the server has.

Random scripts of changes, lost and broken watches, compactions, stalls, bookmarks, unreadable
objects, objects made again under their old name and forced lists, in both list modes and with
the bytes cut at random. The handler itself (`Watched.take`) checks every call against what it was
told before: right `old`, no update across uids.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.kube.errors import OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.resources import PODS
from k8s_scheduler.kube.watch.reflector_limits import Pace
from tests.fakes.api import Chunker, FakeApi
from tests.fakes.clock import run_virtual, settle
from tests.fakes.harness import PODS_PATH, Watched, bad_pod, pod, pod_path, watched
from tests.fakes.transport import WATCH, status

NAMES = st.sampled_from(["p0", "p1", "p2", "p3", "p4"])
CHANGES = ("create", "update", "delete", "recreate", "spoil", "finish")
CONNECTIONS = ("drop", "break", "compact", "stall", "resume", "bookmark", "refuse", "fail")

STEPS = st.one_of(
    st.tuples(st.sampled_from(CHANGES), NAMES),
    st.tuples(st.sampled_from(CONNECTIONS), st.just("")),
    st.tuples(st.sampled_from(("wait", "turn", "relist")), st.just("")),
    st.tuples(st.sampled_from(("blackout", "forgotten blackout")), NAMES),
)
FAILURES: list[Response] = [status(500, "InternalError"), status(429, "TooManyRequests")]


class World:
    """Applies the steps of a script to the server and to its connections."""

    def __init__(self, api: FakeApi, running: Watched[Pod], rng: random.Random) -> None:
        self.api = api
        self.running = running
        self.rng = rng
        self.lists: list[asyncio.Task[None]] = []

    async def step(self, action: str, name: str) -> None:
        if action in CHANGES:
            self._change(action, name)
        elif action in CONNECTIONS:
            self._connection(action)
        elif action == "wait":
            await asyncio.sleep(self.rng.choice([0.5, 5, 120]))
        elif action == "turn":
            await settle(self.rng.randrange(8))
        elif "blackout" in action:
            await self._blackout(name, forgotten=action != "blackout")
        else:
            wanted = self.running.informer.catch_up()
            self.lists.append(asyncio.create_task(wanted))

    async def _blackout(self, name: str, *, forgotten: bool) -> None:
        """Change things while no event gets through; the history of it may be lost as well."""
        await asyncio.sleep(self.rng.choice([0, 60]))
        self.api.stalled = True
        self.api.create(PODS_PATH, pod(f"blackout-{self.api.version}"))
        await settle()
        for _ in range(self.rng.randrange(4)):
            self._change(self.rng.choice(CHANGES), name)
        if forgotten:
            self.api.compact()
        self.api.stalled = False
        if self.rng.random() < 0.7:
            self.api.break_watches(OutcomeUnknown("reset"))
            await asyncio.sleep(self.rng.choice([0, 150]))

    def _change(self, action: str, name: str) -> None:
        there = self.api.object(pod_path(name)) is not None
        if action == "create" and not there:
            self.api.create(PODS_PATH, pod(name))
        elif there and action in {"update", "spoil", "finish"}:
            content = bad_pod(name) if action == "spoil" else pod(name, node="n")
            if action == "finish":
                content["status"]["phase"] = "Succeeded"
            self.api.update(pod_path(name), content)
        elif there and action in {"delete", "recreate"}:
            self.api.delete(pod_path(name))
            if action == "recreate":
                spoiled = self.rng.random() < 0.2
                self.api.create(PODS_PATH, bad_pod(name) if spoiled else pod(name))

    def _connection(self, action: str) -> None:
        if action == "drop":
            self.api.drop_watches()
        elif action == "break":
            self.api.break_watches(OutcomeUnknown("reset"))
        elif action == "compact":
            self.api.compact()
        elif action in {"stall", "resume"}:
            self.api.stalled = action == "stall"
        elif action == "bookmark":
            self.api.send_bookmarks()
        elif action == "refuse":
            self.api.refusing = not self.api.refusing
        else:
            self.api.script("GET", PODS_PATH, self.rng.choice(FAILURES))
            self.api.script(WATCH, PODS_PATH, self.rng.choice(FAILURES), [b'{"type"'])

    async def calm_down(self) -> None:
        """Let the network be good again for long enough that nothing is left to be done."""
        self.api.refusing = False
        self.api.stalled = False
        self.api._scripts.clear()
        await asyncio.sleep(1000)
        await asyncio.gather(*self.lists)
        await settle(200)


def chunker(rng: random.Random) -> Chunker:
    def cut(data: bytes) -> Iterator[bytes]:
        while data:
            size = rng.choice([1, 7, 100, 4096, len(data)])
            yield data[:size]
            data = data[size:]

    return cut


def check(world: World) -> None:
    store = world.running.informer.store
    server = {
        key: content
        for key, content in world.api.objects(PODS_PATH).items()
        if content["status"]["phase"] != "Succeeded"
    }
    assert store == world.running.copy, "what was told, replayed, is not the store"
    assert set(store) <= set(server), "something is kept that the server no longer has"
    for key, content in server.items():
        unreadable = isinstance(content["spec"].get("priority"), str)
        if unreadable:
            # An older readable version of the very same object may be kept; another may not.
            kept = store.get(key)
            assert kept is None or kept.metadata.uid == content["metadata"]["uid"]
            continue
        assert store[key].metadata.uid == content["metadata"]["uid"]
        assert store[key].metadata.resource_version == content["metadata"]["resourceVersion"]
    malformed = {"resource": "pods", "reason": "malformed"}
    failures = world.running.count("k8s_scheduler_reflector_failures_total", **malformed)
    assert failures == 0, "bytes were put together wrongly"
    adds = Counter(new.metadata.uid for old, new in world.running.calls if old is None and new)
    deletes = Counter(world.running.deleted_uids)
    present = Counter(kept.metadata.uid for kept in store.values())
    assert adds == deletes + present, "a delete was lost, or told twice"


async def live_through(
    steps: list[tuple[str, str]], *, seed: int, streaming: bool, gone_as_event: bool
) -> None:
    rng = random.Random(seed)
    api = FakeApi(streaming_lists=streaming)
    api.gone_as_event = gone_as_event
    api.chunker = chunker(rng)
    for name in ("p0", "p1"):
        api.create(PODS_PATH, pod(name))
    async with watched(api, PODS, pace=Pace(page_limit=2), wait=False) as running:
        world = World(api, running, rng)
        for action, name in steps:
            await world.step(action, name)
        await world.calm_down()
        check(world)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEPS, max_size=60),
    seed=st.integers(0, 2**16),
    streaming=st.booleans(),
    gone_as_event=st.booleans(),
)
def test_the_store_becomes_what_the_server_has(
    steps: list[tuple[str, str]], seed: int, *, streaming: bool, gone_as_event: bool
) -> None:
    run_virtual(live_through(steps, seed=seed, streaming=streaming, gone_as_event=gone_as_event))
