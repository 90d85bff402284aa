"""What changes in a living cluster all the time: releases, namespaces, nodes, odd pods.

Everything that gets a name gets a new one each time (image tags, namespaces, nodes, labels,
resources, topology keys), because what a scheduler remembers by name is what it may forget to
forget. How much is there at any time stays the same, so memory has no reason to grow.
"""

import itertools
import random
from collections import deque
from collections.abc import Callable

from testbed.client import STRATEGIC_MERGE_PATCH, Client, Object
from testbed.errors import ApiError
from testbed.workload import NODES, SHAPES, make_deployments, make_node, make_pod

NAMESPACES = 8
PODS_PER_NAMESPACE = 24
ODD_PODS = 10
_NODE_CPU = "8"
_PATCH_PATH = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


class Churn:
    """Keeps a cluster of a fixed size changing, one step at a time."""

    def __init__(self, client: Client, *, seed: int, scheduler: str, nodes: int) -> None:
        self._client = client
        self._draw = random.Random(f"soak {seed}")
        self._scheduler = scheduler
        self._wanted_nodes = nodes
        self._numbers = itertools.count()
        self._namespaces: deque[str] = deque()
        self._nodes: deque[str] = deque()
        self._odd: deque[str] = deque()
        self.steps: dict[str, int] = {}

    def set_up(self) -> None:
        """Bring the cluster to its size."""
        for _ in range(self._wanted_nodes):
            self._add_node()
        for _ in range(NAMESPACES):
            self._add_namespace()

    def step(self) -> str:
        """Change something; return what. A server that says no ends the run."""
        chances: tuple[tuple[float, str, Callable[[], None]], ...] = (
            (0.55, "release", self._release),
            (0.75, "odd pod", self._come_odd),
            (0.93, "node", self._replace_node),
            (1.00, "namespace", self._replace_namespace),
        )
        chance = self._draw.random()
        name, change = next((name, change) for most, name, change in chances if chance < most)
        change()
        self.steps[name] = self.steps.get(name, 0) + 1
        return name

    def _release(self) -> None:
        """Give a Deployment another image: its pods are replaced by pods of another shape."""
        namespace = self._draw.choice(self._namespaces)
        app = self._draw.choice(SHAPES).name
        image = f"registry.example/{app}:{next(self._numbers)}"
        spec = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}
        self._client.patch(
            _PATCH_PATH.format(namespace=namespace, name=app),
            {"spec": spec},
            content_type=STRATEGIC_MERGE_PATCH,
        )

    def _replace_namespace(self) -> None:
        self._add_namespace()
        self._delete(f"/api/v1/namespaces/{self._namespaces.popleft()}")

    def _add_namespace(self) -> None:
        name = f"team-{next(self._numbers)}"
        labels = {"team": name}
        self._client.create(
            "/api/v1/namespaces",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": labels},
            },
        )
        for deployment in make_deployments(
            PODS_PER_NAMESPACE, namespace=name, scheduler_name=self._scheduler
        ):
            self._client.create(f"/apis/apps/v1/namespaces/{name}/deployments", deployment)
        self._namespaces.append(name)

    def _replace_node(self) -> None:
        self._add_node()
        self._delete(f"{NODES}/{self._nodes.popleft()}")

    def _add_node(self) -> None:
        name = f"node-{next(self._numbers)}"
        node = make_node(
            name,
            cpu=_NODE_CPU,
            zone=f"zone-{self._draw.randrange(3)}",
            labels={"example.com/serial": name, f"example.com/{name}": "x"},
            extended_resources={f"example.com/{name}": "1"},
        )
        self._client.create(NODES, node)
        self._nodes.append(name)

    def _come_odd(self) -> None:
        """Let a pod come that asks for what no other has asked for; the oldest such goes."""
        number = next(self._numbers)
        namespace = self._namespaces[-1]
        pod = make_pod(
            f"odd-{number}",
            namespace=namespace,
            scheduler_name=self._scheduler,
            labels={f"example.com/odd-{number}": "yes"},
        )
        self._draw.choice(_ODDITIES)(pod["spec"], number)
        self._client.create(f"/api/v1/namespaces/{namespace}/pods", pod)
        self._odd.append(f"/api/v1/namespaces/{namespace}/pods/odd-{number}")
        if len(self._odd) > ODD_PODS:
            self._delete(self._odd.popleft())

    def _delete(self, path: str) -> None:
        try:
            self._client.delete(path)
        except ApiError as error:
            if error.status != 404:  # gone with its namespace
                raise


def _ask_for_resources(spec: Object, number: int) -> None:
    """Let it ask for what no node offers: it waits."""
    names = {f"example.com/wanted-{number}-{each}": "1" for each in range(40)}
    resources = spec["containers"][0]["resources"]
    resources["requests"] |= names
    resources["limits"] = names


def _avoid_others(spec: Object, number: int) -> None:
    """Let it hold terms that pick every pod there is."""
    terms = [
        {
            "topologyKey": f"example.com/{number}-{each}",
            "labelSelector": _selector(number),
            "namespaceSelector": {},
        }
        for each in range(40)
    ]
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    spec["affinity"] = {"podAntiAffinity": {preferred: weighted}}


def _spread(spec: Object, number: int) -> None:
    """Let it be spread over keys that no other pod knows."""
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": f"example.com/spread-{number}-{each}",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _selector(number),
        }
        for each in range(40)
    ]


def _tolerate(spec: Object, number: int) -> None:
    """Let it tolerate taints that no node has."""
    spec["tolerations"] = [{"key": f"t{number}-{each}", "operator": "Exists"} for each in range(60)]


def _selector(number: int) -> Object:
    return {"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]}


_ODDITIES = (_ask_for_resources, _avoid_others, _spread, _tolerate)
