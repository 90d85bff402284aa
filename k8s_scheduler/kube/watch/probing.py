"""The current version of a resource on the API server.

A list without a resourceVersion is consistent: it shows everything that was written before it was
asked for, and its version says so. One object is enough to learn that version. No selector is sent
along: with one, the server may have to read many objects to find the first.
"""

from typing import Final

from k8s_scheduler.kube.resources import T
from k8s_scheduler.kube.watch.decoding import read_list
from k8s_scheduler.kube.watch.reflector_parts import ReflectorParts
from k8s_scheduler.kube.watch.streams import MALFORMED, StreamError

_ONE: Final = {"limit": "1"}


async def current_version(parts: ReflectorParts[T]) -> str:
    """Return the version up to which the server has written now; KubeError if it does not say."""
    response = await parts.transport.request(
        "GET",
        parts.resource.list_path,
        query=_ONE,
        timeout_seconds=parts.pace.probe_timeout_seconds,
    )
    if response.status != 200:
        raise response.error()
    version = read_list(response.body).metadata.resource_version
    if not version:
        raise StreamError(MALFORMED, "the list has no resourceVersion")
    return version
