"""Where the text of the configuration comes from, and how one learns that it has changed.

A mounted file is read again every two seconds and compared by content: names, times and inodes say
nothing where a ConfigMap is mounted, because the kubelet swaps a symbolic link. A ConfigMap that is
named to us is watched. Either way what is offered is a text, or why there is none.
"""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.app.configuration.offered import Offer, offer_of, read_file
from k8s_scheduler.kube.watch.informer import Informer

LOOK_SECONDS: Final = 2.0


class Origin(Protocol):
    """Somewhere a configuration is kept."""

    async def changed(self) -> None:
        """Return when there may be something new."""
        ...

    async def look(self) -> Offer: ...


class FileOrigin:
    """A file, as a rule of a ConfigMap that is mounted."""

    def __init__(self, path: Path, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._path = path
        self._look_seconds = look_seconds

    async def changed(self) -> None:
        """Return after a while: only a look will tell."""
        await asyncio.sleep(self._look_seconds)

    async def look(self) -> Offer:
        """Read the file; disks may be slow."""
        return await asyncio.to_thread(read_file, self._path)


class ConfigMapOrigin:
    """A ConfigMap, by the informer that watches it and nothing else."""

    def __init__(self, wanted: ConfigMapName, informer: Informer[ConfigMap]) -> None:
        self._wanted = wanted
        self._informer = informer
        self._news = asyncio.Event()
        informer.add_handler(self._told)

    def _told(self, _old: ConfigMap | None, _new: ConfigMap | None) -> None:
        self._news.set()

    async def changed(self) -> None:
        await self._news.wait()
        self._news.clear()

    async def look(self) -> Offer:
        """Return what the watch has shown last, from its first list on."""
        await self._informer.synced.wait()
        found = self._informer.store.get(f"{self._wanted.namespace}/{self._wanted.name}")
        return offer_of(self._wanted, found)
