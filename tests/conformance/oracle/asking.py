"""Asking the oracle: scenarios in, kube-scheduler's decisions out."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from testbed.errors import ComponentError
from tests.conformance.oracle.flatten import flattened


def ask(oracle: Path, scenarios: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the decisions on all scenarios, in their order; raises ComponentError."""
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            [oracle], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints
        ) as process,
    ):
        feeder = threading.Thread(target=_feed, args=(process.stdin, scenarios), daemon=True)
        feeder.start()
        try:
            yield from map(json.loads, process.stdout or ())
        except BaseException:
            process.kill()
            raise
        finally:
            code = process.wait()
            feeder.join()
        if code != 0:
            complaints.seek(0)
            last = complaints.read().decode(errors="replace").strip()[-2000:]
            raise ComponentError(f"the oracle ended with code {code}: {last}")


def ask_sequences(oracle: Path, sequences: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the decisions on all steps of all sequences; the oracle sees each step by itself."""
    return ask(oracle, (step for sequence in sequences for step in flattened(sequence)))


def _feed(pipe: IO[bytes] | None, scenarios: Iterable[dict[str, Any]]) -> None:
    if pipe is None:
        return
    try:
        with pipe:
            for scenario in scenarios:
                pipe.write(json.dumps(scenario, separators=(",", ":")).encode() + b"\n")
    except BrokenPipeError:
        # It ended early; whoever reads its answers says why.
        return
