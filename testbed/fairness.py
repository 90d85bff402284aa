"""`make fairness`: what pods of others lose while every Binding of one namespace is answered 500.

A webhook on the Bindings of one namespace is down, and a thousand pods of it are in the queue. The
speed at which pods of another namespace are bound is measured with those pods and without, by
turns, on one control plane, with one process:

* *settled in*: the others come when the trouble has lasted for a while, which is how it is most of
  the time;
* *at once*: all come together, and the pods in trouble are first in line.

Behind each speed stands the CPU that a pod of the others took, of scheduler and API server: other
work on the machine changes it less than it changes the speed.

Exit code 0 only if the median of the first is at least 90 % of the speed without, and if binds in
doubt have ended by the end.
"""

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from testbed.bed import Bed
from testbed.daemon import Daemon, usage_of
from testbed.errors import TestbedError
from testbed.options import API_SERVER, CONTROLLER_MANAGER, BedOptions
from testbed.sandbox import Sandbox
from testbed.takeover.load import large_nodes
from testbed.waiting import eventually
from testbed.webhook import COLLECTION, broken_webhook, wait_until_down
from testbed.workload import make_pod

_SCHEDULER: Final = "k8s-scheduler"
_BOUND: Final = 'k8s_scheduler_bind_attempts_total{result="success"}'
_IN_DOUBT: Final = "k8s_scheduler_doubtful_binds"
_ENDED: Final = 'k8s_scheduler_doubtful_binds_ended_total{outcome="not_executed"}'
_CONDITIONS: Final = 'k8s_scheduler_pending_writes{kind="condition"}'
_GUARD: Final = "fairness-guard"
_WANTED: Final = 0.9
# Longer than a bind in doubt needs to end: its repetitions, and the settling time.
_END_SECONDS: Final = 400.0
_SECONDS: Final = 180.0
# Until what the first moments of the trouble lead to is over: events and conditions are written.
_SETTLING_IN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast pods of others were bound, and what each cost scheduler and API server."""

    pods_per_second: float
    scheduler_milliseconds: float
    server_milliseconds: float

    @property
    def milliseconds(self) -> float:
        """The CPU of both for one pod."""
        return self.scheduler_milliseconds + self.server_milliseconds

    def __str__(self) -> str:
        return (
            f"{self.pods_per_second:.0f}/s "
            f"({self.scheduler_milliseconds:.2f} + {self.server_milliseconds:.2f} ms)"
        )


class Trial:
    """One daemon, and pods that come while it is stopped."""

    def __init__(self, bed: Bed, daemon: Daemon, *, pods: int, sick: int) -> None:
        self._bed = bed
        self._daemon = daemon
        self._pods = pods
        self._sick = sick

    def without(self) -> Speed:
        """Return the speed in pods per second with nothing else in the queue."""
        with Sandbox(self._bed, prefix="others") as others:
            return self._speed(others)

    def at_once(self) -> Speed:
        """Return the speed of others when all come together."""
        with self._trouble() as sick, Sandbox(self._bed, prefix="others") as others:
            return self._speed(others, first=sick)

    def settled_in(self, *, to_the_end: bool) -> Speed:
        """Return the speed of others when the trouble has lasted for a while.

        If it is taken `to_the_end`, wait until binds in doubt have ended by themselves.
        """
        with self._trouble() as sick:
            self._create(sick, self._sick)
            doubtful = min(self._sick, 100)
            eventually(lambda: self._metric(_IN_DOUBT) >= doubtful, _SECONDS, "binds are in doubt")
            eventually(lambda: not self._metric(_CONDITIONS), _SECONDS, "what failed is told")
            time.sleep(_SETTLING_IN_SECONDS)
            with Sandbox(self._bed, prefix="others") as others:
                speed = self._speed(others)
            if to_the_end:
                before = self._metric(_ENDED)
                eventually(lambda: self._metric(_ENDED) > before, _END_SECONDS, "they end")
            return speed

    @contextmanager
    def _trouble(self) -> Iterator[Sandbox]:
        with Sandbox(self._bed, prefix="sick") as sick:
            sick.create_cluster_object(COLLECTION, broken_webhook(_GUARD, sick.namespace))
            wait_until_down(sick.client, sick.namespace)
            yield sick

    def _speed(self, others: Sandbox, *, first: Sandbox | None = None) -> Speed:
        """Create pods while the daemon is stopped, let it go on, and take the time."""
        before = self._metric(_BOUND)
        self._daemon.signal(signal.SIGSTOP)
        try:
            if first is not None:
                self._create(first, self._sick)
            self._create(others, self._pods)
        finally:
            self._daemon.signal(signal.SIGCONT)
        began, used = time.monotonic(), self._cpu()
        wanted = before + self._pods
        eventually(
            lambda: self._metric(_BOUND) >= wanted,
            _SECONDS,
            f"{self._pods} pods of others are bound",
            interval_seconds=0.05,
        )
        seconds, now = time.monotonic() - began, self._cpu()
        scheduler, server = (1000 * (b - a) / self._pods for a, b in zip(used, now, strict=True))
        return Speed(self._pods / seconds, scheduler, server)

    def _cpu(self) -> tuple[float, float]:
        server = self._bed.pid(API_SERVER)
        if server is None:
            raise TestbedError("the API server does not run")
        return self._daemon.usage().cpu_seconds, usage_of(server).cpu_seconds

    def _create(self, sandbox: Sandbox, count: int) -> None:
        pods = (
            make_pod(f"p{i}", cpu="1m", memory="1Mi", scheduler_name=_SCHEDULER)
            for i in range(count)
        )
        sandbox.create_pods(pods)

    def _metric(self, name: str) -> float:
        return self._daemon.metrics().get(name, 0.0)


def main(arguments: list[str]) -> int:
    """Measure and print; 1 if others lose more than they may, or binds in doubt do not end."""
    chosen = _parser().parse_args(arguments)
    try:
        with Bed(BedOptions(components=(CONTROLLER_MANAGER,))) as bed, Sandbox(bed) as ground:
            large_nodes(ground)
            daemon = Daemon(bed, flags=("--leader-elect=false",)).start()
            found = _measure(Trial(bed, daemon, pods=chosen.pods, sick=chosen.sick), chosen.rounds)
            posts = daemon.metrics().get('k8s_scheduler_bind_attempts_total{result="unknown"}')
            print(f"requests without a usable answer: {posts:.0f}; exit code {daemon.stop()}")
    except (TestbedError, AssertionError) as error:
        print(f"fairness: {error}", file=sys.stderr)
        return 1
    return 0 if found >= _WANTED else 1


def _measure(trial: Trial, rounds: int) -> float:
    """Return the ratio of the speeds, with trouble that has lasted for a while and without.

    Each is compared with what was measured just before and just after it: others use the machine.
    """
    trial.without()  # to warm up
    settled, together = [], []
    before = trial.without()
    for left in reversed(range(rounds)):
        in_trouble = trial.settled_in(to_the_end=not left)
        between = trial.without()
        at_once = trial.at_once()
        after = trial.without()
        settled.append(_ratio(in_trouble, before, between))
        together.append(_ratio(at_once, between, after))
        print(
            f"without {before}, settled in {in_trouble}, without {between}, at once {at_once}, "
            f"without {after}",
            flush=True,
        )
        before = after
    for words, found in (("settled in", settled), ("at once", together)):
        speed, by_cpu = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{words}: {speed:.2f} of the speed without, {by_cpu:.2f} by CPU", flush=True)
    return statistics.median(speed for speed, _ in settled)


def _ratio(found: Speed, before: Speed, after: Speed) -> tuple[float, float]:
    """Return the speed as a share of that before and after, and what it would be by CPU alone."""
    speed = 2 * found.pods_per_second / (before.pods_per_second + after.pods_per_second)
    return speed, (before.milliseconds + after.milliseconds) / (2 * found.milliseconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.fairness", description=__doc__)
    parser.add_argument("--pods", type=int, default=1000, help="pods of others in each round")
    parser.add_argument("--sick", type=int, default=1000, help="pods whose Bindings fail")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each kind")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
