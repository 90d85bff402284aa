"""The suite's command line, and what it writes about its specs.

Chosen are the specs that need no feature which is off by default: neither the API server nor
kube-scheduler has those. The order is random as upstream wants it; the same seed gives both
schedulers the same order.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.component import tail
from testbed.errors import TestbedError

_FILTER = "!Feature: containsAny OffByDefault"
_PREFIX = "[sig-scheduling] "
_LABELS = re.compile(r"( \[[^\]]+\])+$")
_REHEARSAL_SECONDS = 60


class Outcome(StrEnum):
    """How a spec ended."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec that has ended."""

    name: str
    outcome: Outcome
    seconds: float
    message: str

    @property
    def reason(self) -> str:
        """The first line of what went wrong."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which specs run, in which order, and how long."""

    seed: int
    limit_seconds: int
    focus: str = ""

    def flags(self) -> list[str]:
        """Return them as flags of Ginkgo."""
        flags = [
            f"--ginkgo.label-filter={_FILTER}",
            f"--ginkgo.seed={self.seed}",
            f"--ginkgo.timeout={self.limit_seconds}s",
            "--ginkgo.no-color",
        ]
        return [*flags, f"--ginkgo.focus={self.focus}"] if self.focus else flags


def command(
    program: Path, choice: Choice, *, kubeconfig: Path, results: Path, reports: Path
) -> list[str]:
    """Return the command that runs the specs against a cluster."""
    return [
        str(program),
        *choice.flags(),
        "--ginkgo.v",
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        # Of what runs in kube-system, nothing is a pod here.
        "--minStartupPods=0",
        f"--results={results}",
        f"--report-dir={reports}",
    ]


def rehearse(program: Path, choice: Choice, *, folder: Path) -> list[str]:
    """Return the names of the specs that would run, without a cluster; raises TestbedError."""
    results, log = folder / "rehearsal.jsonl", folder / "rehearsal.log"
    results.unlink(missing_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            [str(program), *choice.flags(), "--ginkgo.dry-run", f"--results={results}"],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_REHEARSAL_SECONDS,
        )
    if done.returncode != 0:
        raise TestbedError(f"the suite does not list its specs; the end of {log}:\n{tail(log)}")
    specs = read_results(results.read_text(encoding="utf-8").splitlines())
    chosen = [spec.name for spec in specs if spec.outcome is Outcome.PASS]
    if not chosen:
        every = "\n  ".join(sorted(spec.name for spec in specs))
        raise TestbedError(
            f"no spec matches {choice.focus!r}, or only those with a feature that is off by "
            f"default; there are\n  {every}"
        )
    return chosen


def read_results(lines: Iterable[str]) -> list[Spec]:
    """Read what the suite wrote so far; raises TestbedError for what it cannot have written."""
    return [_spec(line) for line in lines]


def select(specs: Sequence[Spec], chosen: Iterable[str]) -> list[Spec]:
    """Leave out the specs that were not chosen; Ginkgo reports those as skipped."""
    names = frozenset(chosen)
    return [spec for spec in specs if spec.name in names]


def short_name(text: str) -> str:
    """Return the text of a spec without the group and the labels that all of them have."""
    return _LABELS.sub("", text.removeprefix(_PREFIX))


def _spec(line: str) -> Spec:
    try:
        told = json.loads(line)
        # Besides these there are panicked, timedout, interrupted and aborted.
        ended = {"passed": Outcome.PASS, "skipped": Outcome.SKIP, "pending": Outcome.SKIP}
        return Spec(
            name=short_name(told["name"]),
            outcome=ended.get(told["state"], Outcome.FAIL),
            seconds=float(told["seconds"]),
            message=str(told["message"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TestbedError(f"no result of a spec: {line[:200]!r} ({error!r})") from error
