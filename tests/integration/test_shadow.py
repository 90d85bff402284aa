"""`k8s-scheduler shadow` beside kube-scheduler on a real control plane."""

import json
from contextlib import contextmanager

from testbed.bed import Bed
from testbed.options import SCHEDULER as KUBE_SCHEDULER
from testbed.options import BedOptions
from testbed.sandbox import Sandbox
from testbed.shadow_check import FOLLOWED, shadow_of
from testbed.shadow_pods import mixed_nodes, mixed_pods
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import bound, refusals, wait_bound

SHADOW_USER = "system:serviceaccount:kube-system:k8s-scheduler-shadow"
# Everything that the shadow asks for.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "users": [SHADOW_USER]}, {"level": "None"}],
}


@contextmanager
def following(bed, tmp_path, *, name):
    """Run a shadow under the role that may only look; yield it and how its report is read."""
    out = tmp_path / "report.json"
    shadow = shadow_of(bed, out=out, name=name, flags=("--latency=2s", "-v=4")).start()
    try:
        yield shadow, lambda: json.loads(out.read_text())
    finally:
        if shadow.pid is not None:
            shadow.kill()


def test_every_binding_of_kube_scheduler_was_among_the_best(tmp_path):
    options = BedOptions(components=(KUBE_SCHEDULER,), audit=True, audit_policy=AUDIT)
    with Bed(options) as bed, Sandbox(bed) as sandbox:
        report = _followed(sandbox, tmp_path)
        asked = {entry.verb for entry in bed.audit_entries() if entry.user == SHADOW_USER}
    assert asked in ({"list", "watch"}, {"watch"})
    profile = report["profiles"][FOLLOWED]
    assert (profile["bindings"], profile["judged"]) == (150, 150)
    disagreed = [case for case in report["cases"] if case["result"] in ("worse", "infeasible")]
    assert disagreed == []
    assert profile["agreed"] == 150
    # What was not the best at once names the race, and was judged again in the other order.
    assert all(case["race"] for case in report["cases"] if case["result"] == "explained")


def _followed(sandbox, tmp_path):
    """Let kube-scheduler place 150 mixed pods; return what the shadow reports."""
    sandbox.create_nodes(mixed_nodes(30))
    pods = list(mixed_pods(150, namespace=sandbox.namespace, scheduler_name=FOLLOWED))
    with following(sandbox.bed, tmp_path, name="shadow-best") as (shadow, read):
        sandbox.create_pods(pods)
        wait_bound(sandbox, 150, 120)
        assert shadow.stop() == 0, shadow.log_tail()
        log = shadow.log.read_text()
        assert "bindings seen" in log
        assert "Traceback" not in log
        assert refusals(shadow) == []
        return read()


def test_bindings_that_we_would_not_have_made_are_reported_and_nothing_is_bound(sandbox, tmp_path):
    sandbox.create_nodes(
        [make_node("full", cpu="1"), make_node("closed", unschedulable=True), make_node("free")]
    )
    with following(sandbox.bed, tmp_path, name="shadow-odd") as (shadow, read):
        pods = [make_pod(name, cpu="2") for name in ("large", "astray", "fine", "left")]
        created = {p["metadata"]["name"]: p for p in sandbox.create_pods(pods)}
        sandbox.bind(created["large"], "full")
        sandbox.bind(created["astray"], "closed")
        sandbox.bind(created["fine"], "free")
        name = "k8s_scheduler_shadow_bindings_total"
        key = f'{name}{{profile="{FOLLOWED}",result="infeasible"}}'
        eventually(lambda: shadow.metrics().get(key) == 2, 30, "both are judged")
        assert shadow.stop() == 0, shadow.log_tail()
        profile = read()["profiles"][FOLLOWED]
    assert profile["results"] | {"best": 1, "infeasible": 2} == profile["results"]
    assert profile["infeasibleBy"] == {
        "NodeResourcesFit: Insufficient cpu": 1,
        "NodeUnschedulable: node(s) were unschedulable": 1,
    }
    assert profile["anotherNode"] == 2
    assert bound(sandbox) == {"large": "full", "astray": "closed", "fine": "free"}
