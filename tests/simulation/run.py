"""One run: a plan carried out, then calm, then the auditor's word on the history."""

import asyncio
import gc
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tests.simulation.audit.auditor import Violation, audit
from tests.simulation.audit.feasibility import WHAT_PODS_NEED, forgotten_pods
from tests.simulation.cluster import STORAGE_CLASSES, Cluster
from tests.simulation.history import History
from tests.simulation.loop import StandstillError, VirtualLoop
from tests.simulation.plan import Action, Plan, make_plan
from tests.simulation.replica import Alarms, Replica, Shared
from tests.simulation.restoring import DOWN_SECONDS, Backups
from tests.simulation.server import ModelServer

# After the last fault everything that fits is bound within this time. The longest waits of the
# daemon are the reflector's backoff and a silent watch.
CALM_SECONDS = 150.0
# So long after the last fault a cache is what a restored storage is.
SETTLED_SECONDS = 10.0
_LOOK_SECONDS = 2.5
_QUIET_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a seed."""

    seed: int
    violations: tuple[Violation, ...]
    trace: str
    virtual_seconds: float
    faults: dict[str, int]
    counts: dict[str, int]
    lines: tuple[str, ...] = ()

    @property
    def replay(self) -> str:
        """The command that shows it again."""
        return f"make simulate SEEDS=1 FIRST_SEED={self.seed} VERBOSE=1"


@lru_cache(maxsize=1)
def shared() -> Shared:
    """Return what all runs of this process share."""
    return Shared()


def simulate(seed: int, *, traced: bool = False) -> Result:
    """Run a seed to its end; with its lines and their hash if it is to be traced."""
    plan = make_plan(seed)
    history = History(traced=traced)
    common = shared()
    collecting = gc.isenabled()
    gc.disable()
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    run = Run(plan, loop, history, common)
    logger, alarms = logging.getLogger("k8s_scheduler"), Alarms(run.server)
    level = logger.level
    logger.setLevel(logging.ERROR)
    logger.addHandler(alarms)
    logger.propagate = False
    try:
        run.carry_out()
        violations, counts = audit(history, run.server, plan)
        trace, now = history.trace, loop.now
    finally:
        run.end()
        logger.removeHandler(alarms)
        logger.setLevel(level)
        logger.propagate = True
        asyncio.set_event_loop(None)
        loop.close()
        if collecting:
            gc.enable()
    lines = tuple(history.lines or ())
    return Result(seed, tuple(violations), trace, now, history.faults, counts, lines)


class Run:
    """Replicas, cluster and plan on one loop."""

    def __init__(self, plan: Plan, loop: VirtualLoop, history: History, common: Shared) -> None:
        self.plan = plan
        self.history = history
        self.server = ModelServer(loop, history, streaming_lists=plan.streaming_lists)
        self.server.gone_as_event = plan.gone_as_event
        self.server.leases_elsewhere = plan.leases_elsewhere
        self._loop = loop
        self.cluster = Cluster(self.server, random.Random(f"cluster/{plan.seed}"))
        self._backups = Backups(self.server, self.cluster)
        self.replicas = {
            letter: Replica(
                letter, self.server, shared=common, settings=plan.settings, seed=str(plan.seed)
            )
            for letter in plan.replicas
        }
        self._done: asyncio.Future[None] = loop.create_future()
        self._quiet = 0
        # When a storage that was restored is up again, and when the last fault was over.
        self._up_at = self._calm_at = 0.0
        # What was found when it was last looked for pods that were forgotten, and of which state.
        self._forgotten: list[str] = []
        self._looked_at: tuple[int, ...] = ()

    def carry_out(self) -> None:
        """Carry the plan out, then wait until everything is where it belongs."""
        if self.plan.settings.with_volumes:
            late = {
                "metadata": {"name": "late"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
            self.server.create(STORAGE_CLASSES, late)
        for node in self.plan.nodes:
            self.cluster.add_node(node)
        for i, replica in enumerate(self.replicas.values()):
            self._loop.at(0.3 * i, replica.start)
        for action in self.plan.actions:
            if action.at < self.plan.faults_end_at:
                self._loop.at(action.at, self._act, action)
        self._loop.at(self.plan.faults_end_at, self._calm_down)
        try:
            self._loop.run_until_complete(self._done)
        except StandstillError as error:
            self.history.happened(self._loop.now, "", "alarm", f"standstill: {error}")

    def end(self) -> None:
        """End every process, without a trace."""
        for replica in self.replicas.values():
            replica.thaw()
            replica.wanted = False
            replica.kill()
        tasks = [task for replica in self.replicas.values() for task in replica.ending]
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))
        for replica in self.replicas.values():
            replica.ending.clear()

    def _act(self, action: Action) -> None:
        if action.name in ("snapshot", "go_down", "restore"):
            self._set_back(action)
            return
        if not action.target and action.name != "compact":
            getattr(self.cluster, action.name)(**action.arguments)
            return
        if action.name not in ("fair", "start", "thaw", "cut", "stall"):
            self.history.fault(action.arguments.get("called", action.name))
        if not action.target:
            self.server.compact()
            return
        replica = self.replicas[action.target]
        acts: dict[str, Callable[..., None]] = {
            "kill": replica.kill,
            "stop": replica.stop,
            "start": replica.start,
            "freeze": replica.freeze,
            "thaw": replica.thaw,
            "fair": replica.weather.clear,
        }
        if action.name in acts:
            acts[action.name]()
        elif action.name == "weather":
            for name, value in action.arguments["weather"].items():
                setattr(replica.weather, name, value)
        elif replica.client is not None:
            replica.client.break_watches(stall=action.name == "stall", **action.arguments)

    def _set_back(self, action: Action) -> None:
        if action.name == "snapshot":
            self._backups.take(**action.arguments)
        elif action.name == "go_down":
            self.history.fault("restored storage")
            self.server.is_down = True
            for watch in tuple(self.server.open_watches):
                watch.cut()
        else:
            self._backups.restore(**action.arguments)
            self._up_at = self._loop.now + DOWN_SECONDS
            self._loop.at(self._up_at, self._come_up)

    def _come_up(self) -> None:
        self.server.is_down = False

    def _calm_down(self) -> None:
        """End all faults, and see to it that everybody is up.

        A restore that has begun takes its time: one that were over at once, daemons could not tell
        from a moment without a connection, and need not.
        """
        if self._loop.now < self._up_at:
            self._loop.at(self._up_at, self._calm_down)
            return
        self._calm_at = self._loop.now
        self.history.happened(self._loop.now, "", "calm")
        self._come_up()
        for replica in self.replicas.values():
            replica.weather.clear()
            replica.thaw()
            replica.start()
        self.cluster.webhook(down=False)
        self.cluster.open_all_gates()
        self._loop.at(self._loop.now + _LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """End once nothing is left to be done for some looks in a row, or time is up."""
        waited = self._loop.now - self._calm_at
        unfinished = not self._somebody_leads() or self._find_forgotten()
        if self.server.restored and waited < SETTLED_SECONDS:
            unfinished = True
        self._quiet = 0 if unfinished else self._quiet + 1
        if self._quiet >= _QUIET_LOOKS or waited >= CALM_SECONDS:
            self._done.set_result(None)
        else:
            self._loop.at(self._loop.now + _LOOK_SECONDS, self._look)

    def _find_forgotten(self) -> list[str]:
        state = (
            self.server.restored,
            *(self.server.last_change[path] for path in WHAT_PODS_NEED),
        )
        if state != self._looked_at:
            self._looked_at, self._forgotten = state, forgotten_pods(self.server)
        return self._forgotten

    def _somebody_leads(self) -> bool:
        silent = self._loop.now - self.server.renewed_at
        return bool(self.server.holder) and silent <= 2 * self.plan.settings.retry_seconds + 1.0
