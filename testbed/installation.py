"""Puts the scheduler's shipped objects into a bed, as `kubectl apply` would, and logs it in.

What is applied is exactly what users apply: the files in manifests/. Only the Deployment is left
out, because here the scheduler runs as a plain process.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from testbed.bed import Bed
from testbed.client import Object
from testbed.errors import ApiError

MANIFESTS = Path(__file__).parent.parent / "manifests"
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "k8s-scheduler"
SHADOW_ACCOUNT = "k8s-scheduler-shadow"

_COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
}


def load_manifest(name: str) -> list[Object]:
    """Return the objects of one shipped file."""
    text = (MANIFESTS / name).read_text(encoding="utf-8")
    return [document for document in yaml.safe_load_all(text) if document]


def shipped_configuration() -> str:
    """Return the configuration file of the shipped ConfigMap."""
    (config_map,) = load_manifest("config.yaml")
    return str(config_map["data"]["config.yaml"])


def install(bed: Bed, *, files: Sequence[str] = ("rbac.yaml", "flowschema.yaml")) -> None:
    """Create service account, roles and flow schemas; what is there already stays."""
    create_objects(bed, (item for name in files for item in load_manifest(name)))


def create_objects(bed: Bed, items: Iterable[Object]) -> None:
    """Create objects of the kinds that the manifests have; what is there already stays."""
    for item in items:
        collection = _COLLECTIONS[item["kind"]].format(
            namespace=item["metadata"].get("namespace", NAMESPACE)
        )
        try:
            bed.client.create(collection, item)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def log_in(
    bed: Bed, path: Path, *, account: str = SERVICE_ACCOUNT, lifetime_seconds: int = 86400
) -> Path:
    """Write a kubeconfig with a token of the scheduler's own service account."""
    token = bed.token_for_service_account(NAMESPACE, account, lifetime_seconds=lifetime_seconds)
    return bed.kubeconfig_for_token(path, token)
