"""Tells a story to both schedulers, and compares what they say after each step."""

import time
from dataclasses import dataclass

from testbed.bed import Bed
from testbed.client import Object
from testbed.sandbox import Sandbox
from testbed.stories.stage import OURS, SIDES, THEIRS, Stage
from testbed.stories.story import Step, Story

# By scheduler: the names of its profiles.
PROFILES = {
    THEIRS: ("default-scheduler", "second-theirs"),
    OURS: ("k8s-scheduler", "second-ours"),
}
# How much later than kube-scheduler, or than the step, we may say the same.
LATE_SECONDS = 2.0
# kube-scheduler may have to wait for the pod's backoff.
_PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 0.05
# So long nothing may change before a step is over: there may be another word on its way.
_QUIET_SECONDS = 0.6
_NOTE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one step: seconds from the step until each side said its last word."""

    what: str
    theirs: dict[str, str]
    ours: dict[str, str]
    theirs_seconds: float
    ours_seconds: float
    problem: str = ""


class Teller:
    """Tells one story."""

    def __init__(self, bed: Bed, story: Story) -> None:
        self._bed = bed
        self._story = story

    def tell(self) -> list[Told]:
        """Return what was said at the beginning and after each step; stops at a problem."""
        with Sandbox(self._bed, prefix="story") as sandbox:
            stage = Stage(sandbox)
            told = [self._watch(stage, Step("the pods are created", self._set_up), {})]
            for step in self._story.steps:
                if told[-1].problem:
                    break
                told.append(self._watch(stage, step, {THEIRS: told[-1].theirs}))
            return told

    def _set_up(self, stage: Stage) -> None:
        story = self._story
        for node in story.nodes:
            stage.add_node(node)
        for collection, body in story.things:
            stage.create(collection, {k: v for k, v in body.items() if k != "status"})
            if "status" in body:
                stage.set_status(collection, body["metadata"]["name"], body["status"])
        stage.put(*story.residents)
        time.sleep(_QUIET_SECONDS)  # both schedulers know all of it before they see a pod
        stage.sandbox.create_pods(
            [
                _of_side(pod, name, side, PROFILES[side][story.profile])
                for name, pod in story.pods.items()
                for side in SIDES
            ]
        )

    def _watch(self, stage: Stage, step: Step, before: dict[str, dict[str, str]]) -> Told:
        """Do a step; look until both sides agree and are quiet, or one of them is too late."""
        names = self._story.pods
        started = time.monotonic()
        step.do(stage)
        done = time.monotonic()
        said = stage.said(names)
        changed = dict.fromkeys(SIDES, done)
        while True:
            time.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            latest = stage.said(names)
            for side in SIDES:
                if latest[side] != said[side]:
                    changed[side] = now
            said = latest
            is_quiet = now - max(changed.values()) >= _QUIET_SECONDS
            problem = self._problem(step, said, before, now=now, done=done, changed=changed)
            if problem is None or (problem and is_quiet):
                break
        seconds = {side: changed[side] - started for side in SIDES}
        problem = problem or ""
        if not problem and step.renewed:
            problem = self._unlike_events(stage, said[OURS])
        return Told(step.what, said[THEIRS], said[OURS], seconds[THEIRS], seconds[OURS], problem)

    def _problem(
        self,
        step: Step,
        said: dict[str, dict[str, str]],
        before: dict[str, dict[str, str]],
        *,
        now: float,
        done: float,
        changed: dict[str, float],
    ) -> str | None:
        """Return None if the step is over as it should be, "" if not yet, or what is wrong."""
        if not step.renewed:
            is_other = said[THEIRS] != before[THEIRS]
            wrong = "kube-scheduler was not expected to try the pods again, and did"
            return "" if now - done < LATE_SECONDS else wrong if is_other else None
        waited_for = [name for name in self._story.pods if name not in self._story.silent]
        has_spoken = all(said[THEIRS][name] for name in waited_for)
        if not has_spoken or said[THEIRS] == before.get(THEIRS):
            return "kube-scheduler says nothing new" if now - done > _PATIENCE_SECONDS else ""
        theirs = max(changed[THEIRS], done)
        if said[THEIRS] != said[OURS]:
            is_late = now - theirs > LATE_SECONDS + _QUIET_SECONDS
            return "it says something else" if is_late else ""
        late = changed[OURS] - theirs
        if now - max(changed.values()) < _QUIET_SECONDS:
            return ""
        return f"{late:.1f} s later than kube-scheduler" if late > LATE_SECONDS else None

    def _unlike_events(self, stage: Stage, said: dict[str, str]) -> str:
        """Return what is wrong if the last event does not say what the condition does."""
        names = {n: None for n, text in said.items() if text and not text.startswith("(")}
        names = {n: None for n in names if n not in self._story.silent}
        deadline = time.monotonic() + LATE_SECONDS
        while True:
            notes = stage.last_notes(names, OURS)
            wrong = [n for n in names if notes[n][: _NOTE_BYTES - 4] != said[n][: len(notes[n])]]
            wrong += [n for n in names if not notes[n]]
            if not wrong or time.monotonic() > deadline:
                return f"the event says {notes[wrong[0]]!r}" if wrong else ""
            time.sleep(_LOOK_SECONDS)


def _of_side(pod: Object, name: str, side: str, scheduler_name: str) -> Object:
    return pod | {
        "metadata": pod["metadata"] | {"name": f"{name}-{side}"},
        "spec": pod["spec"] | {"schedulerName": scheduler_name},
    }
