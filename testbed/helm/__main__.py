"""`make helm-check`: lints the chart, renders it, and installs it on a real API server.

Exit code 0 if every set of values does what it should, 1 if one does not, 2 if it could not be
tried.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from testbed.bed import Bed
from testbed.client import Client
from testbed.errors import TestbedError
from testbed.helm import checking
from testbed.helm.building import ensure_helm, helm_version
from testbed.helm.cases import CASES, REFUSED, RENAMED, ROLES
from testbed.options import BedOptions
from testbed.versions import read_versions

_LEVEL = "pod-security.kubernetes.io"


def main() -> int:
    """Check everything; return the exit code."""
    try:
        with tempfile.TemporaryDirectory(prefix="helm-") as folder:
            helm = checking.Helm(ensure_helm(), Path(folder), read_versions().kubernetes)
            print(f"helm {helm_version()}, Kubernetes {helm.kube_version}", flush=True)
            failed = sum(not _told(name, problems) for name, problems in _checks(helm))
    except (TestbedError, OSError) as error:
        print(f"helm-check: {error}", file=sys.stderr)
        return 2
    print(f"{failed} of the checks failed" if failed else "all is well")
    return 1 if failed else 0


def _checks(helm: checking.Helm) -> Iterator[tuple[str, list[str]]]:
    """Yield each check and what is wrong."""
    try:
        helm.lint()
        yield "lint", []
    except checking.RefusedError as error:
        yield "lint", [str(error)]
    for name, (values, words) in REFUSED.items():
        yield f"refused: {name}", checking.refused(helm, values, words)
    defaults = checking.names_of(checking.objects_of(helm.render({})))
    for name, case in CASES.items():
        yield f"rendered: {name}", checking.rendered(helm, case, defaults)
    yield "rendered: another name", checking.rendered(helm, RENAMED, ())
    for name, values in ROLES.items():
        yield f"roles as k8s-scheduler rbac prints: {name}", checking.same_rights(helm, values)
    with Bed(BedOptions(components=())) as bed:
        yield from _releases(helm, bed)


def _releases(helm: checking.Helm, bed: Bed) -> Iterator[tuple[str, list[str]]]:
    labels = {f"{_LEVEL}/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    metadata = {"name": checking.NAMESPACE, "labels": labels}
    bed.client.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    )
    for name, case in CASES.items():
        if case.restricted:
            yield f"released: {name}", checking.released(helm, case, bed.kubeconfig)
    yield "released: defaults again", checking.released(helm, CASES["defaults"], bed.kubeconfig)
    case = CASES["one replica"]
    yield "an upgrade keeps what was saved", checking.kept(helm, case, bed.kubeconfig, bed.client)
    helm.remove(bed.kubeconfig)
    yield "nothing is left of it", [f"{path} is left" for path in _left(bed.client)]


def _left(client: Client) -> Iterator[str]:
    """Yield where something of the release is still there."""
    namespace = f"namespaces/{checking.NAMESPACE}"
    for path in (
        f"/api/v1/{namespace}/configmaps",
        f"/api/v1/{namespace}/services",
        f"/api/v1/{namespace}/serviceaccounts",
        f"/apis/apps/v1/{namespace}/deployments",
        f"/apis/rbac.authorization.k8s.io/v1/{namespace}/roles",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    ):
        for item in client.list(path):
            if item["metadata"]["name"].startswith(checking.RELEASE):
                yield f"{path}/{item['metadata']['name']}"


def _told(name: str, problems: list[str]) -> bool:
    """Print how a check came out; return whether it is well."""
    print(f"{'ok    ' if not problems else 'FAILED'}  {name}", flush=True)
    for problem in problems:
        print("\n".join(f"          {line}" for line in problem.splitlines()), flush=True)
    return not problems


if __name__ == "__main__":
    sys.exit(main())
