"""Health, readiness and metrics of the daemon."""

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.console.certificates import CertificateFiles, SelfSigned
from k8s_scheduler.console.health import Check
from k8s_scheduler.console.server import Endpoints, serve
from k8s_scheduler.kube.informer import Informer
from k8s_scheduler.kube.leader import Elector
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics


class Served(Protocol):
    """What is shown of a graph, the daemon's or another one."""

    @property
    def elector(self) -> Elector | None:
        """Who says whether we lead; None where nobody has to."""
        ...

    @property
    def pods(self) -> Informer[Pod]:
        """All pods."""
        ...

    def informers(self) -> Iterator[Informer[Any]]:
        """Yield every informer."""
        ...


@asynccontextmanager
async def serving(options: RunOptions, graph: Served, metrics: Metrics) -> AsyncIterator[None]:
    """Serve while the body runs; `--secure-port 0` serves nothing."""
    if options.secure_port == 0:
        yield
        return
    certificate = (
        CertificateFiles(options.tls_cert_file, options.tls_private_key_file)
        if options.tls_cert_file is not None and options.tls_private_key_file is not None
        else SelfSigned(bind_address=options.bind_address)
    )
    server = await serve(
        endpoints_of(graph, metrics),
        certificate,
        bind_address=options.bind_address,
        port=options.secure_port,
    )
    try:
        yield
    finally:
        await server.close()


def endpoints_of(graph: Served, metrics: Metrics) -> Endpoints:
    """Return what is shown of the daemon; a standby with full caches is ready."""
    ping = Check("ping", lambda: None)
    synced = Check("sched-handler-sync", lambda: _sync_problem(graph))
    return Endpoints(
        registry=metrics.registry,
        livez=(ping,),
        healthz=(ping,),
        readyz=(ping, synced),
        role=lambda: _role(graph),
        pods=lambda: _pods(graph),
        meter=SliceMeter(metrics.report_slice),
    )


def _sync_problem(graph: Served) -> str | None:
    missing = [i.resource.full_name for i in graph.informers() if not i.synced.is_set()]
    if not missing:
        return None
    return f"handlers are not fully synchronized: {', '.join(missing)}"


def _role(graph: Served) -> str | None:
    if graph.elector is None:
        return None
    return "leader" if graph.elector.is_leading else "standby"


def _pods(graph: Served) -> Collection[Pod]:
    """Return all pods, of other schedulers too; none while somebody else leads.

    Every replica knows the same pods: shown by all, sums over them would be too large.
    """
    if _role(graph) == "standby" or not graph.pods.synced.is_set():
        return ()
    return tuple(graph.pods.store.values())
