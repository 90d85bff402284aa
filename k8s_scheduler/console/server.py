"""Health and metrics over HTTPS, as kube-scheduler serves them on its secure port.

    /livez     the process turns: its checks pass
    /healthz   the same with what old probes expect
    /readyz    it could schedule: caches synced; with leader election the body says the role
    /metrics   every metric, Prometheus text
    /metrics/slis   what the checks above said, each time they were asked
    /configz   the configuration in force, since when, and what was refused
    /metrics/resources   what each pod asks for and is limited to; of the leader alone

`?verbose` lists all checks. Health is for every client; for all other paths the gate is asked, also
for those that are added later and those that do not exist (`gate.py`).

The server shares the event loop with everything else, so it must never hold it: checks only look
at state, metrics are written out in a thread, and the page of all pods is made and sent in pieces;
one scrape of each at a time.

    serve() ──► listening ──close()──► closed (no new connections, open ones get a moment)
"""

import asyncio
import functools
import logging
import os
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.console.connections import Connections
from k8s_scheduler.console.gate import Gate, HealthOnly
from k8s_scheduler.console.guarding import guarded_by
from k8s_scheduler.console.health import Check, health_page
from k8s_scheduler.console.listening import listen
from k8s_scheduler.console.pod_resources import resource_page
from k8s_scheduler.console.slis import HealthSlis
from k8s_scheduler.lib.slices import SliceMeter, silent_meter

logger = logging.getLogger(__name__)

_CLOSE_SECONDS: Final = 2.0
# How long a connection may ask for nothing, kube-scheduler's number. How many there may be at all
# is in connections.py.
_IDLE_SECONDS: Final = 90.0
# How long a page may take that is sent in pieces: a reader who stops reading holds up the next.
_SEND_SECONDS: Final = 60.0
_METRICS: Final = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}


class _OwnFaults(logging.Filter):
    """Leaves out requests that are not HTTP: a client could fill the log, and with tokens."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logger.addFilter(_OwnFaults())


class Certificate(Protocol):
    """Where the TLS context comes from: `certificates.SelfSigned` or `.CertificateFiles`."""

    @property
    def context(self) -> ssl.SSLContext: ...

    async def keep_current(self) -> None: ...


def _no_role() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """What is shown.

    `role` returns "leader" or "standby", or None without leader election. `pods` returns the pods
    whose resources are to be shown at this moment, in a collection that does not change.
    `configuration` returns the configuration in force, without secrets.
    """

    registry: CollectorRegistry
    livez: Sequence[Check] = ()
    healthz: Sequence[Check] = ()
    readyz: Sequence[Check] = ()
    role: Callable[[], str | None] = _no_role
    pods: Callable[[], Collection[Pod]] = tuple
    configuration: Callable[[], Mapping[str, Any]] = dict
    meter: SliceMeter = field(default_factory=silent_meter)


class ConsoleServer:
    """A server that listens; made by `serve`."""

    def __init__(
        self, runner: web.AppRunner, listening: socket.socket, certificate: Certificate
    ) -> None:
        if runner.server is None:
            raise RuntimeError("setup() comes before listening")
        self._runner = runner
        self._listening = listening
        self._connections = Connections(
            listening, runner.server, context=lambda: certificate.context
        )
        self._tasks = (
            asyncio.create_task(certificate.keep_current()),
            asyncio.create_task(self._connections.run()),
        )
        self.port = int(listening.getsockname()[1])

    async def close(self) -> None:
        """Stop listening, let open requests end, and be done. May be called twice."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        self._listening.close()
        await self._runner.cleanup()
        await self._connections.close()


async def serve(
    endpoints: Endpoints,
    certificate: Certificate,
    *,
    bind_address: str,
    port: int | None,
    gate: Gate | None = None,
) -> ConsoleServer:
    """Start serving; OSError names the address if it cannot be had.

    Without a gate nothing but health is shown.
    `port` None takes any free port. 0 is refused: `--secure-port 0` means not to serve at all,
    and that is decided before coming here.
    """
    if port == 0:
        raise ValueError("port 0 means that nothing is served; use None for any free port")
    runner = web.AppRunner(
        _application(endpoints, gate or HealthOnly()),
        access_log=None,
        logger=logger,
        shutdown_timeout=_CLOSE_SECONDS,
        keepalive_timeout=_IDLE_SECONDS,
    )
    await runner.setup()
    try:
        return ConsoleServer(runner, listen(bind_address, port or 0), certificate)
    except OSError as error:
        await runner.cleanup()
        host = f"[{bind_address}]" if ":" in bind_address else bind_address
        raise OSError(
            error.errno,
            f"cannot serve health and metrics on https://{host}:{port}: "
            f"{_reason(error)}; "
            "change --bind-address or --secure-port, or turn it off with --secure-port 0",
        ) from error


def _reason(error: OSError) -> str:
    # The numbers of a resolver (an unknown zone of an IPv6 address) are below 0, and no errno.
    known = error.errno is not None and error.errno >= 0
    return os.strerror(error.errno or 0) if known else error.strerror or str(error)


def _application(endpoints: Endpoints, gate: Gate) -> web.Application:
    application = web.Application(middlewares=[guarded_by(gate)])
    pages, slis, get = _Pages(endpoints), HealthSlis(), application.router.add_get
    for name, checks, role in (
        ("livez", endpoints.livez, _no_role),
        ("healthz", endpoints.healthz, _no_role),
        ("readyz", endpoints.readyz, endpoints.role),
    ):
        get(f"/{name}", functools.partial(_health, name, slis.watch(name, checks), role))
    get("/configz", pages.configuration)
    get("/metrics", functools.partial(pages.metrics, endpoints.registry))
    get("/metrics/slis", functools.partial(pages.metrics, slis.registry))
    get("/metrics/resources", pages.resources, allow_head=False)
    return application


async def _health(
    name: str, checks: Sequence[Check], role: Callable[[], str | None], request: web.Request
) -> web.Response:
    page = health_page(name, checks, verbose="verbose" in request.query, role=role())
    return web.Response(
        text=page.text,
        status=page.status,
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )


class _Pages:
    """Every page but health; of metrics, one scrape of each kind at a time."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._scrape = asyncio.Lock()
        self._resources = asyncio.Lock()

    async def configuration(self, _request: web.Request) -> web.Response:
        found = self._endpoints.configuration()
        return web.json_response(found, headers={"Cache-Control": "no-store"})

    async def metrics(self, registry: CollectorRegistry, _request: web.Request) -> web.Response:
        async with self._scrape:
            body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers=_METRICS)

    async def resources(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=_METRICS)
        async with self._resources:
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await response.prepare(request)
                    pods = self._endpoints.pods()
                    async for piece in resource_page(pods, self._endpoints.meter):
                        await response.write(piece)
            except (ConnectionError, TimeoutError):
                # The reader left or stopped reading. A page that ends here must not look whole.
                if request.transport is not None:
                    request.transport.abort()
        return response
