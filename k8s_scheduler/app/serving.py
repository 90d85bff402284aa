"""Health, readiness and metrics of the daemon."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.app.options import AccessOptions, RunOptions
from k8s_scheduler.console.certificates import CertificateFiles, SelfSigned, trust_clients
from k8s_scheduler.console.gate import Gate, GateTimes, ReviewingGate
from k8s_scheduler.console.health import Check
from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.server import Certificate, Endpoints, serve
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.kube.lease.elector import Elector
from k8s_scheduler.kube.reviews import Reviewer
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics


class Served(Protocol):
    """What is shown of a graph, the daemon's or another one."""

    @property
    def elector(self) -> Elector | None:
        """Says whether we lead; None without leader election."""
        ...

    @property
    def pods(self) -> Informer[Pod]: ...

    def informers(self) -> Iterator[Informer[Any]]: ...

    def configuration_page(self) -> Mapping[str, Any]: ...


@asynccontextmanager
async def serving(
    options: RunOptions, graph: Served, metrics: Metrics, *, transport: Transport
) -> AsyncIterator[None]:
    """Serve while the body runs; `--secure-port 0` serves nothing."""
    if options.secure_port == 0:
        yield
        return
    certificate = _certificate(options)
    async with AsyncExitStack() as stack:
        gate = await _gate(options.access, transport, metrics, stack)
        server = await serve(
            endpoints_of(graph, metrics),
            certificate,
            bind_address=options.bind_address,
            port=options.secure_port,
            gate=gate,
        )
        stack.push_async_callback(server.close)
        yield


def _certificate(options: RunOptions) -> Certificate:
    """Return what to serve with: files, which are followed, or a certificate of our own."""
    client_ca_file = options.access.client_ca_file
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return CertificateFiles(
            options.tls_cert_file,
            options.tls_private_key_file,
            client_ca_file=client_ca_file,
            settings=options.tls,
        )
    made = SelfSigned(bind_address=options.bind_address, settings=options.tls)
    if client_ca_file is not None:
        trust_clients(made.context, client_ca_file)
    return made


async def _gate(
    access: AccessOptions, transport: Transport, metrics: Metrics, stack: AsyncExitStack
) -> Gate:
    """Return what decides which client sees what; reviews are asked for as the flags say."""

    async def asked_with(flag: str, kubeconfig: str | None) -> Transport:
        if kubeconfig is None:
            return transport
        try:
            credentials = await load_credentials(kubeconfig)
        except CredentialsError as error:
            raise CredentialsError(f"{flag}: {error}") from error
        return await stack.enter_async_context(ApiTransport(credentials, metrics=metrics.kube))

    reviewer = Reviewer(
        await asked_with("--authentication-kubeconfig", access.authentication_kubeconfig),
        await asked_with("--authorization-kubeconfig", access.authorization_kubeconfig),
    )
    return ReviewingGate(
        reviewer,
        paths=OpenPaths(access.always_allow_paths),
        times=GateTimes(
            token_seconds=access.token_ttl_seconds,
            allowed_seconds=access.authorized_ttl_seconds,
            denied_seconds=access.unauthorized_ttl_seconds,
        ),
    )


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
        configuration=graph.configuration_page,
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
    """Return all pods, of other schedulers too; none while another replica leads.

    Every replica knows the same pods: shown by all, sums over them would be too large.
    """
    if _role(graph) == "standby" or not graph.pods.synced.is_set():
        return ()
    return tuple(graph.pods.store.values())
