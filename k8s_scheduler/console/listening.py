"""Sockets to listen on, as Go makes them: 0.0.0.0 and :: are all addresses, of both kinds.

kube-scheduler's default is 0.0.0.0, and ours is the same. Where it meant IPv4 alone, probes and
scrapers of a cluster that has nothing but IPv6 would find no listener, and the kubelet would end a
daemon that is well.

A client that asks and does not read the answer holds a connection, and its file descriptor, for as
long as it likes: the system ends it (Linux alone knows how).
"""

import errno
import ipaddress
import socket
from typing import Final

_BACKLOG: Final = 128
# How long an answer may lie unread; connections have it from the socket they came by.
_UNREAD_SECONDS: Final = 60.0
# IPv6 is built in, and switched off on this machine.
_OFF: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens; OSError if it can't be had. Port 0 is any free one."""
    listening = _open(address, port)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = round(_UNREAD_SECONDS * 1000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return listening


def _open(address: str, port: int) -> socket.socket:
    wanted = ipaddress.ip_address(address)
    if wanted.is_unspecified and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        except OSError as error:
            if error.errno not in _OFF:
                raise
    family = socket.AF_INET if wanted.version == 4 else socket.AF_INET6
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)
