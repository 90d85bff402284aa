import dataclasses
from pathlib import Path

import pytest
import yaml

from testbed.commands import Plan, needed_ports
from testbed.kubeconfig import read_token_kubeconfig
from testbed.layout import Layout
from testbed.options import CONTROLLER_MANAGER, KWOK, SCHEDULER, BedOptions
from testbed.provision import provision


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    options = BedOptions(components=(CONTROLLER_MANAGER, KWOK), audit=True, node_lease_seconds=40)
    ports = {name: 20_000 + index for index, name in enumerate(needed_ports(options))}
    return Plan(layout=Layout(tmp_path / "state"), ports=ports, options=options)


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    path = tmp_path / "stages.yaml"
    path.write_text("kind: Stage\nmetadata: {name: a}\n---\nkind: Stage\nmetadata: {name: b}\n")
    return path


def test_each_user_has_a_token_of_its_own_that_the_server_knows(plan, stages):
    admin = provision(plan, stages=stages)
    layout = plan.layout
    tokens = dict(line.split(",")[:2] for line in layout.tokens.read_text().splitlines())
    assert tokens[admin.token] == "admin"
    assert admin == read_token_kubeconfig(layout.admin_kubeconfig)
    for component in (CONTROLLER_MANAGER, SCHEDULER):
        access = read_token_kubeconfig(layout.kubeconfig(component))
        assert tokens[access.token] == f"system:{component}"
    assert len(tokens) == 3


def test_two_beds_share_no_token(plan, stages):
    assert provision(plan, stages=stages).token != provision(plan, stages=stages).token


def test_kwok_gets_options_then_stages(plan, stages):
    provision(plan, stages=stages)
    head, *rest = yaml.safe_load_all(plan.layout.kwok_config.read_text())
    assert head["options"]["serverAddress"] == f"127.0.0.1:{plan.ports[KWOK]}"
    assert head["options"]["nodeLeaseDurationSeconds"] == 40
    assert head["options"]["podPlayStageParallelism"] > 0
    assert [stage["metadata"]["name"] for stage in rest] == ["a", "b"]


def test_audit_policy_is_the_one_that_was_asked_for(plan, stages):
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}
    options = dataclasses.replace(plan.options, audit_policy=policy)
    provision(dataclasses.replace(plan, options=options), stages=stages)
    assert yaml.safe_load(plan.layout.audit_policy.read_text()) == policy


def test_audit_policy_logs_bindings_and_what_the_scheduler_does_to_pods(plan, stages):
    provision(plan, stages=stages)
    policy = yaml.safe_load(plan.layout.audit_policy.read_text())
    first, second, last = policy["rules"]
    assert "pods/binding" in first["resources"][0]["resources"]
    assert second["users"] == ["system:serviceaccount:kube-system:k8s-scheduler"]
    assert second["resources"][0]["resources"] == ["pods", "pods/status"]
    assert last == {"level": "None"}
    assert "RequestReceived" not in policy["omitStages"]
