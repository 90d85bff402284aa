"""Writes that pods wait for: to whom they go, and what they must not hit by mistake."""

import json

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.kube.write.write_requests import eviction_calls, nomination_calls, object_calls

WALL_NS = 1_767_323_045_000_006_000  # 2026-01-02T03:04:05.000006Z
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


def evict(generation=0):
    return eviction_calls(
        namespace="a",
        name="p",
        uid=PodUid("u"),
        scheduler_name="mine",
        observed_generation=generation,
        wall_ns=WALL_NS,
    )


def test_an_eviction_says_why_and_then_deletes():
    why, delete = evict()
    assert (why.method, why.path) == ("PATCH", "/api/v1/namespaces/a/pods/p/status")
    assert (delete.method, delete.path) == ("DELETE", "/api/v1/namespaces/a/pods/p")
    assert (why.content_type, delete.content_type) == (STRATEGIC, "application/json")


def test_the_reason_is_the_one_that_controllers_look_for():
    why, _ = evict()
    assert json.loads(why.body)["status"] == {
        "conditions": [
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": "mine: preempting to accommodate a higher priority pod",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ]
    }


def test_the_reason_names_the_generation_it_was_decided_on():
    why, _ = evict(generation=4)
    [condition] = json.loads(why.body)["status"]["conditions"]
    assert condition["observedGeneration"] == 4


def test_an_eviction_hits_one_pod_and_no_namesake():
    why, delete = evict()
    assert json.loads(why.body)["metadata"] == {"uid": "u"}
    assert json.loads(delete.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
    }


def test_a_promise_is_taken_back_from_one_pod_and_no_namesake():
    [clear] = nomination_calls(namespace="a", name="p", uid=PodUid("u"))
    assert (clear.method, clear.path) == ("PATCH", "/api/v1/namespaces/a/pods/p/status")
    assert clear.content_type == STRATEGIC
    assert json.loads(clear.body) == {
        "metadata": {"uid": "u"},
        "status": {"nominatedNodeName": None},
    }


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (Kind.PERSISTENT_VOLUME, "", "/api/v1/persistentvolumes/x"),
        (Kind.PERSISTENT_VOLUME_CLAIM, "a", "/api/v1/namespaces/a/persistentvolumeclaims/x"),
    ],
)
def test_a_change_of_an_object_is_merged(kind, namespace, path):
    patch = {"metadata": {"resourceVersion": "7"}}
    [call] = object_calls(resource_of(kind), namespace=namespace, name="x", patch=patch)
    assert (call.method, call.path, call.content_type) == ("PATCH", path, MERGE)
    assert json.loads(call.body) == patch


def test_the_rights_that_are_needed():
    """They are what a role has to grant."""
    why, delete = evict()
    [clear] = nomination_calls(namespace="a", name="p", uid=PodUid("u"))
    [volume] = object_calls(resource_of(Kind.PERSISTENT_VOLUME), namespace="", name="v", patch={})
    rights = [(call.method, call.resource) for call in (why, delete, clear, volume)]
    assert rights == [
        ("PATCH", "pods/status"),
        ("DELETE", "pods"),
        ("PATCH", "pods/status"),
        ("PATCH", "persistentvolumes"),
    ]


def test_pods_that_are_gone_are_no_failure_and_objects_are():
    [clear] = nomination_calls(namespace="a", name="p", uid=PodUid("u"))
    [volume] = object_calls(resource_of(Kind.PERSISTENT_VOLUME), namespace="", name="v", patch={})
    assert [c.gone_is_fine for c in (*evict(), clear, volume)] == [True, True, True, False]
