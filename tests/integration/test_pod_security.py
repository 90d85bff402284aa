"""What is shipped passes the restricted Pod Security level, judged by the real API server."""

import copy
import http.client
import json
import ssl
from urllib.parse import urlsplit

import pytest

from testbed.installation import load_manifest
from testbed.kubeconfig import read_token_kubeconfig

LEVEL = "pod-security.kubernetes.io"


@pytest.fixture
def restricted(sandbox):
    """The test's namespace, with the restricted level enforced and warned about."""
    labels = {f"{LEVEL}/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    sandbox.client.patch(sandbox.path, {"metadata": {"labels": labels}})
    account = next(o for o in load_manifest("rbac.yaml") if o["kind"] == "ServiceAccount")
    account["metadata"]["namespace"] = sandbox.namespace
    sandbox.client.create(f"{sandbox.path}/serviceaccounts", account)
    return sandbox


def try_out(sandbox, path, body):
    """Create without creating; return status, text and all warnings."""
    access = read_token_kubeconfig(sandbox.bed.kubeconfig)
    address = urlsplit(access.server)
    connection = http.client.HTTPSConnection(
        address.hostname,
        address.port,
        timeout=20,
        context=ssl.create_default_context(cadata=access.ca_pem),
    )
    try:
        connection.request(
            "POST",
            f"{path}?dryRun=All",
            body=json.dumps(body),
            headers={
                "Authorization": f"Bearer {access.token}",
                "Content-Type": "application/json",
            },
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get_all("Warning") or []
    finally:
        connection.close()


def deployment(sandbox):
    found = next(o for o in load_manifest("scheduler.yaml") if o["kind"] == "Deployment")
    found["metadata"]["namespace"] = sandbox.namespace
    return found


def pod_of(sandbox):
    template = deployment(sandbox)["spec"]["template"]
    metadata = template["metadata"] | {"name": "p", "namespace": sandbox.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_the_deployment_and_its_pods_are_accepted_without_a_warning(restricted):
    apps = f"/apis/apps/v1/namespaces/{restricted.namespace}/deployments"
    for path, body in (
        (apps, deployment(restricted)),
        (f"{restricted.path}/pods", pod_of(restricted)),
    ):
        status, text, warnings = try_out(restricted, path, body)
        assert (status, warnings) == (201, []), text


@pytest.mark.parametrize(
    ("place", "setting", "word"),
    [
        ("pod", "seccompProfile", "seccompProfile"),
        ("pod", "runAsNonRoot", "runAsNonRoot"),
        ("container", "allowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("container", "capabilities", "capabilities"),
    ],
)
def test_each_of_the_settings_is_what_makes_it_pass(restricted, place, setting, word):
    pod = copy.deepcopy(pod_of(restricted))
    spec = pod["spec"] if place == "pod" else pod["spec"]["containers"][0]
    del spec["securityContext"][setting]
    if setting == "runAsNonRoot":
        del spec["securityContext"]["runAsUser"]
    status, text, _ = try_out(restricted, f"{restricted.path}/pods", pod)
    assert status == 403
    message = json.loads(text)["message"]
    assert 'violates PodSecurity "restricted' in message
    assert word in message


def test_the_other_shipped_objects_are_accepted_as_they_are(sandbox):
    policies = "/apis/networking.k8s.io/v1/namespaces/kube-system/networkpolicies"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for path, file in (
        (policies, "networkpolicy.yaml"),
        (policies, "shadow/networkpolicy.yaml"),
        (roles, "metrics-reader.yaml"),
        (roles, "config-reader.yaml"),
    ):
        for item in load_manifest(file):
            status, text, warnings = try_out(sandbox, path, item)
            assert (status, warnings) == (201, []), text
