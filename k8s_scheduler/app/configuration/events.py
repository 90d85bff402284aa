"""Tells of a refused configuration where its author looks: in an Event on the ConfigMap.

A ConfigMap that is watched is known. Of a mounted file our own pod says which ConfigMap it comes
from; where it comes from something else, the Event is about the pod. A process that does not know
its pod (POD_NAME, POD_NAMESPACE) writes no Event: log and metric remain.

Every replica tells of what it refuses, also one that does not lead: at a start no replica leads,
and a standby may be the only one that was started with the bad one.
"""

import logging
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.api.meta import ObjectReference
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer
from k8s_scheduler.app.own_pod import OwnPod
from k8s_scheduler.kube.config_maps import read_config_map
from k8s_scheduler.kube.errors import KubeError
from k8s_scheduler.kube.events.event import WARNING, EventNote
from k8s_scheduler.kube.events.recorder import EventRecorder
from k8s_scheduler.kube.http.protocol import Transport
from k8s_scheduler.kube.permissions import missing_permission

logger = logging.getLogger(__name__)

REASON: Final = "InvalidConfiguration"
ACTION: Final = "Reloading"
CONTROLLER: Final = "k8s-scheduler"
# The API server takes 1024 bytes.
_NOTE_BYTES: Final = 1024
_SHOWN: Final = 12


class ConfigEvents:
    """Writes Events about the configuration."""

    def __init__(
        self,
        transport: Transport,
        recorder: EventRecorder,
        *,
        file: Path | None,
        pod: OwnPod | None,
    ) -> None:
        """`pod` is our own, if it is known; `file` the configuration's, if it is one."""
        self._transport = transport
        self._recorder = recorder
        self._file = file
        self._pod = pod

    async def refused(self, refusal: RefusedOffer, offer: Offer | None, *, in_force: str) -> None:
        regarding = offer.regarding if offer is not None else None
        if regarding is None:
            regarding = await self._find()
        if regarding is None:
            return
        note = EventNote(
            regarding=regarding,
            type=WARNING,
            reason=REASON,
            action=ACTION,
            note=note_of(refusal, in_force=in_force),
            reporting_controller=CONTROLLER,
        )
        self._recorder.record(note, is_own=True)

    async def _find(self) -> ObjectReference | None:
        if self._pod is None:
            return None
        try:
            pod = await self._pod.read()
        except KubeError as error:
            fields = {"pod": str(self._pod), "error": str(error)}
            logger.warning("Cannot tell which ConfigMap is meant", extra={"fields": fields})
            return None
        if self._file is not None and (found := mounted_config_map(pod, self._file)):
            return await self._identified(ConfigMapName(found, self._pod.namespace))
        return self._pod.reference(pod)

    async def _identified(self, name: ConfigMapName) -> ObjectReference:
        """Return a ConfigMap with its uid, by which `kubectl describe` looks for Events."""
        reference = ObjectReference(kind="ConfigMap", name=name.name, namespace=name.namespace)
        try:
            metadata = (await read_config_map(self._transport, name)).metadata
        except KubeError as error:
            fields = {"config_map": str(name), "error": str(error)}
            said = "The Event names a ConfigMap without its uid"
            missing = missing_permission(error, "configmaps", namespace=name.namespace)
            logger.info(f"{said}: {missing}" if missing else said, extra={"fields": fields})
            return reference
        return msgspec.structs.replace(
            reference, uid=metadata.uid, resource_version=metadata.resource_version
        )


def mounted_config_map(pod: dict[str, Any], file: Path) -> str | None:
    """Return the name of the ConfigMap that a file in the pod comes from.

    Another container may have something else mounted at the same place; ours is told to read it.
    """
    spec = pod.get("spec") or {}
    containers = spec.get("containers") or ()
    ours = [container for container in containers if _is_told_of(container, file)]
    mounts = [
        (PurePosixPath(mount["mountPath"]), mount["name"])
        for container in ours or containers
        for mount in container.get("volumeMounts") or ()
        if file.is_relative_to(mount["mountPath"])
    ]
    if not mounts:
        return None
    _, volume_name = max(mounts, key=lambda mount: len(mount[0].parts))
    for volume in spec.get("volumes") or ():
        if volume["name"] == volume_name:
            name = (volume.get("configMap") or {}).get("name")
            return str(name) if name else None
    return None


def _is_told_of(container: dict[str, Any], file: Path) -> bool:
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    return any(str(file) in word for word in words)


def note_of(refusal: RefusedOffer, *, in_force: str) -> str:
    head = (
        f"Configuration {refusal.hash[:_SHOWN]} is refused, {in_force[:_SHOWN]} stays in force. "
        f"{len(refusal.errors)} error{'s' if len(refusal.errors) != 1 else ''}: "
    )
    whole = head + "; ".join(refusal.errors)
    if len(whole.encode()) <= _NOTE_BYTES:
        return whole
    shown: list[str] = []
    for error in refusal.errors:
        rest = len(refusal.errors) - len(shown) - 1
        attempt = head + "; ".join([*shown, error]) + _more(rest)
        if len(attempt.encode()) > _NOTE_BYTES:
            break
        shown.append(error)
    rest = len(refusal.errors) - len(shown)
    if shown:
        return head + "; ".join(shown) + _more(rest)
    hint = _more(rest)
    room = _NOTE_BYTES - len(head.encode()) - len(hint.encode())
    return head + refusal.errors[0].encode()[:room].decode(errors="ignore") + hint


def _more(rest: int) -> str:
    where = "all of them are in the scheduler's log and at /configz"
    return f" ... and {rest} more; {where}" if rest else f" ({where})"
