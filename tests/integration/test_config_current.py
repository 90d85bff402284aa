"""`config current` in the shipped installation: under the shipped roles, with nothing opened.

The command runs here as `kubectl exec` would run it in the daemon's pod, beside a daemon whose
pages are guarded; only the place of the pod's token is another one.
"""

import json

import pytest
import yaml
from click.testing import CliRunner

from k8s_scheduler.app.configuration import current
from k8s_scheduler.app.rights.manifest import Owner, rights_manifest
from k8s_scheduler.cli.main import main
from testbed.installation import NAMESPACE, SERVICE_ACCOUNT, create_objects, load_manifest
from testbed.waiting import eventually
from tests.integration.daemons import refusals, running
from tests.integration.lent_rights import configuration_text

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(autouse=True)
def pod_token(tmp_path, monkeypatch):
    """Where the pod has its token; none is there until a test puts one there."""
    path = tmp_path / "token"
    monkeypatch.setattr(current, "POD_TOKEN", path)
    return path


@pytest.fixture
def daemon(sandbox):
    text = configuration_text("shown", sandbox.namespace)
    # What was refused is not refused for long: roles change in these tests.
    flags = ("--leader-elect=false", "--authorization-webhook-cache-unauthorized-ttl=1s")
    with running(sandbox.bed, configuration=text, guarded=True, flags=flags) as daemon:
        yield daemon
        assert refusals(daemon) == []


def config_current(daemon, *arguments):
    command = ["config", "current", f"--server=https://127.0.0.1:{daemon.port}", *arguments]
    return CliRunner().invoke(main, command)


def account(sandbox, name):
    """Create a service account with no rights at all; return its token."""
    owner = Owner(name, sandbox.namespace)
    create_objects(sandbox.bed, yaml.safe_load_all(rights_manifest([], owner)))
    return sandbox.bed.token_for_service_account(sandbox.namespace, name)


def test_in_the_pod_it_needs_no_flag(sandbox, daemon, pod_token):
    token = sandbox.bed.token_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
    pod_token.write_text(token)
    result = config_current(daemon)
    assert result.exit_code == 0, result.output
    assert "schedulerName: shown" in result.output
    assert token not in result.output
    page = json.loads(config_current(daemon, "-o", "json").output)
    assert page == json.loads(daemon.get("/configz", token=token)[1])


def test_the_right_is_for_that_page_and_for_no_other(sandbox, daemon):
    token = sandbox.bed.token_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
    assert daemon.get("/configz", token=token)[0] == 200
    assert daemon.get("/metrics", token=token)[0] == 403
    assert daemon.get("/configz")[0] == 403


def test_without_the_right_it_is_named(sandbox, daemon, pod_token):
    pod_token.write_text(account(sandbox, "blind"))
    result = config_current(daemon)
    assert result.exit_code == 1
    assert "may not `get` the nonResourceURL /configz: apply rbac.yaml" in result.output


def test_people_read_it_with_a_token_of_their_own_and_the_role_for_it(sandbox, daemon, tmp_path):
    file = tmp_path / "own-token"
    file.write_text(account(sandbox, "operator"))
    assert config_current(daemon).exit_code == 1
    assert (
        "k8s-scheduler-config-reader does" in config_current(daemon, f"--token-file={file}").output
    )
    (role,) = load_manifest("config-reader.yaml")
    sandbox.create_cluster_object(f"{RBAC}/clusterroles", role)
    sandbox.create_cluster_object(
        f"{RBAC}/clusterrolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "operators"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role["metadata"]["name"],
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": "operator", "namespace": sandbox.namespace}
            ],
        },
    )
    eventually(
        lambda: config_current(daemon, f"--token-file={file}").exit_code == 0,
        15,
        "the configuration is shown",
    )
