"""A control plane of one's own: started, used, stopped, and no trace left.

    new ──open──► open ──close──► closed        (`with Bed(...) as bed:` does both)
                   │ ▲
          stop, kill │ start, restart            single components; data and ports stay
                   │ └ detach ──► runs on without us until `python -m testbed down`

Three nets catch a bed whose owner does not come to close it: the kernel kills the processes with
the owner (processes.py), the guardian then removes the files (guardian.py), and failing both, the
next bed or `down` finds the record of a dead owner (registry.py).

Order matters at both ends: etcd, API server, then its clients; clients, API server, then etcd.
"""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from testbed import audit, etcd, health, pki
from testbed.binaries import Binary, Toolset, find_tools
from testbed.client import Client
from testbed.commands import Plan, arguments, needed_ports
from testbed.component import READY_SECONDS, Component
from testbed.crew import Crew
from testbed.errors import ApiError, TestbedError
from testbed.kubeconfig import Access, write_certificate_kubeconfig, write_token_kubeconfig
from testbed.layout import Layout
from testbed.options import ALWAYS, CONTROLLER_MANAGER, ETCD, BedOptions
from testbed.ports import choose_ports
from testbed.processes import myself
from testbed.provision import provision
from testbed.registry import Record, Registry
from testbed.teardown import GRACE_SECONDS, stop_order

DETACHED = "up"  # the one name of a bed that outlives its command


@dataclass(frozen=True, slots=True)
class _Site:
    """What exists only while a bed is open."""

    plan: Plan
    tools: Toolset
    crew: Crew
    components: dict[str, Component]
    access: Access
    client: Client


class Bed:
    """etcd, an API server and what else was asked for, on loopback, in one state folder."""

    def __init__(
        self,
        options: BedOptions | None = None,
        *,
        name: str | None = None,
        detachable: bool = False,
        registry: Registry | None = None,
        find: Callable[[Collection[str]], Toolset] = find_tools,
    ) -> None:
        self.options = options or BedOptions()
        self.name = name or f"bed-{uuid.uuid4().hex[:12]}"
        self._detachable = detachable
        self._registry = registry or Registry()
        self._find = find
        self._open: _Site | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether something runs that `close` would stop."""
        return self._open is not None

    # -- the whole bed ---------------------------------------------------------------------

    def open(self) -> None:
        """Start everything and wait until it is ready. What fails is taken down again."""
        if self._open is not None:
            raise TestbedError(f"bed {self.name} is open already")
        tools = self._find(self.options.all_components)
        self._registry.discard_orphans()
        record = self._claim()
        try:
            self._open = self._settle(record, tools)
            self._start_all()
        except BaseException:
            self.close()
            self._registry.discard(record)
            raise

    def close(self) -> None:
        """Stop everything and remove every file. Safe to repeat."""
        site, self._open = self._open, None
        if site is None:
            return
        try:
            for group in stop_order(tuple(site.components)):
                site.crew.end(group, grace_seconds=GRACE_SECONDS)
        finally:
            site.client.close()
            site.crew.discard()

    def detach(self) -> None:
        """Let a detachable bed run on after this process; this object is done with it."""
        if not self._detachable:
            raise TestbedError("this bed dies with its owner; make it with detachable=True")
        self._site.crew.release()
        self._site.client.close()
        self._open = None

    def _claim(self) -> Record:
        with self._registry.locked():
            taken = {port for known in self._registry.load_all() for port in known.ports.values()}
            names = needed_ports(self.options)
            record = Record(
                name=self.name,
                state_dir=self.options.state_dir or self._registry.root / self.name,
                owner=myself(),
                ports=dict(zip(names, choose_ports(len(names), taken=taken), strict=True)),
            )
            self._registry.claim(record)
        return record

    def _settle(self, record: Record, tools: Toolset) -> _Site:
        layout = Layout(record.state_dir)
        plan = Plan(layout=layout, ports=record.ports, options=self.options)
        access = provision(plan, stages=tools.stages)
        components = {
            name: Component(
                name,
                [str(tools.binaries[name].path), *arguments(name, plan)],
                layout=layout,
                owned=not self._detachable,
            )
            for name in self.options.all_components
        }
        crew = Crew(record, registry=self._registry, components=components)
        crew.call_guardian()
        return _Site(
            plan=plan,
            tools=tools,
            crew=crew,
            components=components,
            access=access,
            client=Client.for_access(access),
        )

    def _start_all(self) -> None:
        for name in ALWAYS:
            self.start(name)
        clients = [name for name in self.options.all_components if name not in ALWAYS]
        for name in clients:  # these do not need each other, so they start side by side
            self._site.crew.start(name)
        for name in clients:
            self.wait_ready(name)

    # -- single components -----------------------------------------------------------------

    def start(self, component: str) -> None:
        """Start a component that is down, with its old data and port; wait until it is ready."""
        self._site.crew.start(component)
        self.wait_ready(component)

    def stop(self, component: str, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """End a component as an administrator would: SIGTERM, then SIGKILL if it takes too long."""
        self._site.crew.end([component], grace_seconds=grace_seconds)

    def kill(self, component: str) -> None:
        """End a component as a crash would: SIGKILL."""
        self._site.crew.kill(component)

    def restart(self, component: str) -> None:
        """Stop and start a component."""
        self.stop(component)
        self.start(component)

    def wait_ready(self, component: str, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until a component is ready; ComponentError with its last log lines if not."""
        site = self._site
        site.components[component].wait_ready(
            lambda: self._complaint(component), timeout_seconds=timeout_seconds
        )

    def pid(self, component: str) -> int | None:
        """Return the pid of a component; None while it is down."""
        return self._site.crew.pid(component)

    def log(self, component: str) -> Path:
        """Return the log file of a component."""
        return self._site.plan.layout.log(component)

    def binary(self, component: str) -> Binary:
        """Return which program a component is."""
        return self._site.tools.binaries[component]

    # -- programs of ours ------------------------------------------------------------------

    def add_program(self, name: str, command: Sequence[str]) -> Component:
        """Make a program part of the bed: recorded, stopped before the API server, removed."""
        site = self._site
        if name in site.components:
            raise TestbedError(f"bed {self.name} has a {name} already")
        program = Component(name, command, layout=site.plan.layout, owned=not self._detachable)
        site.components[name] = program
        return program

    def start_program(self, name: str) -> None:
        """Start a program that was added; it is not ready yet."""
        self._site.crew.start(name)

    def wait_program(self, name: str, *, timeout_seconds: float) -> int:
        """Wait for a program to end by itself; return its exit code."""
        return self._site.crew.wait(name, timeout_seconds=timeout_seconds)

    def _complaint(self, component: str) -> str:
        trouble = health.complaint(component, self._site.plan)
        if trouble or component != CONTROLLER_MANAGER:
            return trouble
        # Its health says nothing of its controllers; the default service account does.
        try:
            self.client.get("/api/v1/namespaces/default/serviceaccounts/default")
        except (ApiError, OSError) as error:
            return str(error)
        return ""

    # -- using it --------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """A client that may do everything."""
        return self._site.client

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig that may do everything."""
        return self._site.plan.layout.admin_kubeconfig

    @property
    def state_dir(self) -> Path:
        """The folder that holds all files of the bed."""
        return self._site.plan.layout.root

    def url(self, component: str) -> str:
        """Return where a component listens."""
        return self._site.plan.url(component)

    def token_for_service_account(
        self, namespace: str, name: str, *, lifetime_seconds: int = 3600
    ) -> str:
        """Return a fresh token of a service account (TokenRequest)."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime_seconds},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.client.create(path, request)["status"]["token"])

    def kubeconfig_for_token(self, path: Path, token: str) -> Path:
        """Write a kubeconfig for this API server that authenticates with the token."""
        access = self._site.access
        return write_token_kubeconfig(
            path, Access(server=access.server, ca_pem=access.ca_pem, token=token)
        )

    def kubeconfig_for_certificate(self, path: Path, user: str) -> Path:
        """Write a kubeconfig that authenticates as a user by client certificate."""
        folder = self._site.plan.layout.pki
        certificate_pem, key_pem = pki.client_pems(folder, user, now=datetime.now(tz=UTC))
        return write_certificate_kubeconfig(
            path,
            server=self._site.access.server,
            ca_pem=self._site.access.ca_pem,
            certificate_pem=certificate_pem,
            key_pem=key_pem,
        )

    def audit_entries(self) -> Iterator[audit.AuditEntry]:
        """Yield what the API server has audited so far (with `audit=True`)."""
        if not self.options.audit:
            raise TestbedError("this bed keeps no audit log; ask for it with audit=True")
        return audit.read_log(self._site.plan.layout.audit_log)

    def compact_etcd(self) -> int:
        """Make etcd forget all history up to now; return the revision.

        A watch that resumes from before gets 410 Gone once the API server's own watch cache does
        not reach back either: after a restart of the API server that is certain.
        """
        with Client(self.url(ETCD)) as client:
            revision = etcd.current_revision(client)
            etcd.compact(client, revision)
        return revision

    @property
    def _site(self) -> _Site:
        if self._open is None:
            raise TestbedError(f"bed {self.name} is not open")
        return self._open
