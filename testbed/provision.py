"""Everything that lies in the state folder before the first process starts.

Tokens are random per bed. The names of the users behind them are those the built-in roles of
Kubernetes are bound to, so the controller manager and the scheduler run under real RBAC with no
object of our own.
"""

import secrets
from pathlib import Path

from testbed import audit, kwok
from testbed.commands import Plan
from testbed.kubeconfig import Access, write_token_kubeconfig
from testbed.layout import write_private
from testbed.options import API_SERVER, CONTROLLER_MANAGER, KWOK, SCHEDULER
from testbed.pki import write_pki

# (user, kubeconfig of, groups)
_USERS = (
    ("admin", None, "system:masters"),
    ("system:kube-controller-manager", CONTROLLER_MANAGER, ""),
    ("system:kube-scheduler", SCHEDULER, ""),
)


def provision(plan: Plan, *, stages: Path | None) -> Access:
    """Write keys, tokens, kubeconfigs and configuration files; return the admin's access."""
    layout = plan.layout
    layout.make_folders()
    write_pki(layout.pki)
    admin = _write_users(plan)
    if plan.options.audit:
        policy = plan.options.audit_policy
        audit.write_policy(layout.audit_policy, audit.POLICY if policy is None else policy)
    if stages is not None:
        kwok.write_config(
            layout.kwok_config,
            stages=stages,
            port=plan.ports[KWOK],
            node_lease_seconds=plan.options.node_lease_seconds,
        )
    return admin


def _write_users(plan: Plan) -> Access:
    layout = plan.layout
    ca_pem = layout.ca.read_text(encoding="ascii")
    lines, accesses = [], []
    for number, (user, component, groups) in enumerate(_USERS, start=1):
        access = Access(server=plan.url(API_SERVER), ca_pem=ca_pem, token=secrets.token_hex(16))
        path = layout.kubeconfig(component) if component else layout.admin_kubeconfig
        write_token_kubeconfig(path, access)
        lines.append(f'{access.token},{user},{number},"{groups}"\n')
        accesses.append(access)
    write_private(layout.tokens, "".join(lines).encode())
    return accesses[0]
