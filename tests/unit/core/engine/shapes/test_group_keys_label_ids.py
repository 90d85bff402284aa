"""What was worked out by domain is right, however many label values there have been since."""

from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.obs.metrics import Metrics
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.property.kept_checks import Scratch, check
from tests.property.kept_pods import setup

ONE_CPU = {"cpu": "1", "memory": "1Gi", "pods": "10"}
SCHEDULER = "scheduler-0"


def preempting_core() -> Scheduler:
    return Scheduler(
        setup((SCHEDULER,), preempts=True, keeps_evaluations=True), metrics=Metrics().scheduler
    )


def spread_over(*keys: str):
    pod = make_pod("p").scheduler(SCHEDULER).label(app="x").request(cpu="1").priority(10)
    pod.raw["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        for key in keys
    ]
    return pod.obj()


def test_a_dry_run_in_a_domain_that_is_new_is_judged_as_from_scratch():
    core = preempting_core()
    cache = inside(core).cache
    cache.put_node(make_node("n0").offers(**ONE_CPU).label(zone="a").obj())
    cache.put_node(make_node("n1").offers(**ONE_CPU).label(zone="b", disk="s").obj())
    for node in ("n0", "n1"):
        full = make_pod(f"on-{node}").label(app="x").request(cpu="1").on(node).obj()
        cache.put_bound(full)
    pod = spread_over("zone", "disk")
    for zone in (None, None, "new1", "new2", "new3"):
        if zone is not None:
            cache.put_node(make_node("n0").offers(**ONE_CPU).label(zone=zone).obj())
        check(core, Scratch(core), pod, preempts=True, start=0)
