"""DynamicResources by example: what it can't do yet is held back, and named."""

import pytest

from tests.builders import make_node, make_pod
from tests.unit.core.plugins.plugin_bench import PluginBench, made

NOT_YET = "dynamic resource allocation is not supported yet"


def bench(*classes):
    """Return a cluster with device classes: names, and the extended resources they offer."""
    found = PluginBench(made("DynamicResources"), make_node("n"))
    for name, resource in classes:
        spec = {"extendedResourceName": resource}
        found.put({"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec})
    return found


def texts(pod, *classes):
    """Return all reasons for which the pod is refused."""
    found = bench(*classes)
    if found.skips(pod):
        return []
    refused = found.prepare(pod)
    assert not refused.resolvable
    return [reason.text for reason in refused.reasons]


def requesting(resource, amount="1"):
    return make_pod("p").request(**{"cpu": "1", resource: amount})


def test_a_pod_without_devices_passes():
    assert texts(make_pod("p").request(cpu="1"), ("gpu", "example.com/gpu")) == []


def test_claims_are_named():
    pod = make_pod("p")
    pod.raw["spec"]["resourceClaims"] = [{"name": "gpu"}, {"name": "nic"}]
    assert texts(pod) == [f'resource claim "{name}": {NOT_YET}' for name in ("gpu", "nic")]


def test_a_resource_that_a_class_offers_is_named_with_the_class():
    found = texts(requesting("example.com/gpu"), ("big-gpu", "example.com/gpu"), ("other", None))
    assert found == [f'resource "example.com/gpu" of device class "big-gpu": {NOT_YET}']


def test_every_class_stands_behind_a_resource_of_its_own_name():
    resource = "deviceclass.resource.kubernetes.io/gpu"
    assert texts(requesting(resource), ("gpu", None)) == [
        f'resource "{resource}" of device class "gpu": {NOT_YET}'
    ]
    assert texts(requesting(resource), ("nic", None)) == []


@pytest.mark.parametrize(
    ("resource", "amount", "offered"),
    [
        pytest.param("example.com/gpu", "1", "example.com/nic", id="another resource"),
        pytest.param("example.com/gpu", "0", "example.com/gpu", id="none of it"),
        pytest.param("hugepages-2Mi", "2Mi", "hugepages-2Mi", id="no extended resource"),
    ],
)
def test_other_resources_pass(resource, amount, offered):
    assert texts(requesting(resource, amount), ("gpu", offered)) == []


def test_the_score_is_there_and_nothing():
    assert bench().scores(make_pod("p")) == [0]
