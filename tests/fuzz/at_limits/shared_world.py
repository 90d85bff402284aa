"""A cluster that a tenant shares with others, and what their decisions take meanwhile."""

import gc
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import msgspec

from k8s_scheduler.api.config.limits import NodeLimits, PodLimits
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.shapes.shape_cache import DEFAULT_BYTES
from k8s_scheduler.core.messages.incoming import Schedule, Tick
from k8s_scheduler.kube.write.binding import BindOutcome
from k8s_scheduler.kube.write.write_requests import WriteOutcome
from tests.fuzz.at_limits.api_rules import encoded
from tests.fuzz.at_limits.cases import Sent
from tests.fuzz.at_limits.neighbours import SHAPES, neighbour, surroundings
from tests.fuzz.worlds import SETUP, World

Key = tuple[str, str]

# As far as the configuration allows.
_MOST = 2_000_000
RAISED = replace(
    SETUP,
    pod_limits=PodLimits(*(_MOST for _ in PodLimits.__struct_fields__)),
    node_limits=NodeLimits(*(_MOST for _ in NodeLimits.__struct_fields__)),
)
RESIDENTS = 300
_ROUNDS = 4
_VICTIM = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)$")


class SharedWorld(World):
    """Decides for neighbours, and for what is sent besides."""

    async def settle(self, nodes: int) -> None:
        """Put in place what stays."""
        self._texts: dict[Key, str] = {}
        self._residents: list[tuple[str, str]] = []
        self._number = 0
        self._version = 0
        # Pods of others that were put nowhere.
        self.unplaced: list[Key] = []
        for kind, raw in surroundings(nodes):
            await self.send(kind, "ADDED", encoded(raw))
        for i in range(RESIDENTS):
            raw = neighbour(i % (SHAPES - 1), i, f"resident-{i}")
            raw["spec"]["nodeName"] = f"node-{i * 7 % nodes}"
            self._residents.append((raw["metadata"]["namespace"], encoded(raw)))
        await self.put_residents_back()

    async def put_residents_back(self) -> None:
        """Show those again that had to leave for somebody more important."""
        known = self.stores["Pod"].objects
        for i, (namespace, text) in enumerate(self._residents):
            if f"{namespace}/resident-{i}" not in known:
                await self.show("Pod", "ADDED", text)

    async def show(self, kind: str, event: str, text: str) -> None:
        """Let a watch show an object, and know its text where something may come of it."""
        if kind == "Pod":
            key = _identity(text)
            if event == "DELETED":
                self._texts.pop(key, None)
            else:
                self._texts[key] = text
        await self.send(kind, event, text)

    async def send(self, kind: str, event: str, text: str) -> None:
        """Let a watch show an object, under the version that is next."""
        self._version += 1
        version = f'"metadata":{{"resourceVersion":"{self._version}",'
        await super().send(kind, event, text.replace('"metadata":{', version, 1))

    async def tell(self, sent: Iterable[Sent]) -> None:
        """Let a watch show objects, and the core come to rest every now and then."""
        for number, (kind, event, text) in enumerate(sent):
            await self.show(kind, event, text)
            if number % 10 == 0:
                await self.rest(1)
        await self.rest(3)

    async def rest(self, seconds: int) -> None:
        """Let time pass, and everything happen that is due."""
        for _ in range(seconds):
            self.now += 1.0
            self.pump._tell(Tick(self.now))
            await self.work()

    async def work(self) -> None:
        """Decide as long as there is anything to decide."""
        for _ in range(1000):
            await self._answered()
            if not self.core.has_work:
                return
            self.pump._tell(Schedule(self.now, 4))
        raise AssertionError("the core does not come to rest")

    async def neighbours(self, rounds: int = _ROUNDS) -> float:
        """Return the CPU from the coming of some pods of others until all are placed.

        Whatever the core does in between, they wait for it. Then they leave.
        """
        await self.work()
        gc.collect()
        gc.disable()
        before = self.core.seconds
        self.now += 0.01
        came = [await self._come(i % SHAPES) for i in range(rounds * SHAPES)]
        await self._decide_for(came)
        seconds = self.core.seconds - before
        gc.enable()
        self.unplaced += [key for key in came if not self._pod(key).spec.node_name]
        await self._leave(came)
        return seconds

    async def one_by_one(self, count: int) -> AsyncIterator[tuple[Pod, Pod]]:
        """Yield pods of others as they came, and as they are once they were tried."""
        await self.work()
        came = []
        for shape in range(count):
            came.append(await self._come(shape % SHAPES))
            before = self._pod(came[-1])
            await self._decide_for(came[-1:])
            yield before, self._pod(came[-1])
        await self._leave(came)

    async def _come(self, shape: int) -> Key:
        self._number += 1
        name = f"neighbour-{self._number}"
        raw = neighbour(shape, self._number, name)
        await self.show("Pod", "ADDED", encoded(raw))
        return raw["metadata"]["namespace"], name

    async def _decide_for(self, keys: list[Key]) -> None:
        while self.core.has_work and not all(self._pod(key).spec.node_name for key in keys):
            self.pump._tell(Schedule(self.now, 4))
            await self._answered()

    async def _leave(self, keys: list[Key]) -> None:
        for key in keys:
            await self.show("Pod", "DELETED", self._texts[key])
        await self.work()

    def _pod(self, key: Key) -> Pod:
        return self.stores["Pod"].objects["/".join(key)]

    async def tidy(self) -> None:
        """Let go of what only saves work, as the daemon does when memory is short."""
        await self.rest(3)
        for _ in range(2):
            await self.neighbours(1)
        self.pump.limit_caches(1)
        self.pump.limit_caches(DEFAULT_BYTES)
        gc.collect()

    async def _answered(self) -> None:
        desk = self.desk
        binds, desk.binds = desk.binds, []
        for bind in binds:
            self.pump.bind_ended(
                BindOutcome(
                    uid=bind.uid, attempt=bind.attempt, node=bind.node, bound=True, message=""
                )
            )
            text = self._texts[bind.namespace, bind.name]
            placed = text.replace('"spec":{', f'"spec":{{"nodeName":"{bind.node}",', 1)
            await self.show("Pod", "MODIFIED", placed)
        writes, desk.writes = desk.writes, []
        for write in writes:
            outcome = WriteOutcome(
                uid=write.uid, attempt=write.attempt, request=write.request, done=True
            )
            self.pump.write_ended(outcome)
            for call in write.calls:
                victim = _VICTIM.search(call.path) if call.method == "DELETE" else None
                if victim and (text := self._texts.get((victim[1], victim[2]))):
                    await self.show("Pod", "DELETED", text)

    def broken(self) -> str:
        """Return what promise is broken, if one is; how long something took is not asked here."""
        if self.core.raised:
            return self.core.raised
        for patch in self.desk.conditions:
            if patch.reason == "SchedulerError" and patch.name.startswith("neighbour-"):
                return f"{patch.name}, with which nothing is wrong: {patch.message}"
        self.desk.conditions.clear()
        return ""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str


class _Named(msgspec.Struct):
    metadata: _Metadata


_identities = msgspec.json.Decoder(_Named)


def _identity(text: str) -> Key:
    """Return namespace and name."""
    metadata = _identities.decode(text).metadata
    return metadata.namespace, metadata.name
