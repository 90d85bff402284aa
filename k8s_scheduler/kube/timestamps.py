"""Wall-clock times as the API server wants them.

`MicroTime` fields are parsed by a fixed layout: exactly six digits of fraction, also when they
are zeros, and UTC. Wall time is only ever written, never compared: decisions about time are made
on clocks that cannot be set.
"""

import time

_NANOSECONDS = 1_000_000_000


def second_time(wall_ns: int) -> str:
    """Return a `Time`, such as `2026-01-02T03:04:05Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall_ns // _NANOSECONDS))


def micro_time(wall_ns: int) -> str:
    """Return a `MicroTime`, such as `2026-01-02T03:04:05.000006Z`."""
    seconds, nanoseconds = divmod(wall_ns, _NANOSECONDS)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{nanoseconds // 1000:06d}Z"
