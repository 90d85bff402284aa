"""A daemon on parts that write down what is asked of them."""

import asyncio
from types import SimpleNamespace

from k8s_scheduler.app.lifecycle import Daemon


class Informer:
    def __init__(self, log, name):
        self.log, self.name = log, name
        self.resource = SimpleNamespace(label=name)
        self.synced, self.dropped = asyncio.Event(), asyncio.Event()
        self.caught_up = asyncio.Event()
        self.store = {}

    async def run(self):
        self.log.append(f"{self.name} start")
        await asyncio.Event().wait()

    async def catch_up(self):
        self.log.append(f"{self.name} catch up")
        await self.caught_up.wait()


class Elector:
    def __init__(self, log):
        self.log = log
        self.acquired, self.lost = asyncio.Event(), asyncio.Event()
        self.is_leading = self.is_newborn = False
        self.lease = None
        self.others_stopped = asyncio.Event()

    @property
    def may_hold(self):
        return self.is_leading

    async def acquire(self):
        await self.acquired.wait()
        self.is_leading = True

    async def let_others_stop(self):
        self.log.append("let others stop")
        await self.others_stopped.wait()

    async def hold(self):
        try:
            await self.lost.wait()
        finally:
            self.is_leading = False

    async def release(self):
        self.log.append("release")


class Pump:
    def __init__(self, log):
        self.log = log

    def allow(self):
        self.log.append("allow")

    def forbid(self):
        self.log.append("forbid")

    def quarantine(self, deaths):
        assert deaths == {}

    async def run(self):
        await asyncio.Event().wait()

    tick = run


class Writer:
    def __init__(self, log, name, left=0):
        self.log, self.name, self.left = log, name, left
        self.runs = False

    async def run(self):
        self.runs = True
        await asyncio.Event().wait()

    def stop_accepting(self):
        self.log.append(f"{self.name} stop accepting")

    async def drain(self, _timeout_seconds):
        self.log.append(f"{self.name} drain")
        return self.left


class Rivals:
    """Others that are in the way as often as told."""

    def __init__(self, log):
        self.log = log
        self.met = 0

    async def run(self):
        await asyncio.Event().wait()

    async def may_decide(self):
        self.met -= 1
        if self.met >= 0:
            self.log.append("a rival")
        return self.met < 0

    async def until_none(self):
        while not await self.may_decide():
            pass


class Scene:
    def __init__(
        self,
        *,
        elect=True,
        elector=None,
        dispatcher=None,
        delay=False,
        left=0,
        unwritten=0,
        unkept=0,
        others=(),
    ):
        self.log = []
        self.nodes, self.pods = Informer(self.log, "nodes"), Informer(self.log, "pods")
        self.others = tuple(Informer(self.log, name) for name in others)
        self.elector = elector or (Elector(self.log) if elect else None)
        self.graph = graph = SimpleNamespace(
            pump=Pump(self.log),
            nodes=self.nodes,
            pods=self.pods,
            watched=SimpleNamespace(before_pods=lambda: (self.nodes, *self.others)),
            informers=lambda: (self.nodes, *self.others, self.pods),
            dispatcher=dispatcher or Writer(self.log, "dispatcher", left),
            writes=Writer(self.log, "writes", unwritten),
            recorder=Writer(self.log, "recorder"),
            rejections=Writer(self.log, "rejections"),
            reader=Writer(self.log, "reader"),
            check=Writer(self.log, "check"),
            restored=Writer(self.log, "restored"),
            rebuilding=Writer(self.log, "rebuilding"),
            memory=Writer(self.log, "memory"),
            recording=None,
            reload=SimpleNamespace(keeper=Writer(self.log, "last good", unkept)),
            elector=self.elector,
            marks=None,
            sentinel=None,
            rivals=Rivals(self.log),
        )
        settings = SimpleNamespace(delay_cache_until_active=delay)
        configuration = SimpleNamespace(settings=settings)
        options = SimpleNamespace(configuration=configuration, hang_seconds=60.0)
        self.stop = asyncio.Event()
        self.daemon = Daemon(graph, options)
        self.running = asyncio.create_task(self.daemon.run(self.stop))

    async def lead(self):
        """Bring it to where it decides."""
        self.elector.acquired.set()
        self.nodes.caught_up.set()
        self.pods.caught_up.set()
        await self.sync()

    async def turn(self):
        for _ in range(20):
            await asyncio.sleep(0)

    async def drop(self, informer):
        """What a change of the configuration does to a kind that nobody reads any more."""
        self.others = tuple(i for i in self.others if i is not informer)
        informer.dropped.set()
        await self.daemon._tasks.stop(informer.name)
        await self.turn()

    async def sync(self):
        await self.turn()
        for informer in (self.nodes, *self.others):
            informer.synced.set()
        await self.turn()
        self.pods.synced.set()
        await self.turn()
