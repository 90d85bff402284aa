"""Puts the scheduler's shipped objects into a bed, as `kubectl apply` would, and logs it in.

What is applied is exactly what users apply: the files in manifests/. Only the Deployment is left
out, because here the scheduler runs as a plain process.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from testbed.bed import Bed
from testbed.client import Object
from testbed.errors import ApiError
from testbed.waiting import eventually

MANIFESTS = Path(__file__).parent.parent / "manifests"
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "k8s-scheduler"
SHADOW_ACCOUNT = "k8s-scheduler-shadow"

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_GRANTED_SECONDS = 30.0

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
    """Create service account, roles and flow schemas; what is there already stays.

    The API server goes by new roles a moment later, under load a long one. Whoever started before
    that would be refused what the roles allow, and say so.
    """
    items = [item for name in files for item in load_manifest(name)]
    if create_objects(bed, items):
        wait_granted(bed, items)


def create_objects(bed: Bed, items: Iterable[Object]) -> bool:
    """Create objects of the kinds that the manifests have; return whether any was not there yet."""
    created = False
    for item in items:
        collection = _COLLECTIONS[item["kind"]].format(
            namespace=item["metadata"].get("namespace", NAMESPACE)
        )
        try:
            bed.client.create(collection, item)
            created = True
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
    return created


def wait_granted(bed: Bed, items: Iterable[Object]) -> None:
    """Wait until the API server goes by the roles among these objects."""

    def holds(review: Object) -> bool:
        return bool(bed.client.create(_REVIEWS, review)["status"]["allowed"])

    for review in reviews_of(items):
        eventually(
            functools.partial(holds, review),
            _GRANTED_SECONDS,
            f"the API server goes by a new role: {review['spec']}",
            interval_seconds=0.02,
        )


def reviews_of(items: Iterable[Object]) -> Iterator[Object]:
    """Yield a question for each rule of the roles: may the account that they are bound to do so?"""
    known = list(items)
    roles = {_identity(item): item.get("rules", ()) for item in known if "rules" in item}
    for item in known:
        place = item["metadata"].get("namespace", "")
        role = item.get("roleRef", {})
        namespace = place if role.get("kind") == "Role" else ""
        for rule in roles.get((role.get("kind"), namespace, role.get("name")), ()):
            # Paths are asked about where they are served: at the secure port.
            if "resources" not in rule:
                continue
            resource, _, subresource = rule["resources"][0].partition("/")
            attributes = {
                "verb": rule["verbs"][0],
                "group": rule["apiGroups"][0],
                "resource": resource,
                "subresource": subresource,
                "namespace": place,
                "name": rule.get("resourceNames", [""])[0],
            }
            for subject in item["subjects"]:
                user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
                yield {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": {"user": user, "resourceAttributes": attributes},
                }


def _identity(item: Object) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]


def log_in(
    bed: Bed, path: Path, *, account: str = SERVICE_ACCOUNT, lifetime_seconds: int = 86400
) -> Path:
    """Write a kubeconfig with a token of the scheduler's own service account."""
    token = bed.token_for_service_account(NAMESPACE, account, lifetime_seconds=lifetime_seconds)
    return bed.kubeconfig_for_token(path, token)
