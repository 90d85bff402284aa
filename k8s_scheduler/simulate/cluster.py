"""A cluster made of plain objects, and the one scheduler that watches it.

Objects come as decoded JSON, the way files hold them. They are given the API server's defaults
and their types, and what changed reaches the scheduler as messages, as from a watch: one engine
lives through all of it. An API server would refuse some changes that a file can ask for (another
node or uid for the same pod); the scheduler then sees the old pod go and a new one come.

An object that cannot be read has a problem, kept until it is replaced or removed; so a mistake
does not pass unnoticed, and ends where it was put right.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.kinds import BUILT_IN
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod, PodSpec, PodStatus
from k8s_scheduler.core.inspection import Judgement, Tally
from k8s_scheduler.core.messages.incoming import (
    Message,
    NodeChanged,
    ObjectChanged,
    PodChanged,
)
from k8s_scheduler.core.messages.outgoing import Log, Severity
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.kube.resources import resource_of
from k8s_scheduler.obs.metrics import Metrics, SchedulerMetrics
from k8s_scheduler.simulate.defaulting.objects import DEFAULT_NAMESPACE, defaulted

POD: Final = "Pod"
NODE: Final = "Node"
_NOW: Final = 0.0
_FINISHED: Final = ("Succeeded", "Failed")

_KINDS: Final = {kind.name: kind for kind in BUILT_IN}
# The version of each kind that is read; other versions and other groups' kinds of the same name
# are not what scheduling looks at.
API_VERSIONS: Final = {
    POD: "v1",
    NODE: "v1",
    **{name: resource_of(kind).api_version for name, kind in _KINDS.items()},
}

ObjectKey: TypeAlias = tuple[str, str, str]


class Cluster:
    """What is there, as one scheduler with one profile sees it."""

    def __init__(
        self,
        profile: ResolvedProfile,
        *,
        metrics: SchedulerMetrics | None = None,
        keeps_evaluations: bool = True,
    ) -> None:
        self._scheduler = Scheduler(
            Setup(profiles=(profile,), keeps_evaluations=keeps_evaluations),
            metrics=metrics or Metrics().scheduler,
        )
        self._scheduler_name = profile.scheduler_name
        self._pods: dict[ObjectKey, Pod] = {}
        self._arrivals = 0
        self._problems: dict[ObjectKey, str] = {}

    @property
    def tally(self) -> Tally:
        return self._scheduler.tally

    @property
    def problem(self) -> str:
        return "; ".join(self._problems.values())

    def start(self, objects: Iterable[dict[str, Any]]) -> None:
        later = []
        for raw in objects:
            if raw.get("kind") == POD:
                later.append(raw)
            else:
                self.apply(raw)
        for raw in later:
            self.apply(raw)

    def apply(self, raw: dict[str, Any]) -> None:
        """Create or replace an object; kinds that scheduling does not read pass by."""
        kind = raw.get("kind")
        if not isinstance(kind, str) or not kind:
            self._problems["", "", ""] = f"an object has no kind: {_shortened(raw)}"
            return
        if API_VERSIONS.get(kind) != raw.get("apiVersion", API_VERSIONS.get(kind)):
            return
        if kind not in API_VERSIONS:
            return
        try:
            key = _key_of(kind, raw)
        except msgspec.ValidationError as error:
            self._problems[kind, "", ""] = f"{kind} {_shortened(raw)}: {error}"
            return
        self._problems.pop(key, None)
        try:
            messages = self._messages(key, defaulted(raw))
        except msgspec.ValidationError as error:
            self._problems[key] = f"{_named(key)}: {error}"
            return
        self._send(key, messages)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object; one that is not there is gone already."""
        if kind not in API_VERSIONS:
            return
        key = _key(kind, namespace, name)
        self._problems.pop(key, None)
        if kind == POD:
            pod = self._pods.pop(key, None)
            self._send(key, [_gone(pod)] if pod else [])
        elif kind == NODE:
            self._send(key, [NodeChanged(_NOW, NodeName(name), None)])
        else:
            self._send(key, [ObjectChanged(_NOW, _KINDS[kind], key[1], name, None)])

    def pod(self, namespaced_name: str) -> Pod | None:
        namespace, _, name = namespaced_name.rpartition("/")
        return self._pods.get(_key(POD, namespace, name))

    def judge(self, pod: Pod) -> Judgement:
        return self._scheduler.judge(pod)

    def _messages(self, key: ObjectKey, raw: dict[str, Any]) -> list[Message]:
        kind, namespace, name = key
        if kind == POD:
            return self._pod_messages(key, _convert(raw, Pod))
        if kind == NODE:
            return [NodeChanged(_NOW, NodeName(name), _convert(raw, Node))]
        known = _KINDS[kind]
        return [ObjectChanged(_NOW, known, namespace, name, _convert(raw, known.type))]

    def _pod_messages(self, key: ObjectKey, pod: Pod) -> list[Message]:
        namespace, name = key[1:]
        metadata = msgspec.structs.replace(
            pod.metadata,
            namespace=namespace,
            # A file need not make up uids; names are as good here.
            uid=pod.metadata.uid or f"{namespace}/{name}",
            # Files need not say when pods were created either: it is when they first come up.
            creation_timestamp=self._created(key),
        )
        # The profile in force serves every pod, whatever scheduler it asks for.
        spec = msgspec.structs.replace(pod.spec, scheduler_name=self._scheduler_name)
        pod = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        before = self._pods.get(key)
        self._pods[key] = pod
        messages: list[Message] = []
        if before is not None and _is_another(before, pod):
            messages.append(_gone(before))
        if pod.status.phase in _FINISHED:
            # The watch leaves finished pods out.
            messages.append(_gone(pod))
        else:
            messages.append(PodChanged(_NOW, PodUid(pod.metadata.uid), _as_others_see(pod)))
        return messages

    def _created(self, key: ObjectKey) -> str:
        """Return when a pod was created; later ones compare as larger."""
        known = self._pods.get(key)
        if known is not None:
            return known.metadata.creation_timestamp
        self._arrivals += 1
        return f"{self._arrivals:012}"

    def _send(self, key: ObjectKey, messages: Iterable[Message]) -> None:
        for message in messages:
            for instruction in self._scheduler.handle(message):
                if isinstance(instruction, Log) and instruction.severity is Severity.ERROR:
                    self._problems[key] = f"{_named(key)}: {instruction.fields.get('error', '')}"


def _is_another(before: Pod, after: Pod) -> bool:
    """Return whether no API server would let one become the other."""
    return before.metadata.uid != after.metadata.uid or (
        bool(before.spec.node_name) and before.spec.node_name != after.spec.node_name
    )


def _as_others_see(pod: Pod) -> Pod:
    """Return what a scheduler that was asked about other pods knows of this one.

    kube-scheduler knows a nominated pod by reference, and looks up the rest in its queue. There is
    no queue here, pods are only asked about: of a nominated one its name and its node are known,
    and that it takes a pod's place there.
    """
    if pod.spec.node_name or not pod.status.nominated_node_name:
        return pod
    metadata = msgspec.structs.replace(pod.metadata, labels=None)
    return Pod(
        metadata=metadata,
        spec=PodSpec(scheduler_name=pod.spec.scheduler_name),
        status=PodStatus(nominated_node_name=pod.status.nominated_node_name),
    )


def _gone(pod: Pod) -> PodChanged:
    return PodChanged(_NOW, PodUid(pod.metadata.uid), None)


def _key(kind: str, namespace: str, name: str) -> ObjectKey:
    if kind == NODE or (kind in _KINDS and not _KINDS[kind].namespaced):
        return kind, "", name
    return kind, namespace or DEFAULT_NAMESPACE, name


class _Identity(msgspec.Struct):
    name: str
    namespace: str | None = None


class _Identified(msgspec.Struct):
    metadata: _Identity


def _key_of(kind: str, raw: dict[str, Any]) -> ObjectKey:
    identity = msgspec.convert(raw, _Identified).metadata
    if not identity.name:
        raise msgspec.ValidationError("Expected a name - at `$.metadata.name`")
    return _key(kind, identity.namespace or "", identity.name)


def _convert(raw: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        # Null stands for what is not there, wherever the API has it.
        return msgspec.convert(_without_nulls(raw), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def _named(key: ObjectKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _shortened(raw: dict[str, Any]) -> str:
    text = msgspec.json.encode(raw).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
