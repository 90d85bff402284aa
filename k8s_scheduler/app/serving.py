"""Health, readiness and metrics of the daemon."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.wiring import Graph
from k8s_scheduler.console.certificates import CertificateFiles, SelfSigned
from k8s_scheduler.console.health import Check
from k8s_scheduler.console.server import Endpoints, serve
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics


@asynccontextmanager
async def serving(options: RunOptions, graph: Graph, metrics: Metrics) -> AsyncIterator[None]:
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


def endpoints_of(graph: Graph, metrics: Metrics) -> Endpoints:
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
        configuration=graph.reload.status.page,
        meter=SliceMeter(metrics.report_slice),
    )


def _sync_problem(graph: Graph) -> str | None:
    missing = [i.resource.full_name for i in graph.informers() if not i.synced.is_set()]
    if not missing:
        return None
    return f"handlers are not fully synchronized: {', '.join(missing)}"


def _role(graph: Graph) -> str | None:
    if graph.elector is None:
        return None
    return "leader" if graph.elector.is_leading else "standby"


def _pods(graph: Graph) -> Collection[Pod]:
    """Return all pods, of other schedulers too; none while somebody else leads.

    Every replica knows the same pods: shown by all, sums over them would be too large.
    """
    if _role(graph) == "standby" or not graph.pods.synced.is_set():
        return ()
    return tuple(graph.pods.store.values())
