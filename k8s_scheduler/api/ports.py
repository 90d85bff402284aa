"""Host ports: which a pod asks for, and when two of them get in each other's way."""

from collections.abc import Collection
from typing import NamedTuple

from k8s_scheduler.api.pod import Pod

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the API's word for "all addresses of the node"


class HostPort(NamedTuple):
    """A port of the node itself."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: "HostPort") -> bool:
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or ANY_ADDRESS in (self.ip, other.ip)

    def is_taken(self, addresses: Collection[str]) -> bool:
        """Return whether it can't be had where the same port is taken on these addresses."""
        if self.ip == ANY_ADDRESS:
            return bool(addresses)
        return self.ip in addresses or ANY_ADDRESS in addresses


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars; plain init containers do not count."""
    containers = pod.spec.containers or []
    if pod.spec.init_containers:
        sidecars = (c for c in pod.spec.init_containers if c.restart_policy == "Always")
        containers = [*containers, *sidecars]
    # Plain loops: every pod that is placed is asked, and nearly none has any.
    found: list[HostPort] = []
    for container in containers:
        for port in container.ports or ():
            if port.host_port > 0:
                address = port.host_ip or ANY_ADDRESS
                found.append(HostPort(address, port.protocol or "TCP", port.host_port))
    return tuple(found)
