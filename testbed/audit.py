"""The API server's own account of what schedulers wrote: the judge in tests about lost answers.

Every Binding is logged twice, when it arrives and when it is answered, each line written before
the server goes on (blocking-strict). A Binding that has the first line and not the second was in
flight when the server died: it may or may not have been executed.

Of this scheduler's own account it also logs the rest of what happens to pods: status and deletes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RECEIVED = "RequestReceived"
COMPLETE = "ResponseComplete"
SCHEDULER_USER = "system:serviceaccount:kube-system:k8s-scheduler"

# Bindings, and this scheduler's other writes to pods, with their bodies.
POLICY: Mapping[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted"],
    "rules": [
        {
            "level": "Request",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/binding", "bindings"]}],
        },
        {
            "level": "Request",
            "users": [SCHEDULER_USER],
            "verbs": ["delete", "patch"],
            "resources": [{"group": "", "resources": ["pods", "pods/status"]}],
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the log; `raw` holds all of it."""

    audit_id: str
    stage: str
    verb: str
    user: str
    namespace: str
    name: str
    subresource: str
    status: int
    raw: dict[str, Any]

    @property
    def is_successful_binding(self) -> bool:
        """Whether this is the answer to a Binding that was carried out."""
        return self.stage == COMPLETE and self.subresource == "binding" and self.status == 201

    @property
    def target_node(self) -> str:
        """The node a Binding names; empty in a RequestReceived entry, which has no body yet."""
        body = self.raw.get("requestObject") or {}
        return str(body.get("target", {}).get("name", ""))

    @property
    def target_uid(self) -> str:
        """The pod uid a Binding insists on; empty if it does not, or has no body yet."""
        body = self.raw.get("requestObject") or {}
        return str(body.get("metadata", {}).get("uid", ""))

    @property
    def precondition_uid(self) -> str:
        """The pod uid a delete insists on; empty if it does not, or has no body yet."""
        body = self.raw.get("requestObject") or {}
        return str(body.get("preconditions", {}).get("uid", ""))


def write_policy(path: Path, policy: Mapping[str, Any]) -> None:
    """Write what is audited as the file that the API server reads."""
    path.write_text(yaml.safe_dump(dict(policy), sort_keys=False), encoding="utf-8")


def read_log(path: Path) -> Iterator[AuditEntry]:
    """Yield the entries written so far; a line that is still being written is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield _parse(json.loads(line))


def _parse(raw: dict[str, Any]) -> AuditEntry:
    target = raw.get("objectRef", {})
    return AuditEntry(
        audit_id=raw["auditID"],
        stage=raw["stage"],
        verb=raw["verb"],
        user=raw.get("user", {}).get("username", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        subresource=target.get("subresource", ""),
        status=raw.get("responseStatus", {}).get("code", 0),
        raw=raw,
    )
