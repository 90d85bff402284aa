"""What is said about pods that fit nowhere, beside what kube-scheduler says on the same cluster."""

import pytest

from testbed.bed import Bed
from testbed.options import SCHEDULER as KUBE_SCHEDULER
from testbed.options import BedOptions
from testbed.sandbox import Sandbox
from tests.integration.preemption_situations import of_broken_promises, of_preemption
from tests.integration.situations import of_nodes_and_pods, without_nodes
from tests.integration.volume_situations import of_volumes
from tests.integration.worlds import OURS, THEIRS, furnish, listen

WORLDS = {
    "no nodes": without_nodes(),
    "nodes and pods": of_nodes_and_pods(),
    "volumes": of_volumes(),
    "preemption": of_preemption(),
    "broken promises": of_broken_promises(),
}
SITUATIONS = [(world, name) for world in WORLDS for name in WORLDS[world].waiting]
# The texts of kube-scheduler's plugins. A situation that no longer shows one is worth nothing.
REASONS = (
    "no nodes available to schedule pods",
    "node(s) were unschedulable",
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "pod affinity terms conflict",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match Pod's required features",
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient ephemeral-storage",
    "Insufficient hugepages-2Mi",
    "Insufficient example.com/gpu",
    "Insufficient example.com/tpu",
    "Too many pods",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "Scheduling is blocked due to non-empty scheduling gates",
    'persistentvolumeclaim "ghost" not found',
    'persistentvolumeclaim "leaving" is being deleted',
    'persistentvolumeclaim "lost" bound to non-existent persistentvolume "gone"',
    'persistentvolume "gone" not found',
    "pod has unbound immediate PersistentVolumeClaims",
    "waiting for ephemeral volume controller to create the persistentvolumeclaim",
    "was not created for pod",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) did not have enough free storage",
    "node(s) had no available volume zone",
    "node(s) had no available disk",
    "node(s) exceed max volume count",
    "ReadWriteOncePod access mode already in-use by another pod",
    "Preemption is not helpful for scheduling",
    "No preemption victims found for incoming pod",
    "preemption: not eligible due to preemptionPolicy=Never",
    "preemption: not eligible due to a terminating pod on the nominated node",
    "preemption: found a potential placement for pod on node several, preempting 3 victims",
    "preempting to accommodate a higher priority pod",
    "Preempted by pod <uid of evicts-one> on node one",
)


@pytest.fixture(scope="module")
def both():
    """Return what is said about every pod: world -> (kube-scheduler's, ours)."""
    heard = {}
    # Nothing but the two schedulers may write: what they find is what the world says.
    with Bed(BedOptions(components=(KUBE_SCHEDULER,))) as bed:
        bed.stop(KUBE_SCHEDULER)
        for name, world in WORLDS.items():
            with Sandbox(bed) as sandbox:
                furnish(sandbox, world)
                heard[name] = tuple(listen(sandbox, world, who) for who in (THEIRS, OURS))
    return heard


@pytest.mark.parametrize(("world", "situation"), SITUATIONS)
def test_a_pod_that_fits_nowhere_is_told_so_in_kube_schedulers_words(both, world, situation):
    theirs, ours = both[world]
    assert ours[situation] == theirs[situation]
    silent = situation in WORLDS[world].silent
    status, reason, message = ours[situation].scheduled
    assert (status, reason) == ("False", "SchedulingGated" if silent else "Unschedulable")
    # The condition and the (last) event say the same.
    told = ("Warning", "FailedScheduling", "Scheduling", message)
    assert ours[situation].events[-1:] == (() if silent else (told,))


@pytest.mark.parametrize("world", WORLDS)
def test_pods_on_nodes_are_told_what_kube_scheduler_tells_them(both, world):
    theirs, ours = both[world]
    residents = [pod["metadata"]["name"] for pod in WORLDS[world].residents]
    assert {name: ours[name] for name in residents} == {name: theirs[name] for name in residents}


def test_the_situations_show_every_reason(both):
    texts = [
        text
        for theirs, _ in both.values()
        for said in theirs.values()
        for text in (said.scheduled[2], said.disrupted[2], *(event[-1] for event in said.events))
    ]
    assert [reason for reason in REASONS if not any(reason in text for text in texts)] == []
    assert len(SITUATIONS) >= 30
