"""What cores of these histories are made of: a plugin that lets pods wait, an extender, pods."""

import dataclasses
from typing import Any, ClassVar

from hypothesis import strategies as st

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config.types import PluginUse
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.resources import allocatable, pod_requests
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.dependencies import Dependency
from k8s_scheduler.core.framework.plugin import Wait, WaitingPods
from k8s_scheduler.core.framework.reasons import Reason
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.queue.backoff import BackoffPolicy, QueuePolicy
from k8s_scheduler.core.setup import Setup
from tests.builders import make_node, make_pod
from tests.fakes.extender import FakeExtender

NODES = ("n0", "n1", "n2")
TAINT = "k"
USHER = "Usher"
Raw = dict[str, Any]


class Usher:
    """Lets pods wait at the door that say so; a history lets them in or sends them away."""

    name: ClassVar[str] = USHER
    reasons: ClassVar[tuple[Reason, ...]] = ()
    depends_on: ClassVar[tuple[Dependency, ...]] = ()

    def __init__(self) -> None:
        self.waiting: WaitingPods | None = None

    def attach(self, waiting: WaitingPods) -> None:
        self.waiting = waiting

    def permit(self, state: object, pod: Pod, node: str) -> Wait | None:
        return Wait(10.0) if "wait" in (pod.metadata.labels or {}) else None


ASKED = FakeExtender("asked", label="ask")


def setup(usher: Usher) -> Setup:
    """Return the default profile with both of them."""
    (profile,) = default_configuration(known_plugins()).profiles
    points = dict(profile.points)
    points["permit"] = (*points.get("permit", ()), PluginUse(USHER))
    return Setup(
        profiles=(dataclasses.replace(profile, points=points),),
        queue=QueuePolicy(BackoffPolicy()),
        plugins={**BUILT_INS, USHER: Registration(Usher, factory=lambda: usher)},
        extenders=(ASKED,),
    )


@st.composite
def pods(draw: st.DrawFn) -> Raw:
    """Draw a pod that is named and known as nobody yet."""
    pod = make_pod("").request(cpu=draw(st.sampled_from(["0", "1", "1", "2"])))
    pod.priority(draw(st.sampled_from([0, 0, 5]))).label(app=draw(st.sampled_from("xy")))
    kind = draw(st.sampled_from(["plain", "plain", "ask", "ask", "wait", "ask wait"]))
    for label in kind.split():
        pod.label(**{label: "yes"})
    if draw(st.sampled_from([False, False, True])):
        pod.tolerates(TAINT, operator="Exists")
    return pod.raw


@st.composite
def nodes(draw: st.DrawFn) -> Raw:
    """Draw a node under one of few names."""
    node = make_node(draw(st.sampled_from(NODES)))
    node.offers(cpu=draw(st.sampled_from(["1", "2", "3"])), memory="8Gi", pods="3")
    state = draw(st.sampled_from(["open", "open", "tainted", "cordoned"]))
    if state == "tainted":
        node.taint(TAINT)
    elif state == "cordoned":
        node.cordoned()
    return node.raw


# What the scheduler's words mean, said once more


def welcomes(node: Node, pod: Pod) -> bool:
    """Return whether a node takes such a pod, if it has room."""
    tolerant = any(toleration.key == TAINT for toleration in pod.spec.tolerations or ())
    return not node.spec.unschedulable and (tolerant or not node.spec.taints)


def holds(node: Node, pods: list[Pod]) -> bool:
    """Return whether a node has room for these pods together."""
    offered = allocatable(node.status.allocatable)
    cpu = sum(dict(pod_requests(pod).amounts).get("cpu", 0) for pod in pods)
    return cpu <= offered["cpu"] and len(pods) <= offered["pods"]
