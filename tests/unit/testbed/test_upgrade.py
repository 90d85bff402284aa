"""What two versions in turn must not do: lose a pod, bind one twice, overfill a node, overlap."""

import base64
import json
from types import SimpleNamespace

import pytest
import yaml

from testbed import upgrade
from testbed.audit import COMPLETE, RECEIVED
from testbed.errors import TestbedError
from testbed.upgrade import (
    BURSTS,
    NODES,
    PAUSE_SECONDS,
    SIGNAL_BURST,
    SLOTS,
    TIMES,
    are_the_same,
    install,
    token_id,
)
from testbed.upgrade_judge import Account, Phase, figures, judge

PROCESSES = {"JTI=1": "old-0", "JTI=2": "new-1"}


def pod(name, node="n0"):
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"nodeName": node}}


def binding(name, at, *, token="JTI=1", node="n0", stage=COMPLETE, status=201):
    has_body = stage == COMPLETE
    return SimpleNamespace(
        audit_id=f"{name}-{at}",
        stage=stage,
        subresource="binding",
        name=name,
        status=status,
        is_successful_binding=stage == COMPLETE and status == 201,
        target_uid=f"uid-{name}" if has_body else "",
        target_node=node if has_body else "",
        raw={
            "requestReceivedTimestamp": f"2026-01-01T00:00:{at:02}.000000Z",
            "user": {"extra": {"authentication.kubernetes.io/credential-id": [token]}},
        },
    )


def phase(*names):
    return Phase(1, "old-0", "new-1", names, "2026-01-01T00:00:01.500000Z", 2)


WELL = [binding("a", 1), binding("b", 2, token="JTI=2")]


def judged(pods, entries, *, names=("a", "b"), slots=SLOTS):
    return judge(pods, Account(entries, PROCESSES, pods), [phase(*names)], slots=slots)


class TestJudge:
    """Each thing that can go wrong is told, and nothing else."""

    def test_pods_with_one_binding_each_in_turn_are_well(self):
        assert judged([pod("a"), pod("b")], WELL) == []

    def test_a_pod_that_waits_is_told(self):
        assert "b has no node" in judged([pod("a"), pod("b", node="")], WELL[:1])

    def test_a_pod_that_is_gone_is_told(self):
        assert "b is gone" in judged([pod("a")], WELL)

    def test_a_pod_that_was_not_bound_is_told(self):
        assert "b was bound 0 times" in judged([pod("a"), pod("b")], WELL[:1])

    def test_a_pod_that_was_bound_twice_is_told(self):
        entries = [*WELL, binding("b", 3, token="JTI=2")]
        assert "b was bound 2 times" in judged([pod("a"), pod("b")], entries)

    def test_a_second_binding_that_was_refused_is_told(self):
        """The API server carries none out, so this is what two leaders look like."""
        entries = [*WELL, binding("a", 3, token="JTI=2", status=409)]
        (problem,) = judged([pod("a"), pod("b")], entries)
        assert problem == "a was bound again by new-1, and refused"

    def test_a_pod_on_another_node_than_it_was_bound_to_is_told(self):
        (problem,) = judged([pod("a", node="n7"), pod("b")], WELL)
        assert problem == "a was bound to n0 and is on n7"

    def test_a_node_that_is_too_full_is_told(self):
        (problem,) = judged([pod("a"), pod("b")], WELL, slots=1)
        assert problem == "n0 has 2 pods and room for 1"

    def test_one_that_binds_after_it_was_replaced_is_told(self):
        entries = [*WELL, binding("c", 3)]
        pods = [pod("a"), pod("b"), pod("c")]
        (problem,) = judged(pods, entries, names=("a", "b", "c"))
        assert problem == "bindings were made by old-0 > new-1 > old-0, not by old-0 > new-1"

    def test_one_that_was_never_at_work_is_told(self):
        entries = [binding("a", 1), binding("b", 2)]
        problems = judged([pod("a"), pod("b")], entries)
        assert "new-1 bound none of the pods of phase 1" in problems

    def test_another_process_is_told(self):
        entries = [*WELL, binding("c", 3, token="JTI=9")]
        (problem,) = judged([pod("a"), pod("b"), pod("c")], entries, names=("a", "b", "c"))
        assert "another process (JTI=9)" in problem


class TestGoneProcess:
    """What the server carried out for a process that was killed is a Binding like any other."""

    @pytest.mark.parametrize(
        "last", [{"status": 500}, {"status": 0}, {"stage": RECEIVED}], ids=["500", "0", "no answer"]
    )
    def test_it_counts_where_there_is_no_other(self, last):
        entries = [binding("a", 1), binding("c", 2, **last), binding("b", 3, token="JTI=2")]
        pods = [pod("a"), pod("b"), pod("c")]
        assert judged(pods, entries, names=("a", "b", "c")) == []
        shown = figures(Account(entries, PROCESSES, pods), phase("a", "b", "c"))
        assert shown == (
            "old-0 bound 2 pods, new-1 1; when the leader was told to end, 1 of 2 waited; "
            "1 were bound for a process that was gone"
        )

    def test_it_counts_for_nothing_where_the_next_leader_bound_the_pod(self):
        entries = [binding("a", 1), binding("b", 2, status=500), WELL[1]]
        assert judged([pod("a"), pod("b")], entries) == []

    def test_it_does_not_explain_another_node(self):
        entries = [*WELL, binding("c", 1, status=500, node="n8")]
        problems = judged([pod("a"), pod("b"), pod("c")], entries, names=("a", "b", "c"))
        assert "c was bound 0 times" in problems

    def test_a_binding_that_was_refused_bound_nothing(self):
        entries = [*WELL, binding("c", 1, status=404)]
        problems = judged([pod("a"), pod("b"), pod("c")], entries, names=("a", "b", "c"))
        assert "c was bound 0 times" in problems


class TestPlan:
    """What is asked of the two versions."""

    def test_the_pods_of_a_phase_fill_its_nodes_to_the_last_place(self):
        """So a leader that did not know of the last one's Bindings would overfill some."""
        assert sum(BURSTS) == NODES * SLOTS

    def test_the_leader_ends_in_the_largest_burst(self):
        assert BURSTS[SIGNAL_BURST] == max(BURSTS)

    def test_pods_come_for_longer_than_a_lease_lasts(self):
        assert (len(BURSTS) - SIGNAL_BURST) * PAUSE_SECONDS > TIMES.lease_seconds

    def test_without_the_last_node_some_pods_have_to_wait(self):
        by_then = sum(BURSTS[:SIGNAL_BURST])
        assert by_then < (NODES - 1) * SLOTS < sum(BURSTS)

    def test_each_way_is_gone_gently_and_not(self):
        assert sorted(upgrade.HANDOVERS) == [(v, c) for v in ("new", "old") for c in (False, True)]


class TestVersions:
    """Two of them, and not one twice."""

    def test_a_revision_that_is_none_is_named(self, tmp_path):
        with pytest.raises(TestbedError, match="git archive --format=tar none-such: exit code"):
            install("none-such", tmp_path)

    def test_folders_are_compared_by_name_and_content(self, tmp_path):
        for name in ("one", "two"):
            (tmp_path / name / "inner").mkdir(parents=True)
            (tmp_path / name / "inner" / "a.py").write_text("a = 1\n")
        one, two = tmp_path / "one", tmp_path / "two"
        assert are_the_same(one, two)
        (two / "inner" / "a.py").write_text("a = 2\n")
        assert not are_the_same(one, two)
        (two / "inner" / "a.py").write_text("a = 1\n")
        (two / "b.py").write_text("")
        assert not are_the_same(one, two)


def test_a_token_is_known_by_its_id(tmp_path):
    claims = base64.urlsafe_b64encode(json.dumps({"jti": "x-1"}).encode()).decode().rstrip("=")
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({"users": [{"user": {"token": f"head.{claims}.signature"}}]}))
    assert token_id(file) == "JTI=x-1"
