"""Which host ports are taken on which rows."""

from collections.abc import Iterable, Mapping

from k8s_scheduler.api.ports import HostPort
from k8s_scheduler.core.state.rows import NodeRow
from k8s_scheduler.lib.hollow import compact

_NO_USERS: Mapping[NodeRow, Mapping[str, int]] = {}


class PortIndex:
    """By protocol and port: the rows that use it, on which addresses, how often."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[NodeRow, dict[str, int]]] = {}

    def add(self, row: NodeRow, ports: Iterable[HostPort]) -> None:
        for port in ports:
            rows = self._users.setdefault((port.protocol, port.port), {})
            addresses = rows.setdefault(row, {})
            addresses[port.ip] = addresses.get(port.ip, 0) + 1

    def remove(self, row: NodeRow, ports: Iterable[HostPort]) -> None:
        for port in ports:
            rows = self._users[port.protocol, port.port]
            addresses = rows[row]
            addresses[port.ip] -= 1
            if not addresses[port.ip]:
                del addresses[port.ip]
                if not addresses:
                    del rows[row]
                    if not rows:
                        del self._users[port.protocol, port.port]
        self._users = compact(self._users)

    def users(self, protocol: str, port: int) -> Mapping[NodeRow, Mapping[str, int]]:
        return self._users.get((protocol, port), _NO_USERS)
