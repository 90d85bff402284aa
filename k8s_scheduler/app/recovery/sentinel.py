"""Keeps the marks on the Lease up to date from a thread of its own.

It has its own event loop, credentials and connection, because those of the process stand still
while a decision is made, and that is when a mark has to be written. It looks ten times a second
and writes only when something is to be said: nothing at all in ordinary times.

It writes the Lease only while that names this process as its holder, by the version it has read,
and changes nothing but the note. So it can neither take nor prolong a term: the elector counts
from its own writes alone, and meets a newer version as it does after any other writer (it reads
and writes again). Others see the record change once and count from then: they lead later, not
sooner.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from k8s_scheduler.app.driver.marks import NOTE, Marks, encode
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import CredentialsError, KubeError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.kube.lease.lease import LeaseConfig, LeaseStore, with_annotation
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.obs.metrics import Metrics

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 1.0
# Marks are added at once, but removed together: a slow machine must not write all the time.
TIDY_SECONDS: Final = 2.0
_CALL_SECONDS: Final = 4.0
_RECONNECT_SECONDS: Final = 30.0
_JOIN_SECONDS: Final = 1.0

Work: TypeAlias = Callable[[Transport], Coroutine[Any, Any, None]]


class Sentinel:
    """Writes marks."""

    def __init__(
        self,
        marks: Marks,
        config: LeaseConfig,
        *,
        clock: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._marks = marks
        self._config = config
        self._clock = clock
        self._sleep = sleep
        self._wrote_at = float("-inf")

    async def run(self, transport: Transport) -> None:
        store = LeaseStore(transport, namespace=self._config.namespace, name=self._config.name)
        while True:
            await self._sleep(LOOK_SECONDS)
            if not await self.look(store):
                await self._sleep(RETRY_SECONDS)

    async def look(self, store: LeaseStore) -> bool:
        """Write what is wanted, if that is another than what is written; False if it failed."""
        wanted, written = self._marks.wanted(), self._marks.written
        if wanted == written:
            return True
        if wanted.items() <= written.items() and self._clock() - self._wrote_at < TIDY_SECONDS:
            return True
        try:
            lease = await store.read(_CALL_SECONDS)
            if lease is None or lease.holder != self._config.identity:
                return False
            noted = with_annotation(lease, NOTE, encode(wanted))
            await store.write(noted, noted.spec, timeout_seconds=_CALL_SECONDS)
        except KubeError as error:
            fields = {"error": str(error)}
            logger.warning("Cannot mark the pods being tried", extra={"fields": fields})
            return False
        self._marks.written = wanted
        self._wrote_at = self._clock()
        return True


async def in_own_thread(work: Work, kubeconfig: str) -> None:
    """Run work on a connection of its own in a thread of its own, until cancelled."""
    tasks: list[asyncio.Task[Any]] = []
    stopped = threading.Event()

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  for the type checker
        tasks.append(task)
        # A stop before this line finds no task, one after it does.
        if not stopped.is_set():
            await _connected(work, kubeconfig)

    def thread_main() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(main())

    thread = threading.Thread(target=thread_main, name="sentinel", daemon=True)
    thread.start()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        stopped.set()
        for task in tasks:
            with contextlib.suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(task.cancel)
        await asyncio.to_thread(thread.join, _JOIN_SECONDS)


async def _connected(work: Work, kubeconfig: str) -> None:
    """Do the work; without it nothing else stops, so whatever fails is tried again."""
    while True:
        try:
            credentials = await load_credentials(kubeconfig or None)
            # What it does is no part of the metrics, which belong to the other thread.
            async with ApiTransport(credentials, metrics=Metrics().kube) as transport:
                await work(transport)
        except (CredentialsError, OSError) as error:
            fields = {"error": str(error)}
            logger.warning("Pods being tried are not marked", extra={"fields": fields})
        except Exception:
            logger.exception("Pods being tried are not marked")
        await asyncio.sleep(_RECONNECT_SECONDS)
