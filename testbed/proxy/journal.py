"""What the proxy did and saw, with times, so that an auditor can say which fault explains what.

Times are the machine's wall clock, which all processes of a bed share.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from testbed.proxy.faults import Fault, RequestClass


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that happened. `upstream_status` is 0 where the API server saw nothing of it."""

    at: float
    through: str
    fault: Fault
    kind: RequestClass
    method: str
    target: str
    upstream_status: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A Binding that came by: when it came and when the API server had answered (0: it did not)."""

    at: float
    ended_at: float
    through: str
    target: str
    upstream_status: int


class Journal:
    """All of it, for any number of proxies and threads; also as lines in a file."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._faults: list[Injected] = []
        self._bindings: list[Exchange] = []
        self._file: TextIO | None = None if path is None else path.open("a", encoding="utf-8")

    def now(self) -> float:
        """Return the time by the journal's clock."""
        return self._clock()

    def injected(
        self,
        through: str,
        fault: Fault,
        *,
        kind: RequestClass = RequestClass.CONNECTION,
        method: str = "",
        target: str = "",
        upstream_status: int = 0,
    ) -> None:
        """Note a fault."""
        entry = Injected(self._clock(), through, fault, kind, method, target, upstream_status)
        with self._lock:
            self._faults.append(entry)
            if self._file is not None:
                self._file.write(json.dumps(asdict(entry)) + "\n")
                self._file.flush()

    def binding(self, through: str, target: str, *, began: float, status: int) -> None:
        """Note a Binding that was passed on."""
        entry = Exchange(began, self._clock(), through, target, status)
        with self._lock:
            self._bindings.append(entry)

    def faults(self) -> list[Injected]:
        """Return the faults so far."""
        with self._lock:
            return list(self._faults)

    def bindings(self) -> list[Exchange]:
        """Return the Bindings that reached the API server through the proxies so far."""
        with self._lock:
            return list(self._bindings)

    def counts(self) -> Counter[str]:
        """Return how often each fault happened."""
        return Counter(str(entry.fault) for entry in self.faults())

    def close(self) -> None:
        """Close the file; what happens later is noted in memory only."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
