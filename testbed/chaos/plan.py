"""What goes wrong, and when: drawn from a seed before anything runs.

The same seed and length give the same plan, whatever the machine does with it. Every kind of action
comes at least once where the time allows it; what else happens is luck. The last quarter of a
minute belongs to nobody: faults end, and what was broken has to mend.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from testbed.proxy.faults import (
    ANY,
    BY_HAND,
    ON_CONNECTIONS,
    WRITES,
    Fault,
    RequestClass,
    Rule,
)

WARM_UP_SECONDS = 12.0
_LEAST_GAP_SECONDS = 2.0
_MEAN_GAP_SECONDS = 5.0


class Action(StrEnum):
    """One kind of trouble on the stage."""

    KILL_LEADER = "leader killed"
    FREEZE_LEADER = "leader frozen"
    STOP_LEADER = "leader stopped"
    RESTART_API_SERVER = "API server restarted"
    KILL_API_SERVER = "API server killed"
    RESTART_ETCD = "etcd restarted"
    COMPACT = "history compacted"
    FAULTS = "proxy faults"
    EXPIRE_TOKEN = "token expired"  # noqa: S105  the name of an action
    ROTATE = "certificate rotated"
    DELETE_NODE = "node deleted"
    CORDON = "node cordoned"
    GOOD_RELOAD = "good reload"
    BAD_RELOAD = "bad reload"


# What is in force all the time, where no step brings something worse.
BACKGROUND = (
    Rule(fault=Fault.TIMEOUT_AFTER, probability=0.05, classes={RequestClass.BINDING}),
    Rule(fault=Fault.RESET_AFTER, probability=0.02, classes=WRITES - {RequestClass.LEASE}),
    Rule(fault=Fault.CONFLICT, probability=0.01, classes={RequestClass.BINDING}),
    Rule(fault=Fault.THROTTLED, probability=0.01, classes=WRITES - {RequestClass.LEASE}),
    Rule(fault=Fault.LATENCY, probability=0.05, seconds=0.3),
)
# How often each comes beside the others, once all have come.
_WEIGHTS: Mapping[Action, int] = {
    Action.KILL_LEADER: 4,
    Action.FREEZE_LEADER: 3,
    Action.STOP_LEADER: 2,
    Action.RESTART_API_SERVER: 1,
    Action.KILL_API_SERVER: 1,
    Action.RESTART_ETCD: 1,
    Action.COMPACT: 2,
    Action.FAULTS: 10,
    Action.EXPIRE_TOKEN: 1,
    Action.ROTATE: 1,
    Action.DELETE_NODE: 3,
    Action.CORDON: 3,
    Action.GOOD_RELOAD: 3,
    Action.BAD_RELOAD: 2,
}
# How long each keeps the stage to itself; what comes next comes later.
_LASTS_SECONDS: Mapping[Action, float] = {
    Action.KILL_LEADER: 4.0,
    Action.FREEZE_LEADER: 8.0,
    Action.STOP_LEADER: 2.0,
    Action.RESTART_API_SERVER: 8.0,
    Action.KILL_API_SERVER: 8.0,
    Action.RESTART_ETCD: 5.0,
    Action.EXPIRE_TOKEN: 2.0,
    Action.ROTATE: 2.0,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One action at its time. `luck` is what the action draws its own details from."""

    at_seconds: float
    action: Action
    luck: int
    rules: tuple[Rule, ...] = ()

    def describe(self) -> str:
        """Return one line for people."""
        faults = ", ".join(f"{rule.fault} {rule.probability:.0%}" for rule in self.rules)
        return f"{self.at_seconds:6.1f} s  {self.action}{f': {faults}' if faults else ''}"


def draw_plan(seed: int, *, seconds: float) -> tuple[Step, ...]:
    """Return what happens within so many seconds, in order."""
    draw = random.Random(f"chaos {seed}")
    waiting = list(Action)
    draw.shuffle(waiting)
    steps = []
    now = WARM_UP_SECONDS
    while now < seconds:
        action = waiting.pop() if waiting else _any_action(draw)
        rules = draw_rules(draw) if action is Action.FAULTS else ()
        steps.append(Step(round(now, 3), action, draw.getrandbits(32), rules))
        # What has to come at least once is not kept waiting by luck.
        mean = _LEAST_GAP_SECONDS if waiting else _MEAN_GAP_SECONDS
        now += _LASTS_SECONDS.get(action, _LEAST_GAP_SECONDS) + draw.expovariate(1 / mean)
    return tuple(steps)


def draw_rules(draw: random.Random) -> tuple[Rule, ...]:
    """Return one to four faults that happen to some requests, for a while."""
    eligible = [fault for fault in Fault if fault not in BY_HAND]
    return tuple(_draw_rule(draw, fault) for fault in draw.sample(eligible, draw.randint(1, 4)))


def _draw_rule(draw: random.Random, fault: Fault) -> Rule:
    probability = draw.choice((0.05, 0.1, 0.3, 0.5))
    seconds = round(draw.uniform(0.2, 4.0), 2)
    if fault in ON_CONNECTIONS:
        classes = frozenset({RequestClass.CONNECTION})
        return Rule(fault=fault, probability=probability, classes=classes, seconds=seconds)
    return Rule(fault=fault, probability=probability, classes=_draw_classes(draw), seconds=seconds)


def _draw_classes(draw: random.Random) -> frozenset[RequestClass]:
    groups: Sequence[frozenset[RequestClass]] = (
        frozenset({RequestClass.BINDING}),
        frozenset({RequestClass.WATCH, RequestClass.LIST}),
        frozenset({RequestClass.LEASE}),
        WRITES - {RequestClass.LEASE},
        ANY,
    )
    return draw.choice(groups)


def _any_action(draw: random.Random) -> Action:
    return draw.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))[0]
