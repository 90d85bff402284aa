"""Ends a process whose event loop hangs (`--hang-timeout`).

A hung loop renews no lease and binds no pod, and it can't notice that itself, not even inside C
code. So a timer in another thread is re-armed on every turn; if it ever fires, it writes every
thread's stack to stderr and exits with 1. The supervisor restarts us.

With leader election no other replica waits for that: a lease that is not renewed expires long
before, and a process that goes on after a hang finds its deadline passed and writes nothing.
The limit is about the process itself, which would otherwise hang for ever, and it is longer
than the lease, so that a slow machine is not taken for a hung one. The timer goes on while the
process is stopped from outside; one that was for longer than the limit ends when it goes on.
"""

import asyncio
import faulthandler
import sys

_TURN_SECONDS = 1.0


async def watch_loop(hang_seconds: float) -> None:
    """Keep re-arming until cancelled."""
    try:
        while True:
            faulthandler.dump_traceback_later(hang_seconds, exit=True, file=sys.stderr)
            await asyncio.sleep(min(_TURN_SECONDS, hang_seconds / 4))
    finally:
        faulthandler.cancel_dump_traceback_later()
