"""PodTopologySpread: matching pods spread evenly over zones, hosts or other domains."""

from k8s_scheduler.core.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
