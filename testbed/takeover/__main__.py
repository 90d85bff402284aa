"""`python -m testbed.takeover`: how long take-overs last, with the durations of production.

Two replicas compete for the Lease while pods come in; the leader is killed, or told to stop, and
the time until the standby's first Binding is taken. Each round starts with a new standby.
"""

import argparse
import statistics
import sys

from testbed.bed import Bed
from testbed.errors import TestbedError
from testbed.options import CONTROLLER_MANAGER, BedOptions
from testbed.sandbox import Sandbox
from testbed.takeover.load import Stream, large_nodes
from testbed.takeover.outage import outage, server_away
from testbed.takeover.replicas import (
    TakeOver,
    Times,
    start_replica,
    take_over,
    wait_for_leader,
)

_SCHEDULER = "k8s-scheduler"
# How much longer than the lease a round may take before it counts as a failure.
_PATIENCE_SECONDS = 30.0


def main(arguments: list[str]) -> int:
    """Measure and print; 1 if something did not come about."""
    parser = argparse.ArgumentParser(prog="python -m testbed.takeover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="take-overs of each kind")
    parser.add_argument("--per-second", type=float, default=30.0, help="pods coming in")
    parser.add_argument(
        "--outage", type=float, metavar="SECONDS", help="take the API server away for so long"
    )
    parser.add_argument("--pods", type=int, default=1000, help="pods that wait in an outage")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.outage:
            return _outages(chosen)
        with Bed(BedOptions(components=(CONTROLLER_MANAGER,))) as bed:
            for crash in (True, False):
                with Sandbox(bed) as sandbox:
                    found = _rounds(bed, sandbox, chosen, crash=crash)
                print(_report("kill -9" if crash else "SIGTERM", found), flush=True)
    except (TestbedError, AssertionError) as error:
        print(f"takeover: {error}", file=sys.stderr)
        return 1
    return 0


def _outages(chosen: argparse.Namespace) -> int:
    for words, times in (("one process, no election", None), ("two replicas", Times())):
        # A bed for each: after an outage the controller manager takes up to a minute to come back.
        with Bed(BedOptions(components=(CONTROLLER_MANAGER,))) as bed, Sandbox(bed) as sandbox:
            lasted = outage(
                sandbox, times, away=server_away, pods=chosen.pods, seconds=chosen.outage
            )
            print(
                f"{words}: {chosen.pods} pods bound {lasted:.1f} s after the end of an outage of "
                f"{chosen.outage:g} s",
                flush=True,
            )
    return 0


def _rounds(
    bed: Bed, sandbox: Sandbox, chosen: argparse.Namespace, *, crash: bool
) -> list[TakeOver]:
    times = Times()
    large_nodes(sandbox)
    found = []
    leader = start_replica(bed, times)
    wait_for_leader(leader)
    for _ in range(chosen.rounds):
        standby = start_replica(bed, times)
        with Stream(sandbox, scheduler_name=_SCHEDULER, per_second=chosen.per_second):
            limit = times.lease_seconds + _PATIENCE_SECONDS
            found.append(take_over(leader, standby, crash=crash, limit_seconds=limit))
        print(f"  {found[-1]}", flush=True)
        leader = standby
    leader.stop()
    return found


def _report(kind: str, found: list[TakeOver]) -> str:
    def line(label: str, seconds: list[float]) -> str:
        middle, worst = statistics.median(seconds), max(seconds)
        return f"  {label:<34}median {middle:6.2f} s   worst {worst:6.2f} s"

    return "\n".join(
        (
            f"{kind}: {len(found)} take-overs",
            line("first Binding after the signal", [t.first_bind for t in found]),
            line("lease acquired after the signal", [t.acquired for t in found]),
            line("from the lease to the first Binding", [t.from_lease_to_bind for t in found]),
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
