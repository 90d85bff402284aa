"""VolumeBinding: nodes from which a pod's volumes can be reached, found or made."""

from k8s_scheduler.core.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
