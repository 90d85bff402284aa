"""A cluster that can be had again: filled once, kept as etcd's files, restored for every run.

    closed ──open──► filling ──snapshot──► kept ──restore──► running
                                             ▲                  │
                                             └──── restore ─────┘   (close from anywhere)

What restores alike runs alike: the same objects under the same versions, an etcd without history,
an API server that has just started and has read what schedulers list, an audit log that is empty.
A world can be kept in several states, each under a name: restore one, fill in more, keep that too.
Keys, ports and tokens are the bed's and outlive all of it, so a kubeconfig is good for every run.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from testbed.bed import Bed
from testbed.bench.account import POLICY
from testbed.client import Object
from testbed.errors import ApiError, TestbedError
from testbed.installation import NAMESPACE, SERVICE_ACCOUNT, install, log_in
from testbed.layout import Layout
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD, AuditMode, BedOptions
from testbed.waiting import eventually

_THREADS = 8
_WAIT_SECONDS = 30.0
_SETTLE_SECONDS = 600.0
_NOT_READY = "node.kubernetes.io/not-ready"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
# What kube-scheduler reads and this scheduler does not, and what its server asks about visitors.
_UPSTREAM_ROLES = (
    ("clusterrolebindings", "ClusterRole", "system:kube-scheduler"),
    ("clusterrolebindings", "ClusterRole", "system:volume-scheduler"),
    ("clusterrolebindings", "ClusterRole", "system:auth-delegator"),
    (
        f"namespaces/{NAMESPACE}/rolebindings",
        "Role",
        "extension-apiserver-authentication-reader",
    ),
)
# Of these the server drops the status that they are created with.
_STATUS_APART = frozenset({"PersistentVolume", "PersistentVolumeClaim", "Pod"})
# Large lists, read once after each start: the server's cache of them is then complete.
_READ_AHEAD = ("/api/v1/nodes", "/api/v1/pods")


class World:
    """One bed and the cluster in it, as often as it is wanted."""

    def __init__(
        self,
        *,
        components: Sequence[str] = (),
        policy: Mapping[str, Any] = POLICY,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
        make_bed: Callable[[BedOptions], Bed] = Bed,
    ) -> None:
        """Prepare it; `components` run besides etcd and the API server, `policy` is audited."""
        self._options = BedOptions(
            components=components,
            audit=True,
            audit_policy=policy,
            audit_mode=AuditMode.BLOCKING,
            service_accounts=True,
            extra_flags=extra_flags or {},
        )
        self.bed = make_bed(self._options)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start an empty cluster with the rights and the login that every contestant gets."""
        self.bed.open()
        try:
            for namespace in (NAMESPACE, "default"):
                self._wait_for(f"/api/v1/namespaces/{namespace}")
            self._make_account("default")
            install(self.bed)
            self._grant_upstream_roles()
            log_in(self.bed, self.kubeconfig)
        except BaseException:
            self.close()
            raise

    def _make_account(self, namespace: str) -> None:
        """Make the account whose token every pod of a namespace gets, as its controller does."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        try:
            self.bed.client.create(path, account)
        except ApiError as error:
            if error.status != 409:  # the controller manager was first
                raise

    def close(self) -> None:
        """Stop everything and remove every file. Safe to repeat."""
        self.bed.close()

    @property
    def kubeconfig(self) -> Path:
        """The login of the scheduler's own service account, the same for every contestant."""
        return self.bed.state_dir / "contestant.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """What the API server has written down since the last `restore`."""
        return self._layout.audit_log

    def fill(self, objects: Iterable[Object], *, threads: int = _THREADS) -> None:
        """Create objects of any kind, as many at a time as `threads`; return when all are there.

        Their order is kept only between calls: what needs another comes in a later one.
        """
        with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="fill") as pool:
            for _ in pool.map(self._create, objects):
                pass

    def snapshot(self, name: str = "") -> None:
        """Keep the cluster as it is now; everything is down afterwards, until `restore`."""
        kept = self._kept(name)
        if kept.exists():
            raise TestbedError("this world has a snapshot already; restore() brings it back")
        self._settle()
        for component in reversed(self._options.all_components):
            if component != ETCD:
                self.bed.stop(component)
        # How it was filled is of no interest, and would be thrown away in the middle of a run.
        self.bed.compact_etcd()
        self.bed.stop(ETCD)
        shutil.copytree(self._layout.etcd_data, kept)

    def restore(self, name: str = "") -> None:
        """Bring the kept cluster back, whatever has become of it; the audit log begins anew.

        Contestants have to be down. Nothing of the old cluster is wanted, so nobody waits for it to
        end well.
        """
        layout, kept = self._layout, self._kept(name)
        if not kept.exists():
            raise TestbedError("there is nothing to restore; snapshot() comes first")
        for component in reversed(self._options.all_components):
            self.bed.kill(component)
        shutil.rmtree(layout.etcd_data)
        shutil.copytree(kept, layout.etcd_data)
        layout.audit_log.unlink(missing_ok=True)
        for component in self._options.all_components:
            self.bed.start(component)
            if component == API_SERVER:
                for path in _READ_AHEAD:
                    self._read_ahead(path)

    def _kept(self, name: str) -> Path:
        plain = self._layout.etcd_snapshot
        return plain.with_name(f"{plain.name}-{name}") if name else plain

    def _read_ahead(self, path: str) -> None:
        """Have the server read a list; nobody looks at it here."""
        status, answer = self.bed.client.request("GET", path, query={"resourceVersion": "0"})
        if status != 200:
            raise TestbedError(f"{path} can't be listed: {status} {answer[:200]!r}")

    def _settle(self) -> None:
        """Wait until the controller manager has lifted the taint that new nodes get with it."""
        if CONTROLLER_MANAGER in self._options.all_components:
            eventually(
                lambda: not any(map(is_fresh, self.bed.client.list("/api/v1/nodes"))),
                _SETTLE_SECONDS,
                "the nodes are ready",
                interval_seconds=1.0,
            )

    def _create(self, item: Object) -> None:
        created = self.bed.client.create(collection_path(item), item)
        if item["kind"] in _STATUS_APART and item.get("status"):
            name = created["metadata"]["name"]
            path = f"{collection_path(item)}/{name}/status"
            self.bed.client.patch(path, {"status": item["status"]})

    def _wait_for(self, path: str) -> None:
        eventually(lambda: self._exists(path), _WAIT_SECONDS, f"{path} exists")

    def _exists(self, path: str) -> bool:
        try:
            self.bed.client.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _grant_upstream_roles(self) -> None:
        """Give the service account kube-scheduler's own rights besides the shipped ones."""
        for place, kind, role in _UPSTREAM_ROLES:
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": f"{kind}Binding",
                "metadata": {"name": f"bench:{role}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": [
                    {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
                ],
            }
            self.bed.client.create(f"{_RBAC}/{place}", binding)

    @property
    def _layout(self) -> Layout:
        return Layout(self.bed.state_dir)


def is_fresh(node: Object) -> bool:
    """Return whether a node still has the taint of one that nobody has looked at."""
    return any(taint["key"] == _NOT_READY for taint in node["spec"].get("taints") or ())


def collection_path(item: Object) -> str:
    """Return where an object of any kind is created: its namespace decides, if it names one."""
    version, kind = str(item["apiVersion"]), str(item["kind"]).lower()
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = item["metadata"].get("namespace")
    inside = f"/namespaces/{namespace}" if namespace else ""
    if kind.endswith("y"):
        return f"{prefix}{inside}/{kind[:-1]}ies"
    return f"{prefix}{inside}/{kind}{'es' if kind.endswith('s') else 's'}"
