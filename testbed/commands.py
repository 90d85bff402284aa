"""The command line of each component: pure functions from a bed's plan to arguments.

Two rules of Kubernetes shape the API server's flags. Without a controller manager nothing makes the
`default` service accounts and nothing lifts the not-ready taint off new nodes, so the two admission
plugins that rely on it are off then, unless the owner of the bed makes the accounts
(`BedOptions.service_accounts`); with it everything is as in a real cluster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from testbed.layout import Layout
from testbed.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    BedOptions,
)

ETCD_PEER = "etcd-peer"  # the one port that belongs to no component

_ETCD_QUOTA_BYTES = 8 * 1024**3
_CONTROLLER_QPS = 200  # the default of 20 makes 1,000 nodes or a big Deployment a matter of minutes


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides the command lines of one bed."""

    layout: Layout
    ports: Mapping[str, int]
    options: BedOptions

    def url(self, component: str) -> str:
        """Return where a component listens."""
        scheme = "http" if component in {ETCD, ETCD_PEER, KWOK} else "https"
        return f"{scheme}://127.0.0.1:{self.ports[component]}"


def arguments(component: str, plan: Plan) -> list[str]:
    """Return the arguments a component is started with, the extra ones last so that they win."""
    return [*_BUILDERS[component](plan), *plan.options.extra_flags.get(component, ())]


def needed_ports(options: BedOptions) -> tuple[str, ...]:
    """Return the names under which ports are needed."""
    return (*options.all_components, ETCD_PEER)


def _etcd(plan: Plan) -> list[str]:
    client, peer = plan.url(ETCD), plan.url(ETCD_PEER)
    return [
        "--name=bed",
        f"--data-dir={plan.layout.etcd_data}",
        "--unsafe-no-fsync",  # data of a bed need not survive the machine
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=bed={peer}",
        f"--quota-backend-bytes={_ETCD_QUOTA_BYTES}",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=5m",
        "--log-level=warn",
    ]


def _api_server(plan: Plan) -> list[str]:
    pki = plan.layout.pki
    disabled = ["DefaultStorageClass"]
    if CONTROLLER_MANAGER not in plan.options.all_components:
        disabled += ["TaintNodesByCondition"]
        disabled += [] if plan.options.service_accounts else ["ServiceAccount"]
    return [
        f"--etcd-servers={plan.url(ETCD)}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # its Endpoints may not hold a loopback address
        f"--secure-port={plan.ports[API_SERVER]}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={plan.layout.ca}",
        f"--token-auth-file={plan.layout.tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--disable-admission-plugins={','.join(disabled)}",
        *_aggregation(plan),
        *_kubelet_client(plan),
        *(_audit(plan) if plan.options.audit else ()),
    ]


def _aggregation(plan: Plan) -> list[str]:
    """Let aggregated APIs (metrics) trust requests that the API server passes on."""
    pki = plan.layout.pki
    return [
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
    ]


def _kubelet_client(plan: Plan) -> list[str]:
    """Let `kubectl logs` and `exec` reach kwok, which answers for all kubelets."""
    pki = plan.layout.pki
    return [
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        f"--kubelet-certificate-authority={plan.layout.ca}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _audit(plan: Plan) -> list[str]:
    return [
        f"--audit-policy-file={plan.layout.audit_policy}",
        f"--audit-log-path={plan.layout.audit_log}",
        f"--audit-log-mode={plan.options.audit_mode}",
        "--audit-log-maxsize=0",  # one file, never rotated: readers want all of it
    ]


def _controller_manager(plan: Plan) -> list[str]:
    pki = plan.layout.pki
    return [
        *_kube_client(CONTROLLER_MANAGER, plan),
        "--use-service-account-credentials",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={plan.layout.ca}",
        f"--node-monitor-grace-period={plan.options.node_monitor_grace_seconds}s",
        f"--kube-api-qps={_CONTROLLER_QPS}",
        f"--kube-api-burst={2 * _CONTROLLER_QPS}",
    ]


def _scheduler(plan: Plan) -> list[str]:
    return _kube_client(SCHEDULER, plan)


def _kube_client(component: str, plan: Plan) -> list[str]:
    """Return the flags that the controller manager and the scheduler share."""
    kubeconfig, pki = plan.layout.kubeconfig(component), plan.layout.pki
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={plan.ports[component]}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
    ]


def _kwok(plan: Plan) -> list[str]:
    pki = plan.layout.pki
    return [
        f"--config={plan.layout.kwok_config}",
        f"--kubeconfig={plan.layout.admin_kubeconfig}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
        "--v=WARN",  # below that it logs every lease renewal
    ]


_BUILDERS: Mapping[str, Callable[[Plan], list[str]]] = {
    ETCD: _etcd,
    API_SERVER: _api_server,
    CONTROLLER_MANAGER: _controller_manager,
    SCHEDULER: _scheduler,
    KWOK: _kwok,
}
