"""Ends a process whose event loop hangs.

A hung loop renews no lease and binds no pod, and it can't notice that itself, not even inside C
code. So a timer in another thread is re-armed on every turn; if it ever fires, it writes every
thread's stack to stderr and exits. The lease then passes on, and the supervisor restarts us.
"""

import asyncio
import faulthandler
import sys

HANG_SECONDS = 60.0
_TURN_SECONDS = 1.0


async def watch_loop(hang_seconds: float = HANG_SECONDS) -> None:
    """Keep re-arming until cancelled."""
    try:
        while True:
            faulthandler.dump_traceback_later(hang_seconds, exit=True, file=sys.stderr)
            await asyncio.sleep(_TURN_SECONDS)
    finally:
        faulthandler.cancel_dump_traceback_later()
