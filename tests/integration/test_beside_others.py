"""Beside other schedulers on a real API server: races, rejections, and nodes of one's own."""

import asyncio

from testbed.installation import shipped_configuration
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import (
    SCHEDULER,
    bound,
    events,
    node_of,
    running,
    says,
    wait_bound,
)
from tests.integration.overtaken import racing, soon

RACER = "racer"
OWNED = "example.com/scheduler"
OWNERSHIP = f"""---
apiVersion: k8s-scheduler.io/v1alpha1
kind: SchedulerExtras
nodeOwnership:
  nodeSelector:
    nodeSelectorTerms:
      - matchExpressions:
          - {{key: {OWNED}, operator: In, values: [{SCHEDULER}]}}
"""


async def test_a_pod_that_another_client_binds_first_is_left_there_and_counted(sandbox):
    await asyncio.to_thread(
        sandbox.create_nodes, [make_node("n1", cpu="4"), make_node("n2", cpu="4")]
    )
    overtaken = []

    def overtake(name, node):
        if name == "p" and not overtaken:
            overtaken.append(node)
            pod = {"kind": "Pod"} | sandbox.pods()["p"]
            sandbox.bind(pod, "n1" if node == "n2" else "n2")

    async with racing(sandbox, RACER, overtake) as racer:
        pods = [make_pod("p", cpu="3", scheduler_name=RACER)]
        await asyncio.to_thread(sandbox.create_pods, pods)
        labels = {"reason": "assigned_elsewhere"}
        await soon(
            lambda: racer.count("k8s_scheduler_bind_failures_total", **labels) == 1, "the 409"
        )
        # Its room was given back: the next pod needs it.
        pods = [make_pod("q", cpu="3", scheduler_name=RACER)]
        await asyncio.to_thread(sandbox.create_pods, pods)
        await soon(lambda: node_of(sandbox, "q"), "the second pod is bound")
        placed = await asyncio.to_thread(bound, sandbox)
        (chosen,) = overtaken
        assert placed == {"p": "n1" if chosen == "n2" else "n2", "q": chosen}
        assert racer.count("k8s_scheduler_overfilled_nodes") == 0
    assert [name for name, _ in events(sandbox, "Scheduled")] == ["q"]


async def test_room_that_two_schedulers_gave_away_is_seen_counted_and_told(sandbox):
    await asyncio.to_thread(sandbox.create_nodes, [make_node("n1", cpu="4")])
    (foreign,) = await asyncio.to_thread(
        sandbox.create_pods, [make_pod("theirs", cpu="3", scheduler_name="somebody")]
    )

    def overtake(_name, node):
        sandbox.bind(foreign, node)

    async with racing(sandbox, RACER, overtake) as racer:
        pods = [make_pod("ours", cpu="3", scheduler_name=RACER)]
        await asyncio.to_thread(sandbox.create_pods, pods)
        labels = {"cause": "race", "resource": "cpu", "first": "others"}
        await soon(
            lambda: racer.count("k8s_scheduler_node_overfilled_total", **labels) == 1, "the race"
        )
        assert racer.count("k8s_scheduler_overfilled_nodes") == 1
        told = await soon(lambda: events(sandbox, "NodeOverfilled"), "the event")
        note = (
            "node n1 was filled by two schedulers at once: cpu 6000m of 4000m; this pod came "
            f"second, {sandbox.namespace}/theirs is of somebody"
        )
        assert told == [("ours", note)]
        await asyncio.to_thread(sandbox.delete, f"{sandbox.path}/pods/theirs")
        await soon(lambda: racer.count("k8s_scheduler_overfilled_nodes") == 0, "room again")


def test_a_pod_that_its_kubelet_rejects_is_counted_by_reason(sandbox):
    sandbox.create_nodes([make_node("n1")])
    failed = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: no room"}
    with running(sandbox.bed) as daemon:
        ours, theirs, deleted = sandbox.create_pods(
            [
                make_pod("ours", scheduler_name=SCHEDULER),
                make_pod("theirs", scheduler_name="somebody"),
                make_pod("deleted", scheduler_name=SCHEDULER),
            ]
        )
        sandbox.bind(theirs, "n1")
        wait_bound(sandbox, 3)
        sandbox.delete(f"{sandbox.path}/pods/deleted")
        for pod in (ours, theirs):
            # As a kubelet does that finds no room.
            path = f"{sandbox.path}/pods/{pod['metadata']['name']}/status"
            sandbox.client.patch(path, {"status": failed})
        name = "k8s_scheduler_pods_rejected_total"

        def counted():
            return {k: v for k, v in daemon.metrics().items() if k.startswith(name)}

        wanted = {
            f'{name}{{reason="OutOfcpu",scheduler="ours"}}': 1,
            f'{name}{{reason="OutOfcpu",scheduler="others"}}': 1,
        }
        eventually(lambda: counted() == wanted, 20, "both are counted, the deleted one is not")
    assert deleted["metadata"]["name"] not in daemon.log.read_text().split("rejected by", 1)[-1]


def test_a_scheduler_keeps_to_its_own_nodes(sandbox):
    sandbox.create_nodes([make_node("theirs", cpu="8"), make_node("n2", cpu="1")])
    with running(sandbox.bed, configuration=shipped_configuration() + OWNERSHIP):
        sandbox.create_pods([make_pod("p", cpu="500m", scheduler_name=SCHEDULER)])
        text = (
            "0/2 nodes are available: 2 node(s) didn't match the node ownership of this scheduler. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        eventually(lambda: says(sandbox, "p", "message") == text, 20, "why it waits")
        labels = {"metadata": {"labels": {OWNED: SCHEDULER}}}
        sandbox.client.patch("/api/v1/nodes/n2", labels)
        eventually(lambda: node_of(sandbox, "p") == "n2", 20, "the node is ours now")
