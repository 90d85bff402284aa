"""Every metric of the process, in one registry that the caller owns.

Names, labels and buckets without the prefix `k8s_scheduler_` are kube-scheduler's. Children are
bound where they are used, once: a label lookup costs more than the observation itself.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Info, disable_created_metrics
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from k8s_scheduler import __version__
from k8s_scheduler.obs.config_metrics import ConfigMetrics
from k8s_scheduler.obs.histograms import Histogram, Observations
from k8s_scheduler.obs.kube_metrics import KubeMetrics
from k8s_scheduler.obs.metric_set import MetricSet
from k8s_scheduler.obs.scheduler_metrics import SchedulerMetrics

__all__ = [
    "FOLLOWED_RELEASE",
    "KubeMetrics",
    "Metrics",
    "RecordingMetrics",
    "SchedulerMetrics",
    "metric_names",
]

# The kube-scheduler whose decisions, texts and metrics this one's are.
FOLLOWED_RELEASE: Final = "v1.37.1"

# How a family's name ends on the wire.
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}


class RecordingMetrics(MetricSet):
    """What the recording of inputs says about itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.active = self._gauge(
            "k8s_scheduler_recording_active",
            "1 while every input is being recorded (--record), 0 otherwise.",
        )
        self.bytes = self._counter(
            "k8s_scheduler_recording_bytes",
            "Bytes written to recordings.",
        )


class Metrics:
    """All metrics of a process, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.kube = KubeMetrics(self.registry)
        self.scheduler = SchedulerMetrics(self.registry)
        self._slices: dict[str, Observations] = {}
        self.recording = RecordingMetrics(self.registry)
        self.config = ConfigMetrics(self.registry)
        self.gc_pause_seconds = Histogram(
            "k8s_scheduler_gc_pause_seconds",
            "Time for which the garbage collector stopped everything, by generation.",
            ["generation"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
            registry=self.registry,
        )
        Info(
            "k8s_scheduler_build",
            "Which release this is, and which kube-scheduler it decides like.",
            registry=self.registry,
        ).info({"version": __version__, "decides_like": FOLLOWED_RELEASE})

    def with_process(self) -> "Metrics":
        # kube-scheduler shows no `_created` samples, and they double the page.
        disable_created_metrics()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        return self

    def report_slice(self, owner: str, seconds: float) -> None:
        """Take a slice's CPU time; the signature `lib.slices` expects."""
        child = self._slices.get(owner)
        if child is None:
            child = self._slices[owner] = self.kube.loop_slice_seconds.labels(owner)
        child.observe(seconds)


def metric_names(registry: CollectorRegistry) -> Iterable[str]:
    for family in registry.collect():
        yield family.name + _SUFFIXES.get(family.type, "")
