"""Configurations that change in the middle of random histories.

Other plugins, other profiles, another order and other waits, while pods wait, are on their way,
preempt and are preempted. Whatever held before holds still; a core born from a checkpoint can't be
told apart from the one it came from, though pods of theirs go by configurations of long ago; and in
the end the core believes and decides what a new one does that never knew any other configuration.
"""

import dataclasses
from collections import Counter
from typing import Any

import pytest

from k8s_scheduler.api.config.load import configuration_from_value
from k8s_scheduler.api.config.types import PluginUse, ResolvedProfile
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.reconfiguring import settings_of
from k8s_scheduler.core.messages.incoming import PodChanged, Reconfigure
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.scheduler import Scheduler
from tests.builders import PodBuilder
from tests.inside import inside
from tests.property.saga_history import History
from tests.property.test_sagas import WEIGHTS, run_all

FIRST, SECOND = "default-scheduler", "second"
GUARDED = ("reserve", "permit", "preBind", "postBind")
SMALL_FIRST: dict[str, Any] = {
    "queueSort": {
        "disabled": [{"name": "PrioritySort"}],
        "enabled": [{"name": "SmallRequestFirst"}],
    }
}
NO_ROOM_NEEDED: dict[str, Any] = {
    "multiPoint": {"disabled": [{"name": "NodeResourcesFit"}, {"name": "DefaultPreemption"}]}
}
CORDONS_IGNORED: dict[str, Any] = {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}}
POLICIES = (
    QueuePolicy(BackoffPolicy()),
    QueuePolicy(BackoffPolicy(initial_seconds=2.0, maximum_seconds=4.0)),
    QueuePolicy(BackoffPolicy(), parked_limit_seconds=20.0, max_attempts=3),
)


def profiles(*, guarded: bool = True, **plugins: Any) -> tuple[ResolvedProfile, ...]:
    """Return profiles by name and what is special about their plugins."""
    value = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": name.replace("_", "-"), "plugins": special}
            for name, special in plugins.items()
        ],
    }
    found = configuration_from_value(value, known_plugins(), source="test").profiles
    return tuple(map(with_guard, found)) if guarded else found


def with_guard(profile: ResolvedProfile) -> ResolvedProfile:
    points = dict(profile.points)
    for point in GUARDED:
        points[point] = (*points.get(point, ()), PluginUse("Guard"))
    return dataclasses.replace(profile, points=points)


CONFIGURATIONS = (
    profiles(default_scheduler={}),
    profiles(default_scheduler={}, second={}),
    profiles(second=CORDONS_IGNORED),
    profiles(guarded=False, default_scheduler={}, second={}),
    profiles(default_scheduler=SMALL_FIRST, second=SMALL_FIRST | CORDONS_IGNORED),
    profiles(default_scheduler=CORDONS_IGNORED, second={}),
)


class Unsettled(History):
    """A cluster in which everything happens, under rules that do not last."""

    def random_pod(self, name: str) -> PodBuilder:
        pod = super().random_pod(name)
        pod.raw["spec"]["schedulerName"] = self.rng.choice([FIRST, FIRST, SECOND])
        return pod

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        # Pods that are served since a moment ago, and that the core was not told of again yet.
        self.untold: set[str] = set()

    def is_foreign(self, pod: Any) -> bool:
        return super().is_foreign(pod) or pod.metadata.uid in self.untold

    def reconfigure(self) -> None:
        before = self.core.scheduler_names
        under_way = {flight.uid: flight.generation for flight in inside(self.core).flights}
        chosen = self.rng.choice(CONFIGURATIONS)
        new = {profile.scheduler_name for profile in chosen} - before
        self.untold = {uid for uid, p in self.seen.items() if p.spec.scheduler_name in new}
        policy = settings_of(self.rng.choice(POLICIES))
        self.tell(Reconfigure(self.now, chosen, policy))
        for uid, generation in under_way.items():
            flight = inside(self.core).flights.get(PodUid(uid))
            assert flight is not None
            assert flight.generation == generation
        self.met["a pod goes by an older configuration"] += bool(under_way)
        # The shell tells of pods that nobody served before.
        for uid in sorted(self.untold):
            self.untold.discard(uid)
            pod = self.seen[uid]
            if not pod.spec.node_name:
                self.tell(PodChanged(self.now, PodUid(uid), pod))
                self.met["a pod is served from now on"] += 1

    def everybody_is_in_one_place(self) -> None:
        super().everybody_is_in_one_place()
        in_use = {f.generation for f in inside(self.core).flights} - {
            inside(self.core).profiles.generation
        }
        assert set(inside(self.core).profiles._earlier) >= in_use
        self.met["configurations in use"] = max(self.met["configurations in use"], 1 + len(in_use))

    def is_as_if_new(self) -> None:
        super().is_as_if_new()
        fresh = Scheduler(self.core.setup)
        for message in self.story_of_now():
            fresh.handle(message)
        for queued in inside(self.core).queue:
            mine, other = (c.judge(queued.pod) for c in (self.core, fresh))
            assert mine == other, queued.uid
        assert inside(self.core).profiles._earlier == {} or self.core.kinds == fresh.kinds

    def story_of_now(self) -> list[Any]:
        server = type(self.server)(self.rng)
        for raw in self.server.nodes.values():
            server.put_node(raw)
        for (kind, _, _), raw in self.server.objects.items():
            server.put(kind, raw)
        for raw in self.server.pods.values():
            server.put_pod(raw)
        return [change(self.now) for change in server.watch]

    def weights(self) -> dict[Any, float]:
        return UNSETTLED


UNSETTLED: dict[Any, float] = {
    getattr(Unsettled, step.__name__): weight for step, weight in WEIGHTS.items()
} | {Unsettled.reconfigure: 6}


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_random_histories_with_changes_of_the_configuration(first, monkeypatch):
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 25 % 3))
    monkeypatch.setattr(waking, "PODS_PER_STEP", 1 + first // 25 % 4)
    met: Counter[str] = run_all(range(first, first + 25), Unsettled)
    assert met.keys() >= {
        "a pod goes by an older configuration",
        "a pod is served from now on",
        "a named node is taken back",
    }
    assert met["configurations in use"] >= 3
