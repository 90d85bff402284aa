"""One run: warm up, the plan, quiet, and the evidence in a folder."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.chaos.actions import Actions, Agenda
from testbed.chaos.archive import write_lines
from testbed.chaos.oracle_sample import Answers, ask_for_opinions
from testbed.chaos.plan import BACKGROUND, Step, draw_plan
from testbed.chaos.replays import replay_recordings
from testbed.chaos.stage import (
    LEASE_SECONDS,
    SCHEDULER_NAME,
    WRITE_SECONDS,
    Stage,
    make_bed,
)
from testbed.errors import ApiError

NODES = 20
# From the last fault until every pod that fits has to be bound. A reflector that met one fault
# after the other waits up to 30 s before it asks again, and a lease has to run out.
SETTLE_SECONDS = 90.0
_STILL_COMING_SECONDS = 12.0
_TOLD_SECONDS = 12.0
_TICK_SECONDS = 0.25
_MEND_SECONDS = 120.0
_SLOWEST = 2.0

Say = Callable[[str], None]


def run(seed: int, *, seconds: float, folder: Path, answers: Answers, say: Say) -> None:
    """Carry a plan out; everything that happened is in the folder afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "record").mkdir(parents=True)
    plan = draw_plan(seed, seconds=seconds)
    (folder / "plan.txt").write_text("".join(f"{step.describe()}\n" for step in plan), "utf-8")
    say(f"seed {seed}: {len(plan)} actions in {seconds:.0f} s; everything is kept in {folder}")
    with make_bed() as bed:
        stage = Stage(bed, folder, seed=seed, nodes=NODES)
        stage.set_up()
        agenda = Agenda()
        actions = Actions(stage, agenda)
        try:
            _carry_out(plan, stage, actions, agenda=agenda, seconds=seconds, say=say)
            quiet_from = mend(stage, agenda, say=say)
            _wait_settled(stage, quiet_from=quiet_from, say=say)
        finally:
            ended_at = time.time()
            stage.tear_down()
            write_lines(folder / "actions.jsonl", actions.done)
    summary = {
        "seed": seed,
        "scheduler": SCHEDULER_NAME,
        "lease_seconds": LEASE_SECONDS,
        "write_seconds": WRITE_SECONDS,
        "settle_seconds": SETTLE_SECONDS,
        "quiet_from": quiet_from,
        "ended_at": ended_at,
        "holes": stage.history.holes,
    }
    (folder / "run.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    replay_recordings(folder)
    asked = ask_for_opinions(folder, answers=answers)
    say(f"{asked} questions about decisions were put to the oracle")


def _carry_out(
    plan: Sequence[Step],
    stage: Stage,
    actions: Actions,
    *,
    agenda: Agenda,
    seconds: float,
    say: Say,
) -> None:
    began = time.time()
    waiting = list(plan)
    for replica in stage.replicas:
        replica.proxy.set_rules(BACKGROUND)
    looked_at = 0.0
    # A machine that is too slow for the plan takes longer over it.
    while (now := time.time() - began) < seconds or (waiting and now < _SLOWEST * seconds):
        if now - looked_at >= 1.0:
            looked_at = now
            stage.look()
        agenda.do_due()
        if waiting and waiting[0].at_seconds <= now:
            step = waiting.pop(0)
            actions.carry_out(step)
            say(f"{step.describe()}  {actions.done[-1].detail}")
        time.sleep(_TICK_SECONDS)
    for step in waiting:
        say(f"not reached: {step.describe()}")


def mend(stage: Stage, agenda: Agenda, *, say: Say) -> float:
    """Put everything right again; return when that was."""
    agenda.do_all(timeout_seconds=_MEND_SECONDS)
    # Only now: a step that ends puts the background of faults in force again.
    for replica in stage.replicas:
        replica.proxy.set_rules(())
    say("no more faults; pods keep coming for a while")
    return time.time()


def _wait_settled(stage: Stage, *, quiet_from: float, say: Say) -> None:
    """Wait until every pod of ours that fits is bound, and told so, or time is over."""
    deadline = quiet_from + SETTLE_SECONDS
    while time.time() < quiet_from + LEASE_SECONDS + _STILL_COMING_SECONDS:
        stage.look()
        time.sleep(1)
    stage.traffic.stop()
    waiting: list[str] = []
    while time.time() < deadline:
        stage.look()
        try:
            waiting = stage.waiting_pods()
        except (OSError, ApiError):
            waiting = ["(the API server does not say)"]
        if not waiting:
            break
        time.sleep(1)
    if waiting:
        say(f"{len(waiting)} pods are still waiting: {', '.join(waiting[:5])} ...")
    until = time.time() + _TOLD_SECONDS
    while time.time() < until:
        stage.look()
        time.sleep(1)
    stage.note_metrics()
