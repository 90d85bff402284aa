"""The page of what pods ask for, as text and piece by piece."""

import asyncio

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from k8s_scheduler.api.pod import Pod
from k8s_scheduler.console.pod_resources import resource_page
from k8s_scheduler.lib.slices import SliceMeter, silent_meter
from tests.builders import make_pod


async def page_of(*pods: Pod) -> str:
    return b"".join([piece async for piece in resource_page(pods, silent_meter())]).decode()


async def series(*pods: Pod) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name.removeprefix("kube_pod_resource_"), sample.labels, sample.value)
        for family in text_string_to_metric_families(await page_of(*pods))
        for sample in family.samples
    ]


async def shown(*pods: Pod, label: str) -> list[str]:
    return [labels[label] for _, labels, _ in await series(*pods)]


def pod_asking(**amounts: str):
    return make_pod("p").request(**amounts)


async def test_the_page_to_the_letter():
    raw = pod_asking(cpu="100m").priority(7).on("n1").scheduler("mine").raw
    raw["spec"]["containers"][0]["resources"]["limits"] = {"memory": "1Gi"}
    about = (
        "This shows the resource usage the scheduler and kubelet expect per pod for resources "
        "along with the unit for the resource if any."
    )
    assert await page_of(msgspec.convert(raw, Pod)) == (
        "# HELP kube_pod_resource_limit [STABLE] Resources limit for workloads on the cluster, "
        f"broken down by pod. {about}\n"
        "# TYPE kube_pod_resource_limit gauge\n"
        'kube_pod_resource_limit{namespace="default",node="n1",pod="p",priority="7",'
        'resource="memory",scheduler="mine",unit="bytes"} 1.073741824e+09\n'
        "# HELP kube_pod_resource_request [STABLE] Resources requested by workloads on the "
        f"cluster, broken down by pod. {about}\n"
        "# TYPE kube_pod_resource_request gauge\n"
        'kube_pod_resource_request{namespace="default",node="n1",pod="p",priority="7",'
        'resource="cpu",scheduler="mine",unit="cores"} 0.1\n'
    )


async def test_a_metric_that_no_pod_has_is_not_there():
    assert "kube_pod_resource_limit" not in await page_of(pod_asking(cpu="1").obj())
    assert await page_of(pod_asking().obj(), pod_asking(cpu="0").obj()) == ""


async def test_metrics_are_one_block_each_whatever_the_pods_have():
    raw = make_pod("limited").request(cpu="1").raw
    raw["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
    limited = msgspec.convert(raw, Pod)
    found = await series(pod_asking(cpu="1").obj(), limited, make_pod("q").request(cpu="3").obj())
    assert [(name, labels["pod"], value) for name, labels, value in found] == [
        ("limit", "limited", 2),
        ("request", "p", 1),
        ("request", "limited", 1),
        ("request", "q", 3),
    ]


@pytest.mark.parametrize(
    ("node", "phase", "there"),
    [
        ("", "Pending", True),
        ("n1", "Running", True),
        ("n1", "Succeeded", False),
        ("n1", "Failed", False),
        ("", "Failed", True),  # a pod that never had a node holds nothing to be given back
    ],
)
async def test_only_what_is_not_over_counts(node, phase, there):
    raw = pod_asking(cpu="1").on(node).raw
    raw["status"]["phase"] = phase
    assert await shown(msgspec.convert(raw, Pod), label="node") == ([node] if there else [])


async def test_no_priority_is_not_priority_0():
    pods = pod_asking(cpu="1").obj(), pod_asking(cpu="1").priority(0).obj()
    assert await shown(*pods, label="priority") == ["", "0"]


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-x", "integer"),
        ("example.com/gpu", ""),
        ("odd", ""),
    ],
)
async def test_every_resource_has_its_unit(resource, unit):
    pod = pod_asking(**{resource: "2"}).obj()
    assert await series(pod) == [
        (
            "request",
            {
                "namespace": "default",
                "node": "",
                "pod": "p",
                "priority": "",
                "resource": resource,
                "scheduler": "default-scheduler",
                "unit": unit,
            },
            2,
        )
    ]


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("1m", "0.001"),
        ("250m", "0.25"),
        ("700m", "0.7000000000000001"),  # 700 * 0.001, where 700 / 1000 would be 0.7
        ("1", "1"),
        ("1.5", "1.5"),
        ("999999", "999999"),
        ("1M", "1e+06"),
        ("100k", "100000"),
        ("1234567", "1.234567e+06"),
        ("1234567m", "1234.567"),
        ("1Ti", "1.099511627776e+12"),
        ("50u", "4.9999999999999996e-05"),
        ("100n", "1.0000000000000001e-07"),
    ],
)
async def test_amounts_are_written_as_a_go_program_does(quantity, text):
    page = await page_of(pod_asking(cpu=quantity).obj())
    assert page.splitlines()[-1].rpartition(" ")[2] == text


async def test_a_name_that_nobody_checks_cannot_break_the_page():
    odd = 'a"b\\c\nd'
    assert await shown(pod_asking(cpu="1").scheduler(odd).obj(), label="scheduler") == [odd]


async def test_a_pod_that_cannot_be_read_hides_no_other():
    pods = [make_pod(name).request(cpu=cpu).obj() for name, cpu in (("a", "bad"), ("b", "1"))]
    assert await shown(*pods, label="pod") == ["b"]


# Piece by piece


def ticking_meter(reports: list[tuple[str, float]]) -> SliceMeter:
    """Return a meter by whose clock a slice is full at every second look."""
    readings = iter(range(1_000_000))
    return SliceMeter(lambda *report: reports.append(report), lambda: next(readings) * 0.006)


async def test_others_run_between_the_pieces():
    pods = [make_pod(f"p{n}").request(cpu="1").obj() for n in range(200)]
    turns = 0

    async def somebody_else():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(somebody_else())
    pieces, turns_before, reports = [], [], []
    async for piece in resource_page(pods, ticking_meter(reports)):
        pieces.append(piece)
        turns_before.append(turns)
    other.cancel()
    assert len(pieces) > 5
    assert turns_before == sorted(set(turns_before)), "somebody had a turn before each"
    assert len(reports) >= len(pieces)
    assert {owner for owner, _ in reports} == {"metrics/resources"}
    assert b"".join(pieces).decode() == await page_of(*pods)
