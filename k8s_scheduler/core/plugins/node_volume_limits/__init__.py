"""NodeVolumeLimits: as many volumes on a node as its drivers can attach."""

from k8s_scheduler.core.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
