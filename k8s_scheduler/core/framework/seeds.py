"""A number per pod and attempt: fair over pods, and the same whenever an attempt is replayed."""

import zlib

from k8s_scheduler.api.pod import Pod


def seed_of(pod: Pod, *, attempt: int) -> int:
    """Return the attempt's number."""
    return zlib.crc32(f"{pod.metadata.uid}/{attempt}".encode())
