"""One elector for a test, on its own or a shared API server."""

from typing import Any

from prometheus_client import CollectorRegistry

from k8s_scheduler.kube.lease.claim import ElectorHooks
from k8s_scheduler.kube.lease.elector import Elector
from k8s_scheduler.kube.lease.lease import LeaseConfig
from k8s_scheduler.kube.waiting import Timing
from k8s_scheduler.kube.watch.set_back import SetBack
from k8s_scheduler.obs.metrics import KubeMetrics
from tests.fakes.api import FakeApi
from tests.fakes.transport import Json
from tests.unit.kube.write_fakes import WALL_NS, loop_clock

LEASES = "/apis/coordination.k8s.io/v1/leases"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Seat:
    """One elector, on its own or a shared API server."""

    def __init__(self, identity: str = "me", api: FakeApi | None = None, **times: float) -> None:
        self.api = api or FakeApi()
        self.registry = CollectorRegistry()
        self.set_backs: list[SetBack] = []
        # How far the clock is ahead of the loop's, which has had no chance to look at it.
        self.ahead_seconds = 0.0
        loops = loop_clock()

        def clock() -> float:
            return loops() + self.ahead_seconds

        self.elector = Elector(
            self.api,
            LeaseConfig(name="kube-scheduler", namespace="kube-system", identity=identity, **times),
            metrics=KubeMetrics(self.registry),
            timing=Timing(
                clock=clock,
                wall_clock_ns=lambda: WALL_NS + round(clock() * 1e9),
                uniform=lambda: 0.5,
            ),
            hooks=ElectorHooks(set_back=self.set_backs.append),
        )

    def spec(self) -> Json:
        lease = self.api.object(LEASE)
        assert lease is not None
        spec: Json = lease["spec"]
        return spec

    def lose_to(self, holder: str) -> None:
        """Let somebody else hold the lease all of a sudden."""
        lease = self.api.object(LEASE)
        assert lease is not None
        lease["spec"]["holderIdentity"] = holder
        self.api.update(LEASE, lease)

    def status(self) -> float | None:
        name = "leader_election_master_status"
        return self.registry.get_sample_value(name, {"name": "kube-scheduler"})


def hold_by_other(api: FakeApi, holder: str = "other", **spec: Any) -> None:
    metadata = {"namespace": "kube-system", "name": "kube-scheduler", "labels": {"team": "a"}}
    content = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 4, **spec}
    api.create(LEASES, {"metadata": metadata, "spec": content})


async def acquire(elector: Elector) -> None:
    await elector.acquire()
