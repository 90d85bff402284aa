"""The client-side rate limit of `clientConnection.qps` and `burst`.

It wraps a transport, so that what must never wait behind others (lease renewals) can go past it.
Watches are not limited: they are few, and a scheduler that cannot see must not decide.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from k8s_scheduler.kube.errors import NotSent
from k8s_scheduler.kube.http import JSON, Response, Stream, Transport
from k8s_scheduler.lib.token_bucket import TokenBucket


def throttled(transport: Transport, *, qps: float, burst: int) -> Transport:
    """Return a transport that sends at most `qps` requests a second; `qps <= 0` is no limit."""
    return transport if qps <= 0 else _Throttled(transport, _bucket(qps, burst))


def _bucket(qps: float, burst: int) -> TokenBucket:
    return TokenBucket(qps, max(burst, 1), asyncio.get_running_loop().time())


class _Throttled:
    def __init__(self, transport: Transport, bucket: TokenBucket) -> None:
        self._transport = transport
        self._bucket = bucket

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
    ) -> Response:
        now = asyncio.get_running_loop().time()
        wait_seconds = self._bucket.reserve(now, longest_seconds=timeout_seconds)
        if wait_seconds is None:
            raise NotSent(f"the rate limit leaves no room within {timeout_seconds:g} s")
        if wait_seconds > 0:
            await asyncio.sleep(wait_seconds)
        return await self._transport.request(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            timeout_seconds=timeout_seconds - wait_seconds,
        )

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(path, query=query)
