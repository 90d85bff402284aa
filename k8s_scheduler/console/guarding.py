"""Puts a gate before every path of the server, also those that are not served."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Middleware

from k8s_scheduler.console.gate import Denial, Gate, Knock
from k8s_scheduler.kube.reviews import AUTHENTICATED, User

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HEADERS: Final = {
    "Cache-Control": "no-cache, private",
    "Content-Type": "application/json",
    "X-Content-Type-Options": "nosniff",
}


def guarded_by(gate: Gate) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        # The path as it is routed: what is asked for is what is shown. One that is no text leads
        # nowhere, and is only made fit to be written down.
        path = request.path.encode("utf-8", "backslashreplace").decode()
        refusal = await gate.admit(
            Knock(
                request.method,
                path,
                request.headers.get("Authorization", ""),
                certified_user(request.get_extra_info("peercert")),
                request.remote or "",
            )
        )
        return await handler(request) if refusal is None else _answer(refusal)

    return guard


def certified_user(certificate: Any) -> User | None:
    """Return the user that a verified client certificate names, by its CN and every O.

    Of several CNs the last one counts, as it does for the API server.
    """
    subject = (certificate or {}).get("subject", ())
    named = [pair for part in subject for pair in part]
    name = next((value for key, value in reversed(named) if key == "commonName"), "")
    if not name:
        return None
    groups = tuple(value for key, value in named if key == "organizationName")
    return User(name, groups=(*groups, AUTHENTICATED))


def _answer(refusal: Denial) -> web.Response:
    """Write a refusal as kube-scheduler does: a Status, and for 500 a plain text."""
    if refusal.status == 500:
        return web.Response(text=refusal.message + "\n", status=500)
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "reason": refusal.reason,
    }
    if refusal.status == 403:
        status["details"] = {}
    body = json.dumps(status | {"code": refusal.status}, separators=(",", ":"), ensure_ascii=False)
    retry = {"Retry-After": "1"} if refusal.status == 429 else {}
    return web.Response(body=f"{body}\n".encode(), status=refusal.status, headers=_HEADERS | retry)
