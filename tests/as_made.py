"""What admission and controllers add to a pod before a scheduler sees it.

Much of it no other pod has: a volume for its token under a random name, a hostname, a Job of its
own. `tests/integration/test_real_shapes.py` looks at pods that the real ones have made.
"""

import copy
from typing import Any

Raw = dict[str, Any]


def as_made(pod: Raw, name: str, number: int, *, run: int | None = None) -> Raw:
    """Return a pod as a real cluster has it; an owner that it has already stays.

    One without gets an owner of which nothing is read: if it says itself how it is to be spread, a
    ReplicaSet, otherwise the Job of a run, with labels that tell it; each its own if none is given.
    """
    made = copy.deepcopy(pod)
    metadata, spec = made["metadata"], made["spec"]
    metadata.update(generateName="o-", resourceVersion=str(number), generation=1)
    metadata["annotations"] = {"batch.kubernetes.io/job-completion-index": str(number)}
    _own(metadata, spec, number if run is None else run)
    spec.update(
        hostname=name,
        serviceAccountName="default",
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        enableServiceLinks=True,
        preemptionPolicy="PreemptLowerPriority",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    token = f"kube-api-access-{name}"
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    for container in spec["containers"]:
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": token, "readOnly": True, "mountPath": path})
    spec["volumes"] = [*spec.get("volumes", ()), {"name": token, "projected": _token()}]
    spec["tolerations"] = [*spec.get("tolerations", ()), *_default_tolerations()]
    return made


def _own(metadata: Raw, spec: Raw, number: int) -> None:
    labels = metadata.setdefault("labels", {})
    owners = metadata.get("ownerReferences")
    if not owners:
        if spec.get("topologySpreadConstraints"):
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o-7d9c5b"}
        else:
            run = f"run-{number}"
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run}
            labels |= {"job-name": run, "batch.kubernetes.io/job-name": run}
            labels |= {"controller-uid": run, "batch.kubernetes.io/controller-uid": run}
        owners = metadata["ownerReferences"] = [
            {**owner, "uid": owner["name"], "controller": True, "blockOwnerDeletion": True}
        ]
    if owners[0]["kind"] == "ReplicaSet":
        labels["pod-template-hash"] = "7d9c5b"


def _token() -> Raw:
    return {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt"}},
        ],
    }


def _default_tolerations() -> list[Raw]:
    return [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
