"""A real HTTPS server's behaviour and a login for it, for tests of the transport."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from aiohttp import web

from k8s_scheduler.kube.auth.login import Login

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """A server that does what `handler` says and writes down what it is asked."""

    address: str = ""
    handler: Handler | None = None
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        assert self.handler is not None
        return await self.handler(request)


@dataclass
class Source:
    """A login that tests change by hand."""

    login: Login
    renewals: int = 0
    on_renew: Callable[[], None] = lambda: None

    def describe(self) -> str:
        return "a test"

    def files(self) -> tuple[Path, ...]:
        return ()

    def read(self, *, renew: bool) -> Login:
        if renew:
            self.renewals += 1
            self.on_renew()
        return self.login


def says(status: int, text: str = "{}", **headers: str) -> Handler:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers=headers)

    return handler


def in_turn(*handlers: Handler) -> Handler:
    left = list(handlers)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(request)

    return handler


async def reset(request: web.Request) -> web.Response:
    """Break the connection after the request has been read."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hang(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def common_name(request: web.Request) -> web.Response:
    """Answer with the name in the client's certificate."""
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert") or {}
    subject = dict(pair for part in peer.get("subject", ()) for pair in part)
    return web.Response(text=subject.get("commonName", "nobody"))
