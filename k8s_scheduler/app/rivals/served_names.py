"""Which schedulerNames the holder of a Lease serves, said on the Lease itself.

The elector puts label and annotation there with its own writes (`kube/lease/metadata`): a change
of the profiles is on the Lease with the next renewal. The label is what others find it by.

The annotation names its writer. It outlives its holder, and the next holder of the Lease may be of
an older version that leaves it as it is: then it says nothing about what that one serves.
"""

import functools
from collections.abc import Iterable
from typing import Final

import msgspec

from k8s_scheduler.kube.errors import UNREADABLE
from k8s_scheduler.kube.lease.metadata import LeaseNotes
from k8s_scheduler.kube.lease.other_leases import OtherLease

LABEL: Final = "k8s-scheduler.io/election"
NOTE: Final = "k8s-scheduler.io/served-names"
# The Lease is read by every replica twice a second: notes on it have to be short.
MOST_BYTES: Final = 4096

# The Lease of kube-scheduler, which puts no note on it, and the name it serves unless configured.
KUBE_SCHEDULER: Final = ("kube-system", "kube-scheduler")
DEFAULT_SCHEDULER: Final = "default-scheduler"


class _Served(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    by: str
    scheduler_names: list[str]
    # How many more there was no room for.
    more: int = 0


_decode: Final = msgspec.json.Decoder(_Served).decode


@functools.lru_cache(maxsize=4)
def encode(names: tuple[str, ...], identity: str) -> str:
    """Return the annotation's text, with as many names as there is room for.

    It is asked for with every renewal, and changes with a reload at most.
    """
    room = MOST_BYTES - len(msgspec.json.encode(_Served(identity, [], len(names))))
    shown: list[str] = []
    for name in sorted(names):
        room -= len(msgspec.json.encode(name)) + 1
        if room < 0:
            break
        shown.append(name)
    return msgspec.json.encode(_Served(identity, shown, len(names) - len(shown))).decode()


def notes_of(names: Iterable[str], identity: str) -> LeaseNotes:
    return LeaseNotes({LABEL: "true"}, {NOTE: encode(tuple(names), identity)})


def served_by(lease: OtherLease) -> frozenset[str]:
    """Return the names that the holder of a Lease serves, as far as the Lease says so.

    kube-scheduler says nothing; held without a note of its holder, its Lease stands for the name
    that it serves by default.
    """
    silent = {DEFAULT_SCHEDULER} if (lease.namespace, lease.name) == KUBE_SCHEDULER else ()
    if not lease.holder:
        return frozenset()
    try:
        served = _decode(lease.note) if lease.note else None
    except UNREADABLE:
        served = None
    if served is None or served.by != lease.holder:
        return frozenset(silent)
    return frozenset(served.scheduler_names)
