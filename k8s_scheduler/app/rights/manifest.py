"""Rights as a manifest: service account, roles and bindings, with the reason at each rule.

The text is made line by line, because a manifest without its comments would be of half the use.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from k8s_scheduler import __version__
from k8s_scheduler.app.rights.table import Role, Rule

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_PLAIN: Final = re.compile(r"[a-z0-9/][a-z0-9./-]*[a-z0-9]")
_LINE: Final = 100
_HEAD: Final = """\
# What the daemon may do, and nothing else. Made by `k8s-scheduler rbac` from the plugins that the
# configuration enables; another configuration may need less (docs/security.md#rights).
# docs/runbooks/forbidden.md says what a missing right looks like.
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """The service account that gets the rights; roles and bindings bear its name.

    What belongs to no namespace, or stands in one among others, may have another one: two accounts
    of one name in two namespaces would otherwise share it, and the second to be applied would take
    it from the first.
    """

    name: str
    namespace: str
    cluster_name: str = ""

    def name_of(self, role: Role) -> str:
        is_shared = not role.namespace or role.is_among_others
        return (self.cluster_name if is_shared and self.cluster_name else self.name) + role.ending


def rights_manifest(roles: Iterable[Role], owner: Owner) -> str:
    documents = [_service_account(owner)]
    for role in roles:
        documents += [_role(role, owner), _binding(role, owner)]
    return _HEAD + "".join("---\n" + "".join(f"{line}\n" for line in d) for d in documents)


def _service_account(owner: Owner) -> list[str]:
    return [
        *_opening("v1", "ServiceAccount", owner.name, owner.namespace),
        (
            "# The Deployment mounts the token itself; nothing else under this account gets one by "
            "accident."
        ),
        "automountServiceAccountToken: false",
    ]


def _role(role: Role, owner: Owner) -> list[str]:
    kind = "Role" if role.namespace else "ClusterRole"
    lines = _opening(f"{RBAC_GROUP}/v1", kind, owner.name_of(role), role.namespace)
    lines.append("rules:")
    said = ""
    for rule in role.rules:
        if rule.why != said:
            lines.append(f"  # {rule.why}")
        said = rule.why
        lines += _rule(rule)
    return lines


def _rule(rule: Rule) -> Iterator[str]:
    if rule.paths:
        yield f"  - nonResourceURLs: {_flow(rule.paths)}"
        yield from _list("verbs", rule.verbs)
        return
    yield f"  - apiGroups: {_flow([rule.group])}"
    yield from _list("resources", rule.resources)
    if rule.names:
        yield from _list("resourceNames", rule.names)
    yield from _list("verbs", rule.verbs)


def _list(key: str, values: Iterable[str]) -> Iterator[str]:
    values = list(values)
    line = f"    {key}: {_flow(values)}"
    if len(line) <= _LINE:
        yield line
        return
    yield f"    {key}:"
    for value in values:
        yield f"      - {_scalar(value)}"


def _binding(role: Role, owner: Owner) -> list[str]:
    kind = "Role" if role.namespace else "ClusterRole"
    name = owner.name_of(role)
    return [
        *_opening(f"{RBAC_GROUP}/v1", f"{kind}Binding", name, role.namespace),
        "roleRef:",
        f"  apiGroup: {RBAC_GROUP}",
        f"  kind: {kind}",
        f"  name: {_scalar(name)}",
        "subjects:",
        "  - kind: ServiceAccount",
        f"    name: {_scalar(owner.name)}",
        f"    namespace: {_scalar(owner.namespace)}",
    ]


def _opening(api_version: str, kind: str, name: str, namespace: str) -> list[str]:
    return [
        f"apiVersion: {api_version}",
        f"kind: {kind}",
        "metadata:",
        f"  name: {_scalar(name)}",
        *([f"  namespace: {_scalar(namespace)}"] if namespace else []),
        "  labels:",
        "    app: k8s-scheduler",
        "    app.kubernetes.io/name: k8s-scheduler",
        "    app.kubernetes.io/component: scheduler",
        "    app.kubernetes.io/part-of: k8s-scheduler",
        "    app.kubernetes.io/managed-by: kustomize",
        f"    app.kubernetes.io/version: {__version__}",
    ]


def _flow(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_scalar, values))}]"


def _scalar(value: str) -> str:
    """Return a name as it stands in YAML: quoted where it could be taken for something else."""
    is_plain = _PLAIN.fullmatch(value) and yaml.safe_load(value) == value
    return value if is_plain else json.dumps(value)
