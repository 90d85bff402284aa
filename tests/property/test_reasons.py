"""What a parked pod was told is what an attempt would tell it now, and would change nothing else.

The histories of `test_waking`, with pods of several priorities, and with preemption. At any moment
the core is asked to come to rest; then one parked pod is tried on a copy of it. The copy must not
bind it, must not evict for it, and must say of it what the pod was told last.
"""

import dataclasses
import random
from typing import Any

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.core.engine.parked import renewals
from k8s_scheduler.core.messages.incoming import Message, RequestResult, Restore, Schedule, Tick
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    ClearNomination,
    Evict,
    Instruction,
    Log,
    RecordEvent,
)
from k8s_scheduler.core.queue import waking
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from tests.inside import inside
from tests.property.test_waking import VOLUME_WEIGHTS, WEIGHTS, History, unwire, wire

STEPS = 40


class Told(History):
    """A history in which pods preempt each other, and somebody reads what they are told."""

    setup = Setup(
        profiles=default_configuration(known_plugins()).profiles,
        queue=QueuePolicy(BackoffPolicy(), renewals_per_second=1000),
    )

    def __init__(self, seed: int, *, volumes: bool) -> None:
        super().__init__(seed, volumes=volumes)
        self.notes: dict[PodUid, str] = {}
        self.requests: list[Evict | ClearNomination] = []
        self.checked = random.Random(seed)

    def run(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.put_node()
        steps = {**WEIGHTS, Told.answer_requests: 4, **(VOLUME_WEIGHTS if self.volumes else {})}
        for number in range(1, STEPS + 1):
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            step(self)
            if number % 4 == 0:
                self.what_pods_were_told_is_true()

    def random_pod(self, name: str) -> dict[str, Any]:
        raw = super().random_pod(name)
        raw["spec"]["priority"] = self.rng.choice([0, 0, 100, 200])
        if self.maybe(0.25):
            raw["spec"]["preemptionPolicy"] = "Never"
        return raw

    def tell(self, message: Message) -> None:
        out = self.core.handle(message)
        if self.twin is not None:
            assert self.twin.handle(unwire.decode(wire.encode(message))) == out
        self.open_binds += [i for i in out if isinstance(i, Bind)]
        self.requests += [i for i in out if isinstance(i, Evict | ClearNomination)]
        self.notes |= told_by(out)
        logs = [i.event for i in out if isinstance(i, Log)]
        assert not any("was not woken" in event for event in logs), "waking has a hole"

    def answer_requests(self) -> None:
        """Let victims leave, at once or later; a request may fail as well."""
        for _ in range(min(self.rng.randint(1, 3), len(self.requests))):
            asked = self.requests.pop(0)
            done = self.maybe(0.9)
            self.tell(RequestResult(self.now, asked.uid, asked.attempt, asked.request, done, ""))
            if not done or not isinstance(asked, Evict) or asked.victim.uid not in self.pods:
                continue
            if self.maybe(0.5):
                del self.pods[asked.victim.uid]
            else:
                raw = self.pods[asked.victim.uid]
                raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                raw["status"]["conditions"] = [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                    }
                ]
            self.show(asked.victim.uid)

    # What must hold

    def come_to_rest(self) -> None:
        for _ in range(100):
            self.settle()
            self.now += 1.0
            before = len(inside(self.core).queue)
            self.tell(Tick(self.now))
            if not self.core.has_work and len(inside(self.core).queue) == before:
                return
        pytest.fail("reasons never come to rest")

    def what_pods_were_told_is_true(self) -> None:
        self.come_to_rest()
        parked = [queued for queued in inside(self.core).queue.parked if self.is_to_be_true(queued)]
        if not parked:
            return
        queued = self.checked.choice(parked)
        out = self.try_on_a_copy(queued)
        assert not [i for i in out if isinstance(i, Bind | Evict)], f"{queued.uid} was not woken"
        assert self.notes[queued.uid] == told_by(out)[queued.uid]

    def is_to_be_true(self, queued: QueuedPod) -> bool:
        """Leave out who waits for others to leave, who is leaving, and who was refused late."""
        uid = queued.uid
        if queued.pod.metadata.deletion_timestamp is not None:
            return False
        is_waiting = inside(self.core).evictions.is_under_way(uid)
        promise = inside(self.core).cache.nominations.node_of(uid)
        return bool(queued.told) and not is_waiting and promise is None

    def try_on_a_copy(self, queued: QueuedPod) -> list[Instruction]:
        restore = unwire.decode(wire.encode(Restore(self.now, self.core.snapshot())))
        policy = dataclasses.replace(self.setup.queue, renewals_per_second=0)
        copy = Scheduler(dataclasses.replace(self.setup, queue=policy))
        copy.handle(restore)
        copy._queue.activate(queued.uid, now=self.now)
        return copy.handle(Schedule(self.now, 1))


def told_by(out: list[Instruction]) -> dict[PodUid, str]:
    events = [i for i in out if isinstance(i, RecordEvent) and i.reason == "FailedScheduling"]
    return {event.uid: event.note for event in events}


@pytest.mark.parametrize(
    ("first", "volumes"),
    [*((n, False) for n in range(0, 160, 40)), (160, True)],
)
def test_what_parked_pods_were_told_is_true(first, volumes, monkeypatch):
    monkeypatch.setattr(waking, "WORK_PER_STEP", 100 * (1 + first // 40 % 3))
    monkeypatch.setattr(renewals, "WORK_PER_STEP", 1 + first // 40 % 3)
    monkeypatch.setattr(renewals, "POD_SECONDS", 0.0)
    for seed in range(first, first + 40):
        try:
            Told(seed, volumes=volumes).run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
