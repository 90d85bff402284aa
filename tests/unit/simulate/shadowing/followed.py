"""A follower with a hand on its clock, and a cluster to tell it of."""

import msgspec

from k8s_scheduler.api.config.types import ResolvedProfile
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.core.setup import Setup
from k8s_scheduler.simulate.shadowing.following import Follower, FollowingOptions
from k8s_scheduler.simulate.shadowing.report import Case, ProfileReport, Report
from tests.unit.core.harness import profile

NAME = "default-scheduler"


class Followed:
    """What another scheduler does, second by second."""

    def __init__(
        self,
        *nodes,
        pods: tuple[Pod, ...] = (),
        profiles: tuple[ResolvedProfile, ...] | None = None,
        **options,
    ):
        """Let nodes and pods be there before the follower comes."""
        self.now = 1000.0
        self.report = Report([NAME])
        self.core = Scheduler(Setup(profiles=profiles or (profile(),)))
        self.follower = Follower(
            self.core,
            [NAME],
            report=self.report,
            options=FollowingOptions(**{"latency_seconds": 3.0} | options),
        )
        self.pods: dict[str, Pod] = {}
        for node in nodes:
            self.follower.node_changed(None, node, now=self.now)
        for pod in pods:
            self.pod(pod)
        self.follower.start()

    def pod(self, pod: Pod) -> None:
        """Show a pod, or its new version."""
        name = pod.metadata.name
        self.follower.pod_changed(self.pods.get(name), pod, now=self.now)
        self.pods[name] = pod

    def bind(self, name: str, node: str) -> None:
        """Show a pod on a node."""
        pod = self.pods[name]
        self.pod(msgspec.structs.replace(pod, spec=_on(pod, node)))

    def gone(self, name: str) -> None:
        self.follower.pod_changed(self.pods.pop(name), None, now=self.now)

    def later(self, seconds: float = 0.01) -> None:
        """Let time pass."""
        self.now += seconds
        while self.follower.step(self.now):
            pass

    def told(self) -> ProfileReport:
        """Return the report when all is judged."""
        self.follower.finish()
        return self.report.profiles()[NAME]

    def cases(self) -> list[Case]:
        self.follower.finish()
        return self.report.take_news()


def _on(pod: Pod, node: str):
    return msgspec.structs.replace(pod.spec, node_name=node)
