"""A loop that hangs ends the process, even inside C code; one that is only busy does not."""

import asyncio
import faulthandler
import itertools
import subprocess
import sys
import textwrap

import pytest

from k8s_scheduler.app.process.watchdog import watch_loop
from tests.fakes.clock import virtual_time
from tests.unit.kube.write_fakes import loop_clock, running

HUNG = """
    import asyncio, sys
    from k8s_scheduler.app.process.watchdog import watch_loop

    async def main():
        task = asyncio.create_task(watch_loop(0.5))
        await asyncio.sleep(0.1)
        {body}
        task.cancel()

    asyncio.run(main())
    print("went on")
"""
# C code that never looks back at the interpreter.
IN_C = "sum(range(10**13))"
IN_A_LOCK = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"


def run(body: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(HUNG).format(body=body)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("body", [IN_C, IN_A_LOCK], ids=["in C", "in a lock"])
def test_a_hung_loop_ends_the_process_with_its_stacks(body):
    ended = run(body)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "in main" in ended.stderr
    assert "went on" not in ended.stdout


@pytest.mark.parametrize("hang_seconds", [0.5, 60.0])
@virtual_time
async def test_a_loop_that_turns_is_left_alone(hang_seconds, monkeypatch):
    """The timer is set anew long before it fires, whatever the limit is."""
    armed = []
    monkeypatch.setattr(
        faulthandler, "dump_traceback_later", lambda *_, **__: armed.append(loop_clock()())
    )
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: armed.append(None))
    async with running(watch_loop(hang_seconds)):
        await asyncio.sleep(100.0)
    assert armed.pop() is None
    gaps = [later - earlier for earlier, later in itertools.pairwise(armed)]
    assert 0 < max(gaps) <= hang_seconds / 4 + 1e-6
