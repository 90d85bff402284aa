"""Free loopback ports that stay ours while a component is down.

They are taken from below the kernel's range for outgoing connections. A port inside that range
could be handed to some client while the API server restarts; worse, a client that keeps trying
to reach the dead port may be given that very port as its source and connect to itself.
"""

import contextlib
import random
import socket
from collections.abc import Collection
from pathlib import Path

from testbed.errors import TestbedError

_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 15_000
_HIGHEST = 60_000
_ATTEMPTS = 1_000


def choose_ports(
    count: int, *, taken: Collection[int] = (), rng: random.Random | None = None
) -> list[int]:
    """Return ports that nobody listens on and that are not among those taken."""
    draw = rng or random.Random()
    highest = _below_ephemeral()
    chosen: list[int] = []
    for _ in range(_ATTEMPTS):
        if len(chosen) == count:
            return chosen
        port = draw.randrange(_LOWEST, highest)
        if port not in taken and port not in chosen and _is_free(port):
            chosen.append(port)
    raise TestbedError(f"found no {count} free ports between {_LOWEST} and {highest}")


def _below_ephemeral() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        first = int(_RANGE_FILE.read_text(encoding="ascii").split()[0])
        if first > _LOWEST + 1_000:
            return first
    return _HIGHEST


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
