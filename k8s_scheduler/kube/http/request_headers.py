"""The headers of every request, made once per token instead of once per request."""

import platform
import sys
from collections.abc import Mapping
from typing import Final

from multidict import CIMultiDict

from k8s_scheduler import __version__
from k8s_scheduler.kube.http.protocol import JSON

# Go's names for the platform, as in the User-Agent of every Go client.
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}

_BREAKS: Final = frozenset("\r\n\0")


def user_agent(system: str = sys.platform, machine: str = platform.machine()) -> str:
    """Return our User-Agent, in the form of client-go's."""
    return f"k8s-scheduler/{__version__} ({system}/{_MACHINES.get(machine, machine)}) scheduler"


class RequestHeaders:
    """Puts together and remembers headers."""

    def __init__(self) -> None:
        self._user_agent = user_agent()
        self._login: Mapping[str, str] | None = None
        self._made: dict[str, CIMultiDict[str]] = {}
        self._encoded: dict[str, bytes] = {}

    def make(self, login: Mapping[str, str], *, content_type: str) -> CIMultiDict[str]:
        if login is not self._login:
            self._login = login
            self._made.clear()
            self._encoded.clear()
        made = self._made.get(content_type)
        if made is None:
            made = CIMultiDict(login)
            made["Accept"] = JSON
            # Compression would cost more CPU, on both sides, than it saves on a local network.
            made["Accept-Encoding"] = "identity"
            made["User-Agent"] = self._user_agent
            if content_type:
                made["Content-Type"] = content_type
            self._made[content_type] = made
        return made

    def encode(self, login: Mapping[str, str], *, content_type: str) -> bytes:
        """Return the same as lines; ValueError for a header that would be more than one line."""
        found = self._encoded.get(content_type) if login is self._login else None
        if found is None:
            headers = self.make(login, content_type=content_type)
            lines = [f"{name}: {value}" for name, value in headers.items()]
            if bad := [name for name, value in headers.items() if _BREAKS & set(value)]:
                raise ValueError(f"the value of header {bad[0]} is more than one line")
            found = "".join(f"{line}\r\n" for line in lines).encode("latin-1")
            self._encoded[content_type] = found
        return found
