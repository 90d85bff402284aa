"""`make profile`: where the daemon's time goes while it places a backlog, as a flame graph.

    python -m testbed.bench.profiling [--workload NAME] [--nodes N] [--pods P] --out FILE.svg

The sampler looks at the process from outside, from the first Binding until the last event is
written, and costs it next to nothing.
"""

import argparse
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from testbed.bench.account import LogReader
from testbed.bench.arena import filled
from testbed.bench.cli import Bar
from testbed.bench.contestants import Contestant, NullBinder, Ours
from testbed.bench.outputs import check_file
from testbed.bench.runs import follow
from testbed.bench.scenarios import SCENARIOS
from testbed.errors import TestbedError

_SAMPLES_PER_SECOND = 400
_LONGEST_SECONDS = 600
_STOP_SECONDS = 60


def main(arguments: list[str]) -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make profile", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--workload", choices=list(SCENARIOS), default="basic")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--null", action="store_true", help="the null binder instead")
    parser.add_argument("--out", type=Path, default=Path("profile.svg"))
    options = parser.parse_args(arguments)
    scenario = SCENARIOS[options.workload]
    try:
        check_file(options.out, "OUT")
        sampler_program()
        counts = scenario.counts(options.nodes, options.pods)
        with filled(scenario, counts, Bar(sys.stderr).show) as arena:
            contestant: Contestant = (NullBinder if options.null else Ours)(arena.world)
            arena.world.restore()
            reader = LogReader(arena.world.audit_log)
            started = time.time()
            contestant.start()
            try:
                contestant.wait_ready()
                sampler = _sample(arena.pids(contestant)["scheduler"], options.out)
                try:
                    with arena.churning():
                        run = follow(
                            reader, arena.pod_names, lambda: arena.pids(contestant), started=started
                        )
                finally:
                    _end(sampler)
            finally:
                contestant.stop()
    except (TestbedError, ValueError) as error:
        print(f"\nprofile: {error}", file=sys.stderr)
        return 1
    cpu = ", ".join(f"{name} {ms:.2f} ms" for name, ms in run.cpu_ms_per_pod.items())
    print(f"\n{run.pods_per_second:.0f} pods/s; CPU per pod: {cpu}; flame graph: {options.out}")
    return 0


def sampler_program() -> Path:
    """Return the sampler; TestbedError if it is not installed."""
    program = Path(sysconfig.get_path("scripts")) / "py-spy"
    if not program.exists():
        raise TestbedError(f"{program} is not there: `make install` installs it")
    return program


def _sample(pid: int, out: Path) -> subprocess.Popen[bytes]:
    rate, longest = str(_SAMPLES_PER_SECOND), str(_LONGEST_SECONDS)
    command = [
        str(sampler_program()),
        "record",
        "--pid",
        str(pid),
        "--rate",
        rate,
        "--duration",
        longest,
    ]
    # Threads that wait are not what is asked about.
    return subprocess.Popen([*command, "--gil", "--output", str(out)], stdout=subprocess.DEVNULL)


def _end(sampler: subprocess.Popen[bytes]) -> None:
    """Let it write what it has seen; TestbedError if it could not look."""
    if sampler.poll() is None:
        sampler.send_signal(signal.SIGINT)
    if sampler.wait(timeout=_STOP_SECONDS) != 0:
        raise TestbedError("py-spy could not look at the daemon: see above (it needs ptrace)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
