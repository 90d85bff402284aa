"""What a tenant can do, one deed after the other, and how all of it is undone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from k8s_scheduler.api.kinds import Kind
from tests.as_made import Raw
from tests.tenants.world import World

NAMESPACE = "greedy"


@dataclass(frozen=True, slots=True)
class PodIs:
    """A pod comes, or changes."""

    raw: Raw


@dataclass(frozen=True, slots=True)
class PodGoes:
    """A pod is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class NodeIs:
    """A kubelet says how its node is."""

    raw: Raw


@dataclass(frozen=True, slots=True)
class NodeGoes:
    """A node is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class ObjectIs:
    """An object of another kind comes, or changes."""

    kind: Kind
    raw: Raw


@dataclass(frozen=True, slots=True)
class Tried:
    """The scheduler does all that there is to do."""


@dataclass(frozen=True, slots=True)
class Later:
    """Time passes."""

    seconds: int


@dataclass(frozen=True, slots=True)
class BindingsFail:
    """Bindings of the namespace are refused from now on."""


Deed: TypeAlias = PodIs | PodGoes | NodeIs | NodeGoes | ObjectIs | Tried | Later | BindingsFail
# What is done, given how many of it there are to be.
Harm: TypeAlias = Callable[[int], Iterable[Deed]]


class Tenant:
    """Does harm to a world, and takes it back."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pods: dict[str, None] = {}
        self._nodes: dict[str, None] = {}
        self._objects: dict[tuple[Kind, str], Raw] = {}

    def do(self, deeds: Iterable[Deed]) -> None:
        """Do one thing after the other."""
        for deed in deeds:
            self._do(deed)

    def _do(self, deed: Deed) -> None:
        world = self._world
        match deed:
            case PodIs(raw):
                self._pods[raw["metadata"]["uid"]] = None
                world.pod(raw)
            case PodGoes(name):
                self._pods.pop(name)
                world.drop_pod(name)
            case NodeIs(raw):
                self._nodes[raw["metadata"]["name"]] = None
                world.node(raw)
            case NodeGoes(name):
                self._nodes.pop(name)
                world.drop_node(name)
            case ObjectIs(kind, raw):
                self._objects[kind, raw["metadata"]["name"]] = raw
                world.object(kind, raw)
            case Tried():
                world.settle()
            case Later(seconds):
                world.rest(seconds)
            case BindingsFail():
                world.refused.add(NAMESPACE)

    def undo(self) -> None:
        """Take all of it away, and put nodes back as they were."""
        world = self._world
        world.refused.clear()
        for name in self._pods:
            world.drop_pod(name)
        for name in self._nodes:
            own = name.removeprefix("node-")
            if own != name and int(own) < world.nodes:
                world.node(world.node_raw(int(own)))
            else:
                world.drop_node(name)
        for (kind, _), raw in self._objects.items():
            world.drop_object(kind, raw)
        for victim in list(world.evicted):
            world.pod(world.evicted.pop(victim))
        self._pods.clear()
        self._nodes.clear()
        self._objects.clear()
        world.settle()
