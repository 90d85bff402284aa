"""Stopping a bed that another process opened, in the right order."""

from testbed.options import ALWAYS, API_SERVER, ETCD
from testbed.processes import end_all
from testbed.registry import Record, Registry

GRACE_SECONDS = 10.0


def stop_order(components: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return groups of components, each to be stopped at once: clients, API server, etcd."""
    clients = tuple(name for name in components if name not in ALWAYS)
    return (clients, (API_SERVER,), (ETCD,))


def take_down(record: Record, *, registry: Registry, grace_seconds: float = GRACE_SECONDS) -> None:
    """Stop the processes of a bed and remove its files and its record."""
    known = record.processes
    for group in stop_order(tuple(known)):
        end_all([known[name] for name in group if name in known], grace_seconds=grace_seconds)
    registry.discard(record)
