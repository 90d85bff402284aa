"""A plan: what happens to a small cluster, and what goes wrong, drawn from a seed.

A plan is data. It says when which action is taken with which arguments; what an action that picks
something picks is decided by a number in the plan and the state at that moment.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.guarded import with_webhook
from tests.simulation.replica import Settings

ZONES = ("east", "west", "north")
APPS = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens. `target` names a replica, or is empty for the cluster."""

    at: float
    name: str
    target: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run."""

    seed: int
    settings: Settings
    replicas: tuple[str, ...]
    streaming_lists: bool
    gone_as_event: bool
    nodes: tuple[Json, ...]
    actions: tuple[Action, ...]
    faults_end_at: float
    leases_elsewhere: bool = False


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"plan/{seed}")
    with_volumes = rng.random() < 0.2
    lease = rng.choice(((6.0, 4.0, 1.0), (6.0, 4.0, 1.0), (4.0, 2.5, 0.6), (15.0, 10.0, 2.0)))
    settings = Settings(
        *lease,
        page_limit=rng.choice((2, 5, 400)),
        with_volumes=with_volumes,
        latency_seconds=rng.choice((0.004, 0.004, 0.03, 0.12)),
    )
    replicas = ("a", "b", "c")[: rng.choice((1, 2, 2, 2, 2, 3))]
    faults_end_at = rng.uniform(15.0, 36.0)
    drawing = _Drawing(rng, replicas, faults_end_at, with_volumes=with_volumes, seed=seed)
    plan = Plan(
        seed=seed,
        settings=settings,
        replicas=replicas,
        streaming_lists=rng.random() < 0.6,
        gone_as_event=rng.random() < 0.5,
        nodes=drawing.nodes(),
        actions=drawing.actions(),
        faults_end_at=faults_end_at,
        # Drawn apart: what else a seed draws stays what it was.
        leases_elsewhere=random.Random(f"leases/{seed}").random() < 0.25,
    )
    return with_webhook(plan)


def restores(seed: int, until: float) -> list[Action]:
    """Return the actions of a restored storage; one plan in four has one.

    Pods come shortly before the snapshot, whose bindings are undone, and after it, who are ghosts.
    """
    rng = random.Random(f"restore/{seed}")
    if rng.random() >= 0.25:
        return []
    down_at = rng.uniform(6.0, until)
    taken_at = max(0.5, down_at - rng.choice((0.2, 1.0, 3.0, 6.0)) * rng.uniform(0.5, 1.5))
    bumped, twin = rng.random() < 0.2, rng.random() < 0.3
    pods = [
        Action(
            rng.uniform(taken_at - 0.1, min(taken_at + 0.5, down_at)),
            "create_pod",
            "",
            {"content": doc.pod(f"r{i}", milli_cpu=rng.choice((200, 500)), app=rng.choice(APPS))},
        )
        for i in range(rng.randint(1, 5))
    ]
    return [
        *pods,
        Action(taken_at, "snapshot", "", {"twin": twin}),
        Action(down_at, "go_down"),
        Action(down_at + rng.uniform(0.1, 3.0), "restore", "", {"bumped": bumped}),
    ]


class _Drawing:
    """Draws the parts of a plan, in a fixed order."""

    def __init__(
        self,
        rng: random.Random,
        replicas: tuple[str, ...],
        until: float,
        *,
        with_volumes: bool,
        seed: int,
    ) -> None:
        self._rng = rng
        self._seed = seed
        self._replicas = replicas
        self._until = until
        self._with_volumes = with_volumes
        self._names = 0
        self._actions: list[Action] = []

    def nodes(self) -> tuple[Json, ...]:
        return tuple(self._node() for _ in range(self._rng.randint(2, 5)))

    def actions(self) -> tuple[Action, ...]:
        rng = self._rng
        for _ in range(rng.randint(3, 8)):
            self._add_pod(0.0)
        for _ in range(rng.randint(2, 7)):
            self._add_pod(rng.uniform(0.0, self._until))
        for _ in range(rng.randint(4, 10)):
            self._add_change(rng.uniform(1.0, self._until))
        for _ in range(rng.randint(3, 9)):
            self._add_fault(rng.uniform(0.0, self._until))
        self._actions += restores(self._seed, self._until)
        return tuple(sorted(self._actions, key=lambda action: action.at))

    def _add(self, at: float, name: str, target: str = "", **arguments: Any) -> None:
        self._actions.append(Action(at, name, target, arguments))

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _node(self) -> Json:
        return doc.node(
            self._name("n"),
            zone=self._rng.choice(ZONES[:2]),
            milli_cpu=self._rng.choice((2000, 3000, 4000)),
            pods=self._rng.choice((4, 8, 110)),
        )

    # Pods.

    def _add_pod(self, at: float) -> None:
        rng, name = self._rng, self._name("p")
        cpu = rng.choice((200, 500, 500, 1000, 1500))
        app = rng.choice(APPS)
        shape = rng.choice(
            (
                "plain",
                "plain",
                "plain",
                "foreign",
                "spread",
                "apart",
                "near",
                "high",
                "low",
                "gated",
                "claim",
            )
        )
        if shape == "claim" and self._with_volumes:
            self._add_pod_with_claim(at, name, cpu)
            return
        spec: Json = {}
        if shape == "spread":
            spec = doc.spread(app, key=rng.choice((doc.ZONE, doc.HOSTNAME)))
        elif shape in ("apart", "near"):
            key = rng.choice((doc.ZONE, doc.HOSTNAME))
            spec = doc.near(app, apart=shape == "apart", key=key)
        elif shape in ("high", "low"):
            spec = {"priority": 1000 if shape == "high" else -10}
        elif shape == "gated":
            spec = {"schedulingGates": [{"name": "wait"}]}
        scheduler = doc.FOREIGN if shape == "foreign" else doc.OURS
        content = doc.pod(name, milli_cpu=cpu, app=app, scheduler=scheduler, **spec)
        self._add(at, "create_pod", content=content)

    def _add_pod_with_claim(self, at: float, name: str, cpu: int) -> None:
        claim, volume = f"c-{name}", f"v-{name}"
        expression = {"key": doc.ZONE, "operator": "In", "values": [self._rng.choice(ZONES[:2])]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        amount = {"storage": "1Gi"}
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
        self._add(
            at,
            "create_pod",
            content=doc.pod(name, milli_cpu=cpu, **doc.with_claim(claim)),
            claim={
                "metadata": {"name": claim, "namespace": doc.NAMESPACE},
                "spec": {**common, "resources": {"requests": amount}},
                "status": {"phase": "Pending"},
            },
            volume={
                "metadata": {"name": volume},
                "spec": {**common, "capacity": amount, "nodeAffinity": {"required": required}},
                "status": {"phase": "Available"},
            },
        )

    # What else happens in a cluster.

    def _add_change(self, at: float) -> None:
        rng = self._rng
        name = rng.choice(
            (
                "delete_pod",
                "delete_pod",
                "finish_pod",
                "finish_pod",
                "replace_pod",
                "open_gate",
                "touch_pod",
                "add_node",
                "delete_node",
                "cordon",
                "uncordon",
                "relabel",
                "resize",
            )
        )
        if name == "add_node":
            self._add(at, name, content=self._node())
        elif name in ("cordon", "uncordon"):
            self._add(at, "cordon", chance=rng.random(), on=name == "cordon")
        elif name == "relabel":
            self._add(at, name, chance=rng.random(), zone=rng.choice(ZONES))
        elif name == "resize":
            self._add(at, name, chance=rng.random(), milli_cpu=rng.choice((1000, 3000, 5000)))
        else:
            self._add(at, name, chance=rng.random())

    # What goes wrong.

    def _add_fault(self, at: float) -> None:
        rng = self._rng
        target = rng.choice(self._replicas)
        lasts = min(rng.expovariate(1 / 6.0), 25.0)
        kind = rng.choice(
            (
                "kill",
                "freeze",
                "stop",
                "refuse",
                "outage",
                "compact",
                "cut",
                "cut",
                "stall",
                "slow",
                "lag",
                "lag",
                "errors",
                "losses",
                "losses",
                "late",
                "throttle",
            )
        )
        draw = getattr(self, f"_{kind}")
        draw(at, target, lasts)
        self._add_company(at, lasts)

    def _add_company(self, at: float, lasts: float) -> None:
        """Let there be something to do when things go wrong: shortly before, and meanwhile."""
        rng = self._rng
        for _ in range(rng.choice((0, 0, 1, 2))):
            self._add_pod(max(0.0, at - rng.uniform(0.0, 0.3)))
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._add_pod(at + rng.uniform(0.0, min(lasts, 3.0)))
        if rng.random() < 0.5:
            self._add_change(at + rng.uniform(0.0, min(lasts, 3.0)))

    def _kill(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "kill", target)
        self._add(at + min(lasts, 12.0), "start", target)

    def _stop(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "stop", target)

    def _freeze(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "freeze", target)
        self._add(at + self._rng.uniform(0.5, 22.0), "thaw", target)

    def _compact(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "compact")
        if self._rng.random() < 0.7:
            self._add(at + 0.001, "cut", target, share=1.0)

    def _cut(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "cut", target, share=self._rng.choice((0.5, 1.0)))

    def _stall(self, at: float, target: str, lasts: float) -> None:
        self._add(at, "stall", target, share=self._rng.choice((0.3, 1.0)))

    def _outage(self, at: float, target: str, lasts: float) -> None:
        for letter in self._replicas:
            self._spell(at, letter, lasts, "outage", refusing=True)
            self._add(at, "cut", letter, share=1.0)

    def _refuse(self, at: float, target: str, lasts: float) -> None:
        self._spell(at, target, lasts, "refused connections", refusing=True)

    def _slow(self, at: float, target: str, lasts: float) -> None:
        self._spell(
            at, target, lasts, "slow answers", latency_seconds=self._rng.choice((0.1, 0.5, 1.5))
        )

    def _lag(self, at: float, target: str, lasts: float) -> None:
        self._spell(
            at,
            target,
            lasts,
            "lagging watches",
            watch_delay_seconds=self._rng.choice((0.3, 1.0, 4.0)),
        )

    def _errors(self, at: float, target: str, lasts: float) -> None:
        self._spell(at, target, lasts, "server errors", rates={"500": 0.2, "503": 0.2})

    def _losses(self, at: float, target: str, lasts: float) -> None:
        kinds = ("504 before", "reset before", "504 after", "reset after")
        rates = {kind: self._rng.choice((0.0, 0.1, 0.25)) for kind in kinds}
        self._spell(at, target, lasts, "lost answers", rates=rates)

    def _late(self, at: float, target: str, lasts: float) -> None:
        self._spell(at, target, lasts, "late requests", rates={"late": 0.3})

    def _throttle(self, at: float, target: str, lasts: float) -> None:
        self._spell(at, target, lasts, "throttling", rates={"429": 0.5})

    def _spell(self, at: float, target: str, lasts: float, called: str, **weather: Any) -> None:
        """Let the weather be so for a while; then it is fair again."""
        self._add(at, "weather", target, called=called, weather=weather)
        self._add(at + lasts, "fair", target)
