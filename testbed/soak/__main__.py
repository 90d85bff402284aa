"""`make soak HOURS=2`: one daemon under churn for hours. Exit 0 if memory has come to rest.

The daemon runs under a memory ceiling on a real control plane with kwok's nodes. A step of churn is
made every half second; memory is looked at every ten seconds. At the end the curve is printed, and
what is wrong: memory that grew between the two halves, a ceiling that was passed, a process that
ended, pods that fit and wait.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.errors import ApiError, TestbedError
from testbed.options import CONTROLLER_MANAGER, KWOK, BedOptions
from testbed.soak.churn import ODD_PODS, Churn
from testbed.soak.curve import Sample, draw, judge
from testbed.waiting import eventually

SCHEDULER_NAME = "k8s-scheduler"
_LOOK_SECONDS = 10.0
_SETTLE_SECONDS = 120.0


def main(arguments: list[str]) -> int:
    """Run it; return the exit code."""
    options = _parser().parse_args(arguments)
    samples: list[Sample] = []
    try:
        with Bed(BedOptions(components=(CONTROLLER_MANAGER, KWOK))) as bed:
            problems = _run(bed, options, samples)
    except TestbedError as error:
        problems = [str(error)]
    if samples:
        print(draw(samples))
        verdict = judge(
            samples, seconds=samples[-1].seconds, ceiling_bytes=options.ceiling_mib * 2**20
        )
        problems += verdict.problems
        print(
            f"half-way {verdict.first_bytes / 2**20:.1f} MiB, at the end "
            f"{verdict.second_bytes / 2**20:.1f} MiB ({verdict.growth:.3f}x), "
            f"peak {verdict.peak_bytes / 2**20:.1f} MiB"
        )
        if options.out:
            text = json.dumps([asdict(sample) for sample in samples])
            options.out.write_text(text, encoding="utf-8")
    for problem in problems:
        print(f"soak: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _run(bed: Bed, options: argparse.Namespace, samples: list[Sample]) -> list[str]:
    flags = ["--leader-elect=false", *options.flag]
    daemon = Daemon(bed, flags=flags).start()
    churn = Churn(bed.client, seed=options.seed, scheduler=SCHEDULER_NAME, nodes=options.nodes)
    churn.set_up()
    began = time.monotonic()
    seconds = options.hours * 3600
    due = looked = 0.0
    while (now := time.monotonic() - began) < seconds:
        if daemon.pid is None:
            return [f"the daemon has ended; {daemon.log_tail()}"]
        if now >= due:
            due = now + options.pause
            churn.step()
        if now >= looked + _LOOK_SECONDS:
            looked = now
            samples.append(_look(daemon, now))
        time.sleep(0.02)
    print(f"steps: {churn.steps}", flush=True)
    return [*_waiting(bed), *_end(daemon)]


def _look(daemon: Daemon, now: float) -> Sample:
    metrics = daemon.metrics()
    return Sample(
        seconds=now,
        rss_bytes=int(metrics["process_resident_memory_bytes"]),
        bound=metrics.get('k8s_scheduler_bind_attempts_total{result="success"}', 0.0),
        waiting=sum(v for k, v in metrics.items() if k.startswith("scheduler_pending_pods{")),
    )


def _waiting(bed: Bed) -> list[str]:
    """Wait until all pods but the odd ones are bound; return those that are not."""

    def unbound() -> list[str]:
        pods = bed.client.list("/api/v1/pods", fieldSelector="spec.nodeName=")
        names = [f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in pods]
        return [name for name in names if "/odd-" not in name]

    try:
        eventually(lambda: not unbound(), _SETTLE_SECONDS, "every pod is bound")
    except (AssertionError, ApiError):
        left = unbound()
        return [f"{len(left)} pods still wait, besides up to {ODD_PODS} odd ones: {left[:5]}"]
    return []


def _end(daemon: Daemon) -> list[str]:
    code = daemon.stop()
    return [] if code == 0 else [f"the daemon ended with {code}; {daemon.log_tail()}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0, help="how long (default 2)")
    parser.add_argument("--nodes", type=int, default=60, help="simulated nodes (default 60)")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between steps")
    parser.add_argument("--seed", type=int, default=1, help="which churn (default 1)")
    parser.add_argument("--ceiling-mib", type=int, default=256, help="most memory (default 256)")
    parser.add_argument("--flag", action="append", default=[], help="further flag of the daemon")
    parser.add_argument("--out", type=Path, help="file for the samples, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
