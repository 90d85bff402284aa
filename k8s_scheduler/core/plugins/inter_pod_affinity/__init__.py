"""InterPodAffinity: pods near to other pods, or away from them."""

from k8s_scheduler.core.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
