"""What belongs to the configuration in a running graph: its origin, its status, its events.

A mounted file is read again every two seconds and compared by content: names, times and inodes say
nothing where a ConfigMap is mounted, because the kubelet swaps a symbolic link. A ConfigMap that is
named to us is watched. Either way what is offered is a text, or why there is none.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.app.configuration.events import ConfigEvents
from k8s_scheduler.app.configuration.last_good import LastGoodKeeper
from k8s_scheduler.app.configuration.offered import Offer, hash_of, offer_of, read_file
from k8s_scheduler.app.configuration.status import ConfigStatus
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.kube.config_maps import one_config_map
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics

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


@dataclass(frozen=True, slots=True)
class ReloadParts:
    """Ready to be started; `informer` only where a ConfigMap is watched."""

    status: ConfigStatus
    keeper: LastGoodKeeper
    events: ConfigEvents
    origin: Origin | None
    informer: Informer[ConfigMap] | None


def own_pod(options: RunOptions, transport: Transport) -> OwnPod | None:
    flags = options.configuration_flags
    if not flags.pod_name or not flags.pod_namespace:
        return None
    return OwnPod(transport, flags.pod_namespace, flags.pod_name)


def reload_parts(
    options: RunOptions,
    transport: Transport,
    metrics: Metrics,
    *,
    recorder: EventRecorder,
    meter: SliceMeter,
    may_write: Callable[[], bool],
    write_seconds: float,
) -> ReloadParts:
    flags = options.configuration_flags
    informer = None
    origin: Origin | None = None
    if flags.config_map is not None:
        resource = one_config_map(flags.config_map)
        informer = Informer(transport, resource, metrics=metrics.kube, meter=meter)
        origin = ConfigMapOrigin(flags.config_map, informer)
    elif flags.config_file is not None:
        origin = FileOrigin(flags.config_file)
    return ReloadParts(
        status=ConfigStatus(
            options.configuration,
            hash_of(options.configuration_text or ""),
            metrics=metrics.config,
            refused=options.configuration_refused,
        ),
        keeper=LastGoodKeeper(
            transport,
            may_write=may_write,
            call_timeout_seconds=write_seconds,
            metrics=metrics.config,
        ),
        events=ConfigEvents(
            transport,
            recorder,
            file=flags.config_file,
            pod=own_pod(options, transport),
        ),
        origin=origin,
        informer=informer,
    )
