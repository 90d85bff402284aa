"""A fail-closed admission webhook on the Bindings of one namespace that can never be called.

The API server answers every Binding there with 500, and stores nothing, until it is removed.
"""

import json
from typing import Final

from testbed.client import Client, Object
from testbed.waiting import eventually
from testbed.workload import create_all, make_binding, make_pod, object_path

COLLECTION: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WEBHOOK: Final = "guard.example.com"
# The port for discarding what comes: nothing listens there.
_CLOSED: Final = "https://127.0.0.1:9/"
_PROBE: Final = "webhook-probe"


def broken_webhook(name: str, namespace: str) -> Object:
    """Return the configuration of one that is down."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": WEBHOOK,
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods/binding"],
                    }
                ],
                "failurePolicy": "Fail",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": _CLOSED},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            }
        ],
    }


def wait_until_down(client: Client, namespace: str, *, down: bool = True) -> None:
    """Wait until the API server asks the webhook, or not any more: it follows its own watch."""
    probe = make_pod(_PROBE, namespace=namespace, scheduler_name="nobody")
    (pod,) = create_all(client, [probe])
    path = f"{object_path(pod)}/binding"
    body = json.dumps(make_binding(pod, "no-such-node")).encode()

    def is_down() -> bool:
        status, _ = client.request("POST", path, query={"dryRun": "All"}, body=body)
        return status == 500

    try:
        eventually(lambda: is_down() == down, 20, f"Bindings in {namespace} fail: {down}")
    finally:
        client.delete(object_path(pod), grace_period_seconds=0)
