"""What belongs to the configuration in a running graph: its origin, its status, its events."""

from collections.abc import Callable
from dataclasses import dataclass

from k8s_scheduler.api.config_maps import ConfigMap
from k8s_scheduler.app.configuration.events import ConfigEvents
from k8s_scheduler.app.configuration.last_good import LastGoodKeeper
from k8s_scheduler.app.configuration.offered import hash_of
from k8s_scheduler.app.configuration.origin import ConfigMapOrigin, FileOrigin, Origin
from k8s_scheduler.app.configuration.status import ConfigStatus
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.kube.config_maps import one_config_map
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics


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
