"""DynamicResources holds back what it can't do yet, and names it."""

import msgspec
import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.workloads import DeviceClass
from k8s_scheduler.core.framework.dependencies import Declarations
from k8s_scheduler.core.framework.plugin import SKIP
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.plugins.dynamic_resources import DynamicResources
from k8s_scheduler.core.state.cache import Cache
from tests.builders import make_node, make_pod

NOT_YET = "dynamic resource allocation is not supported yet"


def view(*classes):
    cache = Cache()
    cache.put_node(make_node("n").obj())
    for name, resource in classes:
        raw = {"metadata": {"name": name}, "spec": {"extendedResourceName": resource}}
        cache.objects.put(Kind.DEVICE_CLASS, "", name, msgspec.convert(raw, DeviceClass))
    return RowsView(
        cache,
        cache.nodes.present_rows(),
        plugin=DynamicResources.name,
        declared=Declarations(DynamicResources.depends_on),
        verdicts=VerdictTable(),
    )


def texts(pod, *classes):
    found = DynamicResources().prepare(PodView(pod.obj()), view(*classes))
    if found is SKIP:
        return []
    assert not found.resolvable
    return [reason.text for reason in found.reasons]


def requesting(resource, amount="1"):
    pod = make_pod("p").request(cpu="1")
    pod.raw["spec"]["containers"][0]["resources"]["requests"][resource] = amount
    return pod


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
        ("example.com/gpu", "1", "example.com/nic"),
        ("example.com/gpu", "0", "example.com/gpu"),
        ("hugepages-2Mi", "2Mi", "hugepages-2Mi"),
    ],
    ids=["another resource", "none of it", "no extended resource"],
)
def test_other_resources_pass(resource, amount, offered):
    assert texts(requesting(resource, amount), ("gpu", offered)) == []


def test_the_score_is_there_and_nothing():
    plugin, rows = DynamicResources(), view()
    term = plugin.pre_score(PodView(make_pod("p").obj()), rows)
    assert term is not SKIP
    assert plugin.score(term, rows).tolist() == [0]
