"""Bindings made once more, in their order, on a core of this project that says what they score.

The core judges with the default profile and decides nothing: it only sees pods arrive where some
scheduler has put them. Claims and volumes are taken back to what they were before, and follow
their pods.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.profiles import profile_in_force
from testbed.bench.constraints import claims_of
from testbed.client import Object

_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"


@dataclass(frozen=True, slots=True)
class Scores:
    """What the chosen nodes score, of a sample of the pods.

    `refused` are those whose node the core holds to be impossible: they have no score and are in
    neither mean.
    """

    judged: int = 0
    refused: int = 0
    mean: float = math.nan
    mean_best: float = math.nan
    # The share of pods that are on a node with the best score.
    best_share: float = math.nan


def replay(
    start: Iterable[Object],
    objects: Sequence[Object],
    placed: Sequence[Object],
    *,
    sample: int,
) -> Scores:
    """Judge up to `sample` of the pods, each just before it is `placed`.

    Which ones depends on nothing but their names: which kinds of pods are in the sample decides
    about the mean more than where they are, so all schedulers have to be judged by the same pods.
    `start` are nodes and the pods in place; raises ValueError for an object that can't be read.
    """
    cluster = Cluster(profile_in_force(None))
    cluster.start([*start, *(_before(item) for item in objects)])
    bound = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    names = [pod["metadata"]["name"] for pod in placed]
    judged = _sampled(names, sample)
    pairs: list[tuple[int, int]] = []
    refused = 0
    for name, pod in zip(names, placed, strict=True):
        if name in judged:
            found = _judge(cluster, pod)
            if found is None:
                refused += 1
            else:
                pairs.append(found)
        _put(cluster, pod, bound)
    if cluster.problem:
        raise ValueError(f"the placement can't be judged: {cluster.problem}")
    if not pairs:
        return Scores(judged=len(judged), refused=refused)
    return Scores(
        judged=len(judged),
        refused=refused,
        mean=sum(chosen for chosen, _ in pairs) / len(pairs),
        mean_best=sum(best for _, best in pairs) / len(pairs),
        best_share=sum(chosen == best for chosen, best in pairs) / len(pairs),
    )


def _sampled(names: Sequence[str], sample: int) -> frozenset[str]:
    """Return up to `sample` of the names, the same ones in whatever order they come."""
    chance = random.Random(0)
    return frozenset(chance.sample(sorted(names), min(len(names), sample)))


def _judge(cluster: Cluster, pod: Object) -> tuple[int, int] | None:
    """Return what the pod's node scores, and what the best one does; None if it can't be there."""
    waiting = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    cluster.apply({**pod, "spec": waiting, "status": {}})
    known = cluster.pod(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    if known is None:
        raise ValueError(f"the placement can't be judged: {cluster.problem}")
    totals = {str(name): total for name, total in cluster.judge(known).totals.items()}
    chosen = totals.get(pod["spec"]["nodeName"])
    return None if chosen is None else (chosen, max(totals.values()))


def _put(cluster: Cluster, pod: Object, bound: dict[tuple[str, str], Object]) -> None:
    """Let a pod be where it was put, and its claims have what they got."""
    for name in claims_of(pod):
        claim = bound.get((_CLAIM, name))
        volume = bound.get((_VOLUME, claim["spec"].get("volumeName", ""))) if claim else None
        if claim is not None and volume is not None:
            cluster.apply(volume)
            cluster.apply(claim)
    cluster.apply(pod)


def _before(item: Object) -> Object:
    """Return a claim or a volume as it was before anything was bound; anything else as it is."""
    if item["kind"] == _VOLUME:
        spec = {name: value for name, value in item["spec"].items() if name != "claimRef"}
        return {**item, "spec": spec, "status": {"phase": "Available"}}
    if item["kind"] == _CLAIM:
        spec = {name: value for name, value in item["spec"].items() if name != "volumeName"}
        metadata = {k: v for k, v in item["metadata"].items() if k != "annotations"}
        return {**item, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    return item
