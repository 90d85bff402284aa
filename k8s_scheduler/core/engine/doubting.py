"""Doubts what the API server had agreed to before its storage was restored from a snapshot."""

from k8s_scheduler.core.engine.binding.unconfirmed import Unconfirmed
from k8s_scheduler.core.engine.preemption.post_filter import MakingRoom
from k8s_scheduler.core.messages.incoming import StorageSetBack


def begin(message: StorageSetBack, making_room: MakingRoom, unconfirmed: Unconfirmed) -> None:
    """Have everything read again that the server agreed to and that no watch has shown."""
    making_room.doubt_grants(now=message.now)
    unconfirmed.doubt(now=message.now)
