"""Which pods are of one shape."""

import pytest

from k8s_scheduler.core.framework.shapes import shape_of
from tests.builders import PodBuilder, make_pod


def limited(pod: PodBuilder, cpu: str) -> PodBuilder:
    for container in pod.raw["spec"]["containers"] + pod.raw["spec"].get("initContainers", []):
        container["resources"]["limits"] = {"cpu": cpu}
    pod.raw["spec"].setdefault("resources", {})["limits"] = {"cpu": cpu}
    return pod


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("q", lambda pod: pod),
        ("p", lambda pod: pod.uid("another")),
        ("p", lambda pod: pod.priority(5)),
        ("p", lambda pod: limited(pod, "9")),
    ],
    ids=["name", "uid", "priority", "limits"],
)
def test_what_decisions_do_not_read_is_in_no_shape(name, more):
    plain = limited(make_pod("p").request(cpu="1").init(cpu="2"), "4")
    other = more(limited(make_pod(name).request(cpu="1").init(cpu="2"), "4"))
    assert plain.obj() != other.obj()
    assert shape_of(plain.obj()) == shape_of(other.obj())


@pytest.mark.parametrize(
    "more",
    [
        lambda pod: pod.request(cpu="1"),
        lambda pod: pod.init(cpu="3"),
        lambda pod: pod.pod_level(cpu="1"),
        lambda pod: pod.overhead(cpu="1"),
        lambda pod: pod.label(app="a"),
        lambda pod: pod.tolerates("k"),
    ],
    ids=["container", "init container", "pod level", "overhead", "label", "toleration"],
)
def test_what_they_read_is(more):
    assert shape_of(make_pod("p").obj()) != shape_of(more(make_pod("p")).obj())
