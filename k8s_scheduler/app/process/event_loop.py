"""The event loop of a process: uvloop's, which does not call a broken connection a failure.

When a TLS connection is reset during its handshake, or closed while bytes come in, uvloop hands
the error to the loop's exception handler, with a traceback. The user of the connection gets it as
well and logs what came of its request, so it is logged at DEBUG here; any other error as usual.
"""

import asyncio
import logging
import ssl
from typing import Any, Final

import uvloop

logger = logging.getLogger(__name__)

_OF_CONNECTIONS: Final = (ConnectionError, ssl.SSLError)
_TLS_ENDED: Final = "Fatal error on SSL protocol"


def new_event_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    loop.set_exception_handler(on_exception)
    return loop


def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Take an exception that no task has waited for."""
    error, message = context.get("exception"), str(context.get("message", ""))
    if isinstance(error, _OF_CONNECTIONS) or message.startswith(_TLS_ENDED):
        fields = {"error": repr(error), "where": message.partition("\n")[0]}
        logger.debug("A connection broke", extra={"fields": fields})
    else:
        loop.default_exception_handler(context)
