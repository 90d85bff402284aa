"""A pod that ends every process that tries it: others are scheduled all the same.

The decision for that pod never ends: the process stands still, but for its sentinel, until it is
killed some seconds later, and its kubelet starts it again.
"""

import asyncio
import contextvars
import gc
import random
from unittest.mock import patch

from k8s_scheduler.app.driver.marks import Marks
from tests.inside import inside
from tests.simulation import documents as doc
from tests.simulation.cluster import Cluster
from tests.simulation.history import History
from tests.simulation.loop import OWNER, VirtualLoop
from tests.simulation.replica import Replica, Settings
from tests.simulation.run import shared
from tests.simulation.server import EVENTS, PODS, ModelServer

DEADLY = "deadly"
HANG_SECONDS = 3.0


class Mortal(Replica):
    """A replica that does not survive its decision for one pod."""

    deaths = 0

    def wired(self, graph):
        attempts = inside(graph.pump.core).attempts
        begin = attempts._witness

        def witness(queued):
            begin(queued)
            if queued.pod.metadata.name == DEADLY:
                self.hang()

        attempts._witness = witness

    def hang(self):
        self.deaths += 1
        self.freeze()
        self._loop.at(self._loop.now + HANG_SECONDS, self.kill)
        self._loop.at(self._loop.now + HANG_SECONDS + 1.0, self.start)
        # The decision never comes to its end.
        raise asyncio.CancelledError

    async def sentinel(self, work, _kubeconfig):
        """Run beside the process: it goes on while that stands still, and ends with it."""
        context = contextvars.copy_context()
        context.run(OWNER.set, f"{self.name}/sentinel")
        beside = self._loop.create_task(work(self.client), context=context)
        try:
            await self._loop.create_future()
        finally:
            beside.cancel()


class World:
    """Two replicas, two nodes, a deadly pod that comes first, and others."""

    def __init__(self, loop):
        self.loop = loop
        self.server = ModelServer(loop, History(traced=False), streaming_lists=True)
        self.cluster = Cluster(self.server, random.Random(1))
        for name in ("n1", "n2"):
            self.cluster.add_node(doc.node(name, zone="east", milli_cpu=4000, pods=110))
        self.cluster.create_pod(doc.pod(DEADLY, milli_cpu=100, priority=1000))
        for i in range(6):
            self.cluster.create_pod(doc.pod(f"p{i}", milli_cpu=100))
        self.replicas = [
            Mortal(letter, self.server, shared=shared(), settings=Settings(), seed="1")
            for letter in "ab"
        ]
        for replica in self.replicas:
            replica.start()

    def run_until(self, seconds):
        done = self.loop.create_future()
        self.loop.at(seconds, done.set_result, None)
        self.loop.run_until_complete(done)

    def unbound(self):
        return [p["metadata"]["name"] for p in self.server.every(PODS) if not doc.node_of(p)]

    @property
    def deaths(self):
        return sum(replica.deaths for replica in self.replicas)

    def notes(self):
        events = self.server.every(EVENTS)
        return [event["note"] for event in events if event["reason"] == "Quarantined"]

    def end(self):
        for replica in self.replicas:
            replica.wanted = False
            replica.kill()
        ending = [task for replica in self.replicas for task in replica.ending]
        if ending:
            self.loop.run_until_complete(asyncio.wait(ending))


def lived_through(seconds):
    """Return a world after some time: (who is not bound, how many deaths, what was told)."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    collecting = gc.isenabled()
    gc.disable()
    world = World(loop)
    try:
        world.run_until(seconds)
        return world.unbound(), world.deaths, world.notes()
    finally:
        world.end()
        asyncio.set_event_loop(None)
        loop.close()
        if collecting:
            gc.enable()


def test_without_quarantine_nobody_is_ever_scheduled():
    """The planted bug: no leader looks at what the last one left behind."""
    with patch.object(Marks, "take_over", lambda _self, _text: {}):
        unbound, deaths, _ = lived_through(120.0)
    assert len(unbound) == 7
    assert deaths > 5


def test_with_quarantine_all_others_are_bound_after_one_death():
    unbound, deaths, notes = lived_through(20.0)
    assert unbound == [DEADLY]
    assert deaths <= 2
    assert "ended once while it tried this pod" in notes[0]


def test_the_deadly_pod_is_tried_ever_less_often():
    _, deaths, notes = lived_through(900.0)
    # At 0, when idle, and after some 60, 120, 240 and 480 s more.
    assert 4 <= deaths <= 6
    assert any("ended 4 times" in note for note in notes)
