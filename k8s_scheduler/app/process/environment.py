"""What a process depends on outside itself: clocks, randomness, its name, memory, threads.

The graph asks for these by name and never reaches for `time` or `random` itself, so that a
simulation can run several daemons in one process, each with a clock of its own, and have the same
seed lead to the same run. The event loop need not be passed: `asyncio.sleep` and timeouts use the
one that runs.
"""

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from k8s_scheduler.app.process.gc_pauses import keep_what_is_here
from k8s_scheduler.app.process.warm_up import warm_up
from k8s_scheduler.app.process.watchdog import watch_loop
from k8s_scheduler.app.recovery.sentinel import Work, in_own_thread
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.lease.elector import boot_time
from k8s_scheduler.kube.waiting import Sleep, Timing
from k8s_scheduler.kube.watch.reflector_limits import DEFAULT_PACE, Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The real ones unless told otherwise.

    `clock` can't be set back, `boot_clock` moreover goes on while the machine sleeps,
    `wall_clock_ns` is what people call the time. `cpu_clock` measures slices of the loop, `perf`
    measures parts of a decision for metrics: neither decides anything but when to breathe.
    """

    clock: Callable[[], float] = time.monotonic
    boot_clock: Callable[[], float] = boot_time
    wall_clock_ns: Callable[[], int] = time.time_ns
    cpu_clock: Callable[[], float] | None = None
    perf: Callable[[], float] = time.perf_counter
    sleep: Sleep = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)
    hostname: str = field(default_factory=socket.gethostname)
    # Told apart from another process on the same host by this.
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))
    pace: Pace = DEFAULT_PACE
    warm_up: Callable[[Setup], None] = warm_up
    keep_memory: Callable[[], None] = keep_what_is_here
    # Told how long the loop may hang.
    watchdog: Callable[[float], Coroutine[Any, Any, None]] = watch_loop
    # Told what has to go on while the loop stands still, and by which kubeconfig.
    sentinel: Callable[[Work, str], Coroutine[Any, Any, None]] = in_own_thread

    def timing(self) -> Timing:
        return Timing(
            clock=self.clock,
            wall_clock_ns=self.wall_clock_ns,
            sleep=self.sleep,
            uniform=self.rng.random,
        )
