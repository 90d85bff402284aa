"""Asking a component whether it is well. Answers are text for people; empty means well."""

from testbed.client import Client
from testbed.commands import Plan
from testbed.kubeconfig import read_token_kubeconfig
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER

_PATHS = {
    ETCD: "/health",
    API_SERVER: "/readyz",
    CONTROLLER_MANAGER: "/healthz",
    SCHEDULER: "/readyz",
    KWOK: "/healthz",
}
_TIMEOUT_SECONDS = 5.0


def complaint(component: str, plan: Plan) -> str:
    """Return what is wrong with a component; an empty string if it is ready."""
    access = read_token_kubeconfig(plan.layout.admin_kubeconfig)
    # Only the API server must answer whatever its flags say of anonymous requests.
    token = access.token if component == API_SERVER else ""
    with Client(
        plan.url(component), ca_pem=access.ca_pem, token=token, timeout_seconds=_TIMEOUT_SECONDS
    ) as client:
        try:
            status, body = client.request("GET", _PATHS[component])
        except OSError as error:
            return f"no answer ({error})"
    if status == 200:
        return ""
    text = body.decode(errors="replace").strip()
    failed = [line for line in text.splitlines() if line.startswith("[-]")]
    return f"{status}: {'; '.join(failed) or text[:200]}"
