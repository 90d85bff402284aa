"""Credentials that change while the process runs, kept valid.

                    ┌────── a file changed, 60 s passed, or the end is near ───┐
                    ▼                                                          │
    source ──► read (in a thread) ──► login in use ──────────── refresh() ─────┤
                    │    failed: the login in use stays, with a warning        │
                    └───────────────── after a 401: refresh(rejected=True) ────┘

`headers()` returns the same object until the token changes, so after a 401 a caller can tell by
identity whether trying again makes sense. `generation` grows when connections must be made anew:
another certificate, another CA. Reading happens in a thread and one at a time; many requests that
are rejected together cause one read. A caller that is cancelled does not cancel the read: the other
callers go on waiting for a slow plugin, and all get its result.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from k8s_scheduler.kube.auth.login import Login, LoginSource
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.obs.redaction import conceal

logger = logging.getLogger(__name__)

REREAD_SECONDS: Final = 60.0
# A rejected login is read again at once, but not once for each of many parallel requests.
REJECTED_PAUSE_SECONDS: Final = 1.0
# Renew so long before the end, or a fifth of the lifetime before it where that is shorter.
EXPIRY_MARGIN_SECONDS: Final = 60.0
# A plugin that fails is not run at every check.
FAILED_PAUSE_SECONDS: Final = 30.0

_GOING_ON: Final = "credentials cannot be read again, going on with the old ones"


@dataclass(frozen=True, slots=True)
class _Reading:
    login: Login
    context: ssl.SSLContext | None
    stamps: tuple[object, ...]


class RotatingCredentials:
    """Implements `auth.Credentials` on a source that may change at any time."""

    def __init__(
        self,
        source: LoginSource,
        reading: _Reading,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = asyncio.Lock()
        # What is being read, after a 401 or not.
        self._refreshing: dict[bool, asyncio.Task[None]] = {}
        self._failed_at = float("-inf")
        self._rejected_at = float("-inf")
        # Grows when connections must be made anew.
        self.generation = 0
        self._headers: Mapping[str, str] = {}
        self._expires_at: float | None = None
        self._renew_at: float | None = None
        self._reading = reading
        self._take(reading)

    @classmethod
    async def open(
        cls,
        source: LoginSource,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> "RotatingCredentials":
        reading = await asyncio.to_thread(_read, source, None, renew=False)
        return cls(source, reading, clock=clock, wall_clock=wall_clock)

    @property
    def server(self) -> str:
        return self._reading.login.server

    @property
    def tls_server_name(self) -> str:
        return self._reading.login.tls_server_name

    @property
    def proxy_url(self) -> str:
        return self._reading.login.proxy_url

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def ssl_context(self) -> ssl.SSLContext | None:
        return self._reading.context

    async def refresh(self, *, rejected: bool = False) -> None:
        task = self._refreshing.get(rejected)
        if task is None or task.done():
            task = asyncio.create_task(self._refresh(rejected=rejected))
            self._refreshing[rejected] = task
        await asyncio.shield(task)

    async def _refresh(self, *, rejected: bool) -> None:
        asked_at = self._clock()
        async with self._lock:
            if rejected:
                if self._rejected_at + REJECTED_PAUSE_SECONDS > asked_at:
                    return
                self._rejected_at = self._clock()
            elif self._clock() < self._failed_at + FAILED_PAUSE_SECONDS:
                return
            renew = rejected or self._ends_soon()
            try:
                if renew or await self._is_stale():
                    reading = await asyncio.to_thread(
                        _read, self._source, self._reading, renew=renew
                    )
                    self._take(reading)
            except CredentialsError as error:
                self._failed_at = self._clock()
                logger.warning(_GOING_ON, extra={"fields": self._failure(error)})
            except Exception as error:
                # The task that renews credentials must go on: the old ones may be valid for long.
                self._failed_at = self._clock()
                logger.exception(_GOING_ON, extra={"fields": self._failure(error)})

    def _failure(self, error: Exception) -> dict[str, str]:
        return {"source": self._source.describe(), "error": str(error)}

    def _ends_soon(self) -> bool:
        return self._renew_at is not None and self._wall_clock() >= self._renew_at

    async def _is_stale(self) -> bool:
        if self._clock() - self._read_at >= REREAD_SECONDS:
            return True
        stamps = await asyncio.to_thread(_stamps, self._source.files())
        return stamps != self._reading.stamps

    def _take(self, reading: _Reading) -> None:
        if reading.context is not self._reading.context:
            self.generation += 1
        authorization = reading.login.authorization
        if self._headers.get("Authorization") != authorization:
            conceal((authorization or "").partition(" ")[2])
            self._headers = {"Authorization": authorization} if authorization else {}
        self._reading = reading
        self._read_at = self._clock()
        expires_at = reading.login.expires_at
        if expires_at != self._expires_at:
            # Only for a new end: counted anew at each reading, the margin would melt away.
            self._expires_at = expires_at
            self._renew_at = self._renewal_before(expires_at)

    def _renewal_before(self, expires_at: float | None) -> float | None:
        if expires_at is None:
            return None
        lifetime_seconds = max(0.0, expires_at - self._wall_clock())
        return expires_at - min(EXPIRY_MARGIN_SECONDS, lifetime_seconds / 5)


def _read(source: LoginSource, before: _Reading | None, *, renew: bool) -> _Reading:
    # Stamps first: what changes while we read must be noticed the next time.
    stamps = _stamps(source.files())
    login = source.read(renew=renew)
    if before is not None and before.login.tls == login.tls:
        return _Reading(login, before.context, stamps)
    return _Reading(login, None if login.tls is None else login.tls.context(), stamps)


def _stamps(files: tuple[Path, ...]) -> tuple[object, ...]:
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except (OSError, ValueError):
        # The read that follows reports what is wrong with the file, or with its name.
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
