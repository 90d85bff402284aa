"""The model server decides races as the real one does."""

import json
import random

import pytest

from tests.fakes.transport import Request
from tests.simulation import documents as doc
from tests.simulation.client import Client, Weather
from tests.simulation.history import History
from tests.simulation.loop import VirtualLoop
from tests.simulation.server import LEASES, NODES, PODS, ModelServer

POD = f"/api/v1/namespaces/{doc.NAMESPACE}/pods/p"


@pytest.fixture
def server():
    loop = VirtualLoop()
    made = ModelServer(loop, History(), streaming_lists=True)
    yield made
    loop.close()


def ask(server, method, path, body=None, **query):
    content = None if body is None else json.dumps(body).encode()
    request = Request(method, path, query, content)
    call = server.history.sent(server.loop.now, "a1", request)
    return server.serve(call)


def bind(server, uid, node="n"):
    body = {"metadata": {"name": "p", "uid": uid}, "target": {"name": node}}
    return ask(server, "POST", f"{POD}/binding", body)


def create(server, name="p", **spec):
    return server.create(PODS, doc.pod(name, milli_cpu=100, **spec))["metadata"]["uid"]


def message(response):
    return json.loads(response.body)["message"]


def test_a_pod_is_bound_once_and_says_that_it_is_scheduled(server):
    uid = create(server)
    assert bind(server, uid).status == 201
    pod = server.object(POD)
    assert pod["spec"]["nodeName"] == "n"
    assert pod["status"]["conditions"] == [{"type": "PodScheduled", "status": "True"}]
    again = bind(server, uid, "other")
    assert again.status == 409
    assert 'already assigned to node "n"' in message(again)


def test_the_binding_clears_the_nomination(server):
    uid = create(server)
    ask(server, "PATCH", f"{POD}/status", {"status": {"nominatedNodeName": "n"}})
    assert server.object(POD)["status"]["nominatedNodeName"] == "n"
    bind(server, uid)
    assert "nominatedNodeName" not in server.object(POD)["status"]


def test_a_namesake_a_leaving_and_a_gated_pod_are_not_bound(server):
    assert bind(server, "uid").status == 404
    uid = create(server, schedulingGates=[{"name": "g"}])
    assert "UID in precondition" in message(bind(server, "another"))
    assert "schedulingGates" in message(bind(server, uid))
    server.patch(POD, {"spec": {"schedulingGates": None}})
    server.patch(POD, {"metadata": {"deletionTimestamp": "now"}})
    assert "is being deleted" in message(bind(server, uid))


def test_a_pod_on_a_node_leaves_in_two_steps_and_others_at_once(server):
    uid = create(server)
    other = {"preconditions": {"uid": "another"}}
    assert ask(server, "DELETE", POD, other).status == 409
    bind(server, uid)
    assert ask(server, "DELETE", POD, {"preconditions": {"uid": uid}}).status == 200
    assert server.object(POD)["metadata"]["deletionTimestamp"]
    create(server, "q")
    ask(server, "DELETE", POD[:-1] + "q")
    assert server.object(POD[:-1] + "q") is None


def test_a_status_patch_changes_the_status_alone_and_hits_no_namesake(server):
    uid = create(server)
    body = {"metadata": {"uid": uid}, "spec": {"nodeName": "n"}, "status": {"phase": "Odd"}}
    assert ask(server, "PATCH", f"{POD}/status", body).status == 200
    assert server.object(POD)["status"]["phase"] == "Odd"
    assert "nodeName" not in server.object(POD)["spec"]
    body["metadata"]["uid"] = "another"
    refused = ask(server, "PATCH", f"{POD}/status", body)
    assert (refused.status, "metadata.uid" in message(refused)) == (422, True)


def test_a_write_on_an_old_version_is_refused(server):
    node = server.create(NODES, doc.node("n", zone="z", milli_cpu=1, pods=1))
    assert ask(server, "PUT", f"{NODES}/n", node).status == 200
    assert ask(server, "PUT", f"{NODES}/n", node).status == 409


def test_pages_are_of_one_moment_and_expire(server):
    for name in ("p", "q", "r"):
        create(server, name)
    first = json.loads(ask(server, "GET", PODS, limit="2").body)
    token = first["metadata"]["continue"]
    server.remove(f"{POD[:-1]}r")
    second = json.loads(ask(server, "GET", PODS, **{"limit": "2", "continue": token}).body)
    assert [item["metadata"]["name"] for item in second["items"]] == ["r"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    create(server, "s")
    token = json.loads(ask(server, "GET", PODS, limit="1").body)["metadata"]["continue"]
    server.compact()
    assert ask(server, "GET", PODS, **{"continue": token}).status == 410


def test_one_lease_is_watched_from_a_version_and_from_nowhere(server):
    def lease(name, namespace="kube-system"):
        return server.create(
            LEASES, {"metadata": {"name": name, "namespace": namespace}, "spec": {}}
        )

    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    client = Client(server, "a1", weather=Weather(), rng=random.Random(1))

    def shown(version):
        query = {"fieldSelector": "metadata.name=l", "resourceVersion": version}
        request = Request("WATCH", path, {**query, "timeoutSeconds": "5"})

        async def read():
            watch = server.open_watch(request, client)
            lines = b"".join([chunk async for chunk in watch]).splitlines()
            server.let_go(watch)
            return [json.loads(line) for line in lines]

        events = server.loop.run_until_complete(read())
        return [(e["type"], e["object"]["metadata"]["resourceVersion"]) for e in events]

    first = lease("l")["metadata"]["resourceVersion"]
    lease("other")
    lease("l", namespace="elsewhere")
    second = server.patch(f"{path}/l", {"spec": {"holderIdentity": "a"}})["metadata"]
    assert shown(first) == [("MODIFIED", second["resourceVersion"])]
    assert shown("0") == [("ADDED", second["resourceVersion"])]
    server.compact()
    assert shown("0") == [("ADDED", second["resourceVersion"])]
    request = Request("WATCH", path, {"resourceVersion": first, "timeoutSeconds": "5"})
    assert server.open_watch(request, client).status == 410


def test_a_token_leads_on_in_its_own_list(server):
    for name in ("p", "q"):
        create(server, name)
        server.create(NODES, doc.node(name, zone="z", milli_cpu=1, pods=1))
    tokens = [
        json.loads(server.answer(Request("GET", path, {"limit": "1"})).body)["metadata"]["continue"]
        for path in (PODS, NODES)
    ]
    assert len(set(tokens)) == 2
