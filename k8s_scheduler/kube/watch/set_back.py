"""Noticing that the storage of the API server was set back, as by a restored etcd snapshot.

After a restore the versions that we know belong to a history that does not exist any more. A watch
that is opened at such a version is accepted and silent until the new history has come as far: the
API server leaves out events and bookmarks of lower versions. Objects that were created since the
snapshot stay in memory as ghosts, and changes of the new history up to the known version are never
shown. So every version that is read is checked for being lower than one known before:

    source     what is compared                                              noticed
    watch      an event or bookmark with what the same watch has shown       as it comes
    current    the server's version with ours, before a watch is resumed     at the reconnect
    list       the version of a list with that of the watch before it        with that list
    object     an object of a list with the same object in memory            with that list
    lease      our Lease as read or written with what we had seen of it      within a retry period

A restore interrupts the server. When nothing was heard of it for `AWAY_SECONDS` and its versions
are not lower, they may have overtaken ours meanwhile: then the content is compared (`returned`).

Versions are compared within one resource only: others may live in another storage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# No etcd is stopped, restored and started, and the API server after it, in less.
AWAY_SECONDS: Final = 2.0


class Source(StrEnum):
    """Where a lower version was seen; label values of a metric."""

    WATCH = "watch"
    CURRENT = "current"
    LIST = "list"
    OBJECT = "object"
    LEASE = "lease"
    COMPARISON = "comparison"


@dataclass(frozen=True, slots=True)
class SetBack:
    """A version that went back. `listed`: the resource has been listed since."""

    resource: str
    source: Source
    known: str
    seen: str
    listed: bool = False


def _ignore(_news: object) -> None:
    """Do nothing: a reflector alone repairs its own resource."""


@dataclass(frozen=True, slots=True)
class Signals:
    """Callbacks: for storage that was set back, and for the plural of what is watched again."""

    set_back: Callable[[SetBack], None] = _ignore
    returned: Callable[[str], None] = _ignore
