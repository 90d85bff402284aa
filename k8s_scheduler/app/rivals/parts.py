"""Joins what looks for rivals to the rest of a running graph."""

from collections.abc import Callable, Collection
from typing import Final

from k8s_scheduler.app.configuration.reload_parts import ReloadParts, own_pod
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.environment import Environment
from k8s_scheduler.app.rivals.news import RivalNews
from k8s_scheduler.app.rivals.rivals import CALL_SECONDS, Ourselves, RivalWatch
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.lease.lease import LeaseConfig
from k8s_scheduler.obs.metrics import Metrics

# Of the time until a Lease that was just taken has to be renewed: meanwhile it is not.
_SHARE: Final = 0.3


def rival_watch(
    options: RunOptions,
    transport: Transport,
    *,
    lease: LeaseConfig | None,
    names: Callable[[], Collection[str]],
    reload: ReloadParts,
    recorder: EventRecorder,
    metrics: Metrics,
    around: Environment,
) -> RivalWatch:
    ourselves = Ourselves(
        lease="" if lease is None else f"{lease.namespace}/{lease.name}",
        names=names,
        settings=lambda: reload.status.in_force.extras.rivals,
    )
    news = RivalNews(
        recorder, pod=own_pod(options, transport), metrics=metrics.kube, clock=around.clock
    )
    seconds = CALL_SECONDS if lease is None else _SHARE * lease.renew_deadline_seconds
    return RivalWatch(
        transport,
        ourselves,
        news,
        clock=around.boot_clock,
        sleep=around.sleep,
        call_seconds=min(CALL_SECONDS, seconds),
    )
