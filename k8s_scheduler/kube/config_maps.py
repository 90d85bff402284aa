"""Single ConfigMaps: read, watched and written by name, so that rights can be limited by name.

`list` and `watch` count as being about one object where the field selector names it.
"""

import asyncio

import msgspec

from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.kube.errors import UNREADABLE, KubeError, TransportError
from k8s_scheduler.kube.http.caller import Caller, RetryPolicy
from k8s_scheduler.kube.http.protocol import MERGE_PATCH, Response, Transport
from k8s_scheduler.kube.http.response_meaning import is_unavailable
from k8s_scheduler.kube.resources import Resource
from k8s_scheduler.kube.waiting import Sleep, Timing

_TIMEOUT_SECONDS = 10.0
_decode = msgspec.json.Decoder(ConfigMap).decode


def one_config_map(wanted: ConfigMapName) -> Resource[ConfigMap]:
    """Return the resource that holds this ConfigMap and nothing else."""
    return Resource(
        group="",
        version="v1",
        plural="configmaps",
        kind="ConfigMap",
        namespaced=True,
        type=ConfigMap,
        field_selector=f"metadata.name={wanted.name}",
        namespace=wanted.namespace,
    )


async def read_config_map(transport: Transport, wanted: ConfigMapName) -> ConfigMap:
    caller = Caller(transport=transport, timeout_seconds=_TIMEOUT_SECONDS)
    return _config_map(await caller.send("GET", _path(wanted)), wanted)


async def read_patiently(
    transport: Transport,
    wanted: ConfigMapName,
    *,
    patience_seconds: float,
    sleep: Sleep = asyncio.sleep,
) -> ConfigMap:
    """Return a ConfigMap, from a server that may not be there yet; raises KubeError."""
    policy = RetryPolicy(
        tries=None,
        is_retried=is_unavailable,
        first_wait_seconds=0.5,
        longest_retry_after_seconds=0.0,
        patience_seconds=patience_seconds,
    )
    caller = Caller(
        transport=transport, timeout_seconds=_TIMEOUT_SECONDS, timing=Timing(sleep=sleep)
    )
    tries = caller.tries(policy)
    async for _ in tries:
        response = await tries.send("GET", _path(wanted))
        try:
            if response is not None:
                return _config_map(response, wanted)
        except TransportError as error:
            # What can't be read is no answer of an API server.
            tries.problem = error
    raise tries.problem or KubeError(f"ConfigMap {wanted} was not read")


def _config_map(response: Response, wanted: ConfigMapName) -> ConfigMap:
    if not response.ok:
        raise response.error()
    try:
        return _decode(response.body)
    except UNREADABLE as error:
        raise TransportError(f"ConfigMap {wanted}: the answer can't be read: {error}") from error


async def write_config_map(
    caller: Caller,
    wanted: ConfigMapName,
    data: dict[str, str],
    annotations: dict[str, str],
    *,
    version: str,
) -> None:
    """Put texts into a ConfigMap that is still as it was read; raises KubeError, Conflict if not.

    Of several replicas one writes: `caller.may_write` is asked when the first byte is about to
    leave. A write that arrives late, after another replica's, changes nothing: the server has
    another `version` then.
    """
    metadata = {"resourceVersion": version, "annotations": annotations}
    body = msgspec.json.encode({"metadata": metadata, "data": data})
    response = await caller.send("PATCH", _path(wanted), body=body, content_type=MERGE_PATCH)
    if not response.ok:
        raise response.error()


def _path(wanted: ConfigMapName) -> str:
    return one_config_map(wanted).object_path(wanted.name, namespace=wanted.namespace)
