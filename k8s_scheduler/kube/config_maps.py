"""Single ConfigMaps: read, watched and written by name, so that rights can be limited by name.

`list` and `watch` count as being about one object where the field selector names it.
"""

import asyncio
from collections.abc import Callable

import msgspec

from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.kube.errors import (
    UNREADABLE,
    ApiError,
    KubeError,
    ServerError,
    TooManyRequests,
    TransportError,
)
from k8s_scheduler.kube.http.protocol import MERGE_PATCH, Transport
from k8s_scheduler.kube.resources import Resource
from k8s_scheduler.kube.waiting import Sleep
from k8s_scheduler.lib.backoff import Backoff

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
    """Return a ConfigMap; raises KubeError."""
    response = await transport.request("GET", _path(wanted), timeout_seconds=_TIMEOUT_SECONDS)
    if not response.ok:
        raise response.error()
    try:
        return _decode(response.body)
    except UNREADABLE as error:
        raise TransportError(f"ConfigMap {wanted}: the answer can't be read: {error}") from error


async def read_patiently(
    transport: Transport,
    wanted: ConfigMapName,
    *,
    patience_seconds: float,
    sleep: Sleep = asyncio.sleep,
) -> ConfigMap:
    """Return a ConfigMap, from a server that may not be there yet; raises KubeError."""
    backoff = Backoff(0.5, 5.0)
    waited_seconds = 0.0
    while True:
        try:
            return await read_config_map(transport, wanted)
        except KubeError as error:
            passes = not isinstance(error, ApiError) or isinstance(
                error, TooManyRequests | ServerError
            )
            if not passes or waited_seconds >= patience_seconds:
                raise
        wait_seconds = backoff.next_seconds()
        waited_seconds += wait_seconds
        await sleep(wait_seconds)


async def write_config_map(
    transport: Transport,
    wanted: ConfigMapName,
    data: dict[str, str],
    annotations: dict[str, str],
    *,
    version: str,
    may_send: Callable[[], bool],
    timeout_seconds: float,
) -> None:
    """Put texts into a ConfigMap that is still as it was read; raises KubeError, Conflict if not.

    Of several replicas one writes: `may_send` is asked when the first byte is about to leave. One
    that arrives late, after somebody else has written, changes nothing: `version` is another then.
    """
    metadata = {"resourceVersion": version, "annotations": annotations}
    body = msgspec.json.encode({"metadata": metadata, "data": data})
    response = await transport.request(
        "PATCH",
        _path(wanted),
        body=body,
        content_type=MERGE_PATCH,
        timeout_seconds=timeout_seconds,
        may_send=may_send,
    )
    if not response.ok:
        raise response.error()


def _path(wanted: ConfigMapName) -> str:
    return one_config_map(wanted).object_path(wanted.name, namespace=wanted.namespace)
