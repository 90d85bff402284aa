"""Keeps the configuration in force in a ConfigMap, so that a restart survives a bad file.

    keep(where, text) ──▶ owed ── may write? ──▶ PATCH ──▶ saved
                           ▲                       │ failed
                           └───── after a while ───┘

Of several replicas only the leader writes. Whether it leads is checked again when the PATCH is
about to be sent, because the ConfigMap is read before, and the PATCH may take no longer than any
other write of a leader. It names the version that was read, so that one which arrives after the
next leader's changes nothing; a process that stops waits for its end before the Lease is released.
The ConfigMap has to exist, so that the right to write can be limited to its name. No decision waits
for it: a configuration that can't be saved is in force all the same; a log line and a metric say
so.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.offered import USUAL_KEY, hash_of
from k8s_scheduler.kube.config_maps import read_config_map, write_config_map
from k8s_scheduler.kube.errors import KubeError, NotFound
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.permissions import missing_permission
from k8s_scheduler.kube.waiting import Sleep, wait_within
from k8s_scheduler.obs.config_metrics import ConfigMetrics

logger = logging.getLogger(__name__)

HASH: Final = "k8s-scheduler.io/config-hash"
_RETRY_SECONDS: Final = 10.0
_ROLE_SECONDS: Final = 2.0


class LastGoodKeeper:
    """Writes what it was given last, when it may."""

    def __init__(
        self,
        transport: Transport,
        *,
        may_write: Callable[[], bool],
        call_timeout_seconds: float,
        metrics: ConfigMetrics,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._may_write = may_write
        self._caller = Caller(
            transport=transport, may_write=self._may_begin, timeout_seconds=call_timeout_seconds
        )
        self._saved = metrics.last_good_saved
        self._sleep = sleep
        self._owed: tuple[ConfigMapName, str] | None = None
        self._wake = asyncio.Event()
        self._is_ending = False
        # Set while no PATCH is under way.
        self._idle = asyncio.Event()
        self._idle.set()

    def keep(self, where: ConfigMapName | None, text: str) -> None:
        """Save a text there; None: nowhere any more."""
        self._owed = None if where is None else (where, text)
        self._saved.set(0)
        self._wake.set()

    async def drain(self, timeout_seconds: float) -> int:
        """Begin no more, and wait for the PATCH under way; return how many have no end yet."""
        self._is_ending = True
        return 0 if await wait_within(self._idle, timeout_seconds, sleep=self._sleep) else 1

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (owed := self._owed) is not None:
                if not self._may_begin():
                    await self._sleep(_ROLE_SECONDS)
                elif await self._write(*owed):
                    if self._owed is owed:
                        self._owed = None
                        self._saved.set(1)
                else:
                    await self._sleep(_RETRY_SECONDS)

    async def _write(self, where: ConfigMapName, text: str) -> bool:
        name = hash_of(text)
        try:
            found = await read_config_map(self._transport, where)
            if (found.data or {}).get(USUAL_KEY) != text:
                await self._patch(where, text, version=found.metadata.resource_version)
        except KubeError as error:
            if self._is_ending:
                # The next one to lead saves what is in force with it.
                return False
            missing = missing_permission(error, "configmaps", namespace=where.namespace)
            fields = {
                "config_map": str(where),
                "error": str(error),
                "advice": _advice(error, is_right_missing=bool(missing)),
            }
            said = "The last good configuration is not saved"
            logger.warning(f"{said}: {missing}" if missing else said, extra={"fields": fields})
            return False
        fields = {"config_map": str(where), "hash": name}
        logger.info("The last good configuration is saved", extra={"fields": fields})
        return True

    async def _patch(self, where: ConfigMapName, text: str, *, version: str) -> None:
        self._idle.clear()
        try:
            await write_config_map(
                self._caller, where, {USUAL_KEY: text}, {HASH: hash_of(text)}, version=version
            )
        finally:
            self._idle.set()

    def _may_begin(self) -> bool:
        return not self._is_ending and self._may_write()


def _advice(error: KubeError, *, is_right_missing: bool) -> str:
    if isinstance(error, NotFound):
        return "create it, empty"
    return "allow get and patch on it by a Role" if is_right_missing else "it is tried again"
