"""Service accounts with chosen rights, and the daemon's own code run under them in this process.

Many daemons side by side cost as little as one here: they share the interpreter, and what each has
to say is told apart by the name of its account.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.app.lifecycle import Daemon
from k8s_scheduler.app.options import ConfigurationFlags, RunOptions
from k8s_scheduler.app.rights.manifest import Owner, rights_manifest
from k8s_scheduler.app.rights.table import Role, needs_of, roles_of
from k8s_scheduler.app.serving import serving
from k8s_scheduler.app.wiring import wire
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.http.transport import ApiTransport
from k8s_scheduler.obs.metrics import Metrics
from testbed.installation import create_objects, wait_granted
from testbed.sandbox import Sandbox

_numbers = itertools.count()


def configuration_text(scheduler_name: str, namespace: str, *, elects: bool = False) -> str:
    """Return a configuration in which everything happens soon."""
    return f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
leaderElection:
  leaderElect: {str(elects).lower()}
  resourceName: {scheduler_name}
  resourceNamespace: {namespace}
  leaseDuration: 5s
  renewDeadline: 4s
  retryPeriod: 500ms
profiles:
- schedulerName: {scheduler_name}
"""


class Account:
    """A service account in the sandbox's namespace, with these roles and no other rights."""

    def __init__(self, sandbox: Sandbox, name: str, roles: Iterable[Role]) -> None:
        self.name = name
        self.user = f"system:serviceaccount:{sandbox.namespace}:{name}"
        self._sandbox = sandbox
        # Roles for the whole cluster have names that nobody else uses.
        manifest = rights_manifest(tuple(roles), Owner(name, sandbox.namespace))
        self._objects = list(yaml.safe_load_all(manifest))
        create_objects(sandbox.bed, self._objects)
        for document in self._objects:
            if document["kind"].startswith("Cluster"):
                plural = f"{document['kind'].lower()}s"
                path = f"/apis/rbac.authorization.k8s.io/v1/{plural}/{name}"
                sandbox.remember(path)

    def wait_granted(self) -> None:
        """Wait until the API server goes by the roles; a new one takes it a moment."""
        wait_granted(self._sandbox.bed, self._objects)

    def log_in(self) -> Path:
        """Write a kubeconfig with a token of the account."""
        bed = self._sandbox.bed
        token = bed.token_for_service_account(self._sandbox.namespace, self.name)
        return bed.kubeconfig_for_token(bed.state_dir / f"{self.name}.kubeconfig", token)


def options_for(
    folder: Path,
    text: str,
    *,
    port: int = 0,
    flags: ConfigurationFlags = ConfigurationFlags(),  # noqa: B008  frozen
) -> RunOptions:
    """Return what `run --config` would make of a configuration."""
    file = folder / f"config-{next(_numbers)}.yaml"
    file.write_text(text)
    configuration = load_configuration(file, known_plugins())
    return RunOptions(
        configuration=configuration,
        configuration_flags=flags,
        configuration_text=text,
        bind_address="127.0.0.1",
        secure_port=port,
    )


def roles_for(options: RunOptions) -> tuple[Role, ...]:
    """Return exactly the roles that the options need."""
    needs = needs_of(
        options.configuration,
        serves=options.secure_port != 0,
        config_map=options.configuration_flags.config_map,
        last_good=options.configuration_flags.last_good,
    )
    return roles_of(needs)


class SpoilsBindings:
    """A transport on which no Binding ends well: each is `refused`, or its answer is `lost`."""

    def __init__(self, transport: ApiTransport, how: str) -> None:
        self._transport = transport
        self._how = how
        self.stream = transport.stream

    async def request(self, method: str, path: str, **rest):
        if path.endswith("/binding") and self._how == "refused":
            return Response(422, b"{}")
        response = await self._transport.request(method, path, **rest)
        if path.endswith("/binding"):
            raise OutcomeUnknown("lost on the way")
        return response


@asynccontextmanager
async def daemon_of(
    options: RunOptions, kubeconfig: Path, *, bindings_are: str = ""
) -> AsyncIterator[None]:
    """Run the daemon for as long as the body; it ends cleanly."""
    metrics = Metrics()
    credentials = await load_credentials(str(kubeconfig))
    async with ApiTransport(credentials, metrics=metrics.kube) as transport:
        spoilt = SpoilsBindings(transport, bindings_are) if bindings_are else transport
        graph = wire(options, spoilt, metrics)
        async with serving(options, graph, metrics, transport=transport):
            stop = asyncio.Event()
            daemon = Daemon(graph, options)
            daemon.follow_configuration()
            running = asyncio.create_task(daemon.run(stop))
            try:
                yield
            finally:
                running.cancel()
                await asyncio.wait([running])


class Ear(logging.Handler):
    """Hears what the daemons say, with the fields."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {getattr(record, 'fields', '')}")

    def heard(self, text: str, user: str) -> bool:
        """Whether a text was said about an account."""
        return any(text in line and user in line for line in self.lines)
