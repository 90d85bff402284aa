"""A process that talks to the API server: event loop, signals, credentials, connection, exit code.

`run` and `shadow` differ in what they do once they are connected. Everything around that is here,
so that both stop, refuse a user's mistake and end with an exit code in the same way.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from k8s_scheduler.app.process.event_loop import new_event_loop
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.app.process.gc_pauses import watched_collector
from k8s_scheduler.console.certificates import CertificateError
from k8s_scheduler.core.setup import ProfileError
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.obs.redaction import redact

logger = logging.getLogger(__name__)

_MISTAKES: Final = (OSError, ProfileError, CertificateError)


@dataclass(frozen=True, slots=True)
class Connected:
    """What a process has before its own parts are made. `stop` is set by SIGTERM and SIGINT."""

    transport: ApiTransport
    # The address of the API server.
    server: str
    metrics: Metrics
    stop: asyncio.Event


Main: TypeAlias = Callable[[Connected], Awaitable[int]]


def run_process(main: Main, kubeconfig: str, *, ambient: bool = False) -> int:
    """Run `main` on a loop of its own and return the exit code; what is a mistake is told.

    With `ambient`, an empty `kubeconfig` also means the user's own, as kubectl finds it.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_connected(main, kubeconfig, ambient=ambient))


async def _connected(main: Main, kubeconfig: str, *, ambient: bool) -> int:
    stop = _stop_signal()
    try:
        credentials = await load_credentials(kubeconfig or None, ambient=ambient)
        metrics = Metrics().with_process()
        async with ApiTransport(credentials, metrics=metrics.kube) as transport:
            with watched_collector(metrics.gc_pause_seconds):
                return await main(Connected(transport, credentials.server, metrics, stop))
    except CredentialsError as error:
        return _refuse(error, ExitCode.NO_CREDENTIALS)
    except _MISTAKES as error:
        return _refuse(error, ExitCode.USAGE)


def _refuse(error: Exception, code: ExitCode) -> int:
    """Report a user's mistake without a traceback."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    sys.stderr.write(f"{redact(str(text))}\n")
    return code


def _stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; a second signal ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        logger.info("Stopping", extra={"fields": {"signal": number.name}})
        stop.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
    return stop
