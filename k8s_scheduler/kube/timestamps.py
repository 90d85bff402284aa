"""Wall-clock times as the API server wants them.

`MicroTime` fields are parsed by a fixed layout: exactly six digits of fraction, also when they
are zeros, and UTC. Wall time is only ever written, never compared: decisions about time are made
on clocks that cannot be set.
"""

import time
from functools import lru_cache

_NANOSECONDS = 1_000_000_000


def second_time(wall_ns: int) -> str:
    return f"{_whole(wall_ns // _NANOSECONDS)}Z"


def micro_time(wall_ns: int) -> str:
    seconds, nanoseconds = divmod(wall_ns, _NANOSECONDS)
    return f"{_whole(seconds)}.{nanoseconds // 1000:06d}Z"


@lru_cache(maxsize=16)
def _whole(seconds: int) -> str:
    """Return a time up to its seconds: hundreds of events may share them."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
