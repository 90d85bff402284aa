"""A story as data: a world, pods that wait in it, and what happens, step by step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.client import Object
from testbed.stories.stage import Stage


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens.

    `renewed` is whether kube-scheduler tries the pods again because of it. Where it does not, what
    it says is old until something else makes it try them; this scheduler says at once what
    kube-scheduler says after a later step, and only that step compares.
    """

    what: str
    do: Callable[[Stage], object]
    renewed: bool = True


@dataclass(frozen=True, slots=True)
class Story:
    """What there is at the beginning, the pods that wait, and the steps."""

    name: str
    pods: Mapping[str, Object]
    steps: Sequence[Step]
    nodes: Sequence[Object] = ()
    residents: Sequence[Object] = ()
    things: Sequence[tuple[str, Object]] = ()
    # The profile that serves the pods: the first one of each scheduler, or its second.
    profile: int = 0
    # Pods that no scheduler says anything of before the first step.
    silent: Sequence[str] = field(default=())
