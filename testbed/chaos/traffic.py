"""Pods that come and go all the time, for both schedulers, drawn from the seed."""

import random
import threading

from testbed.client import Client, Object
from testbed.errors import ApiError
from testbed.workload import ZONE_LABEL, make_pod

NAMESPACE = "chaos"
OTHER_SCHEDULER = "default-scheduler"
_CPUS = ("250m", "500m", "1", "1500m", "2")
_MEMORIES = ("128Mi", "512Mi", "1Gi", "2Gi")
_HUGE_CPU = "500"  # no node has it
_PAUSE_SECONDS = 0.3
_APPS = 5


class Traffic:
    """Creates pods at a rate, and deletes as many once there are enough."""

    def __init__(
        self,
        client: Client,
        *,
        seed: int,
        scheduler: str,
        pods_per_second: float,
        living: int,
        zones: int,
    ) -> None:
        self._client = client
        self._draw = random.Random(f"traffic {seed}")
        self._scheduler = scheduler
        self._interval_seconds = 1.0 / pods_per_second
        self._living = living
        self._zones = zones
        self._names: list[str] = []
        self._owners: dict[str, Object] = {}
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._make_owners()
        self._thread.start()

    def _make_owners(self) -> None:
        """Make what the pods belong to, as pods of an operator's own resource do.

        It has to exist, or the garbage collector takes its pods; and no controller may count them.
        """
        for app in range(_APPS):
            name = f"app-{app}"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            made = self._client.create(f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
            self._owners[name] = owner | {"uid": made["metadata"]["uid"], "controller": True}

    def stop(self) -> None:
        """End; the pods that are there stay."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._draw.expovariate(1 / self._interval_seconds)):
            burst = 25 if self._draw.random() < 0.01 else 1
            for _ in range(burst):
                self._create(self._next_pod())
            while len(self._names) > self._living and not self._stop.is_set():
                self._delete(self._draw.randrange(len(self._names)))

    def _next_pod(self) -> Object:
        draw = self._draw
        self._number += 1
        ours = draw.random() < 0.7
        huge = ours and draw.random() < 0.01
        zone = draw.random() < 0.2
        pod = make_pod(
            f"{'ours' if ours else 'theirs'}-{self._number}",
            namespace=NAMESPACE,
            cpu=_HUGE_CPU if huge else draw.choice(_CPUS),
            memory=draw.choice(_MEMORIES),
            scheduler_name=self._scheduler if ours else OTHER_SCHEDULER,
            node_selector={ZONE_LABEL: f"zone-{draw.randrange(self._zones)}"} if zone else None,
            labels={"app": f"app-{draw.randrange(_APPS)}"},
        )
        pod["metadata"]["ownerReferences"] = [self._owners[pod["metadata"]["labels"]["app"]]]
        return pod

    def _create(self, pod: Object) -> None:
        try:
            self._client.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
        except (ApiError, OSError):
            # The server is away, or says no. It may have been created all the same: so be it.
            self._stop.wait(_PAUSE_SECONDS)
        self._names.append(pod["metadata"]["name"])

    def _delete(self, index: int) -> None:
        name = self._names[index]
        try:
            self._client.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        except ApiError as error:
            if error.status != 404:
                self._stop.wait(_PAUSE_SECONDS)
                return
        except OSError:
            self._stop.wait(_PAUSE_SECONDS)
            return
        self._names[index] = self._names[-1]
        self._names.pop()
