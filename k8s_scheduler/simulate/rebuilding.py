"""The state before a decision as a scenario, which `evaluate` and the oracle read.

A scenario has no queue and no time: what a decision depends on is nodes, the pods on them (those
that are only assumed to be there among them), promises of room, and objects of other kinds as they
are assumed to be. Objects hold what scheduling reads, nothing more.

Two things a scenario can't say: promises count as a pod's place only, without what the pod asks
for (`Cluster` has the reason); and where only a part of the nodes was looked at, which.
"""

import functools
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from k8s_scheduler.api.config.types import API_VERSION, KIND, ResolvedProfile
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.messages.checkpoint import Checkpoint, ObjectEntry
from k8s_scheduler.simulate.cluster import API_VERSIONS, NODE, POD
from k8s_scheduler.simulate.files import Scenario

_SCORE: Final = "score"


def scenario_of(
    identifier: str, state: Checkpoint, pod: Pod, *, profile: ResolvedProfile
) -> Scenario:
    return Scenario(
        id=identifier,
        config=_configuration(profile),
        objects=list(_objects(state, pod)),
        pending=[f"{pod.metadata.namespace}/{pod.metadata.name}"],
    )


def _objects(state: Checkpoint, pod: Pod) -> Iterator[dict[str, Any]]:
    names = {entry.row: entry.name for entry in state.nodes}
    for node in state.nodes:
        if node.node is not None:
            yield _plain(NODE, node.node)
    for entry in state.objects:
        # `evaluate` reads no custom resources.
        if not entry.kind.is_custom:
            yield _plain(entry.kind.name, _assumed(entry))
    placed = [_placed(entry.pod, names[entry.row]) for entry in state.pods]
    # `evaluate` takes the order in which pods come up for the order in which they were made.
    placed.sort(key=lambda p: p.metadata.creation_timestamp)
    for each in placed:
        yield _plain(POD, each)
    for promise in state.nominations:
        if promise.pod.metadata.uid != pod.metadata.uid:
            status = msgspec.structs.replace(promise.pod.status, nominated_node_name=promise.node)
            yield _plain(POD, msgspec.structs.replace(promise.pod, status=status))
    yield _plain(POD, pod)


def _placed(pod: Pod, node: str) -> Pod:
    """Return a pod on its node: one that is only assumed there does not say so itself."""
    if pod.spec.node_name == node:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _assumed(entry: ObjectEntry) -> Any:
    known = entry.object if entry.assumed is None else entry.assumed
    return msgspec.convert(msgspec.to_builtins(known), entry.kind.type)


def _plain(kind: str, value: msgspec.Struct) -> dict[str, Any]:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **_written(value)}


def _written(value: Any) -> Any:
    """Return a wire value as JSON has it, with every default that is not empty.

    The API server has filled in what we take for the default, so types leave it out where they
    are encoded; a reader need not fill in the same.
    """
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _written(found)
            for field in _fields(type(value))
            if (found := getattr(value, field.name)) or found != field.default
        }
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    if isinstance(value, dict):
        return {key: _written(item) for key, item in value.items()}
    return value


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _configuration(profile: ResolvedProfile) -> dict[str, Any]:
    """Return a configuration that comes to just this profile, point by point."""
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}]}}
    for point, uses in profile.points.items():
        if uses:
            plugins[point] = {"enabled": [_use(point, use.name, use.weight) for use in uses]}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [
            {
                "schedulerName": profile.scheduler_name,
                "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
                "plugins": plugins,
                "pluginConfig": [
                    {"name": name, "args": arguments}
                    for name, arguments in sorted(profile.plugin_args.items())
                ],
            }
        ],
    }


def _use(point: str, name: str, weight: int) -> dict[str, Any]:
    return {"name": name, "weight": weight} if point == _SCORE and weight else {"name": name}
