"""The metrics of this scheduler beside those of a real kube-scheduler, after the same work.

docs/metrics.md says which of kube-scheduler's metrics there are and which are left out. Whatever
kube-scheduler shows has to be in one of the two lists: a metric that is new there, or one that
went, makes these tests fail.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from zlib import crc32

import pytest
from prometheus_client.parser import text_string_to_metric_families

from k8s_scheduler.core.engine.metering.plugin_timing import SAMPLED_PERCENT
from testbed.bed import Bed
from testbed.client import STRATEGIC_MERGE_PATCH, Object
from testbed.daemon import Daemon
from testbed.options import CONTROLLER_MANAGER, SCHEDULER, BedOptions
from testbed.sandbox import Sandbox
from testbed.scheduler_page import ask
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import SCHEDULER as OURS
from tests.integration.daemons import condition, running
from tests.metric_pages import Family, documented, entry_for, left_out, served

THEIRS = "default-scheduler"

# Shown by kube-scheduler only once a plugin that is not its own has let a pod wait.
NEVER_THERE = {"scheduler_permit_wait_duration_seconds"}

# Points at which kube-scheduler asks plugins for things that are not asked for here: what makes
# two pods the same, and whether PreBind will have something to do.
THEIR_POINTS = {"Sign", "PreBindPreFlight"}

# Has nothing to say about a pod that names no node; here it is not even asked about nodes.
SILENT = {("NodeName", "Filter")}


@dataclass(frozen=True)
class Pages:
    """What both show: everything, and the families by name."""

    theirs: str
    ours: str

    def families(self) -> tuple[dict[str, Family], dict[str, Family]]:
        return served(self.theirs), served(self.ours)


@dataclass(frozen=True)
class Stage:
    """A bed with both schedulers, each the leader of its own."""

    bed: Bed
    sandbox: Sandbox
    daemon: Daemon


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    options = BedOptions(
        components=(CONTROLLER_MANAGER, SCHEDULER),
        extra_flags={SCHEDULER: ["--leader-elect=true"]},
    )
    with (
        Bed(options) as bed,
        Sandbox(bed) as sandbox,
        running(bed, flags=("--leader-elect=true",)) as daemon,
    ):
        sandbox.create_cluster_object(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "important"},
                "value": 1000,
            },
        )
        yield Stage(bed, sandbox, daemon)


@pytest.fixture(scope="module")
def pages(stage: Stage) -> Pages:
    bed, daemon = stage.bed, stage.daemon
    for name in (THEIRS, OURS):
        work(stage.sandbox, name)
    # What happens beside the decisions may end a little later, and what is only noted at first is
    # shown once a second.
    daemon.get("/livez")
    return Pages(
        theirs=complete_page(lambda path: ask(bed, path), "all of theirs"),
        ours=complete_page(lambda path: daemon.get(path)[1], "all of ours"),
    )


def complete_page(read: Callable[[str], str], what: str) -> str:
    """Return everything that a scheduler shows, once it shows what the work leaves behind.

    The very page that was looked at: a moment later a pod that waits may be on its way through
    another attempt, and in no queue.
    """

    def page_with_all() -> str:
        page = read("/metrics")
        return page if is_complete(page) else ""

    return eventually(page_with_all, 20, what) + read("/metrics/slis")


def work(sandbox: Sandbox, scheduler: str) -> None:
    """Let a scheduler place pods, fail, wait for a gate and preempt, on nodes of its own."""
    only = {"for": scheduler}
    short = "theirs" if scheduler == THEIRS else "ours"

    def make(name, **options):
        options = {"cpu": "10m", "memory": None} | options
        return make_pod(f"{short}-{name}", scheduler_name=scheduler, node_selector=only, **options)

    sandbox.create_nodes([make_node(f"{short}-{n}", cpu="4", labels=only) for n in range(2)])
    sandbox.create_pods([make(f"filler-{n}", cpu="3") for n in range(2)])
    eventually(lambda: bound(sandbox, f"{short}-filler") == 2, 20, "the nodes are full")
    gated = make("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    sandbox.create_pods([make("big", cpu="9"), gated])
    # Akin to none of the pods before: the first of each kind is judged and scored from scratch.
    unlike = [
        {"tolerations": [{"key": f"example.com/unlike-{kind}", "operator": "Exists"}]}
        for kind in range(5)
    ]
    count = 0
    while not count or not any(is_timed(sandbox, f"{short}-small-{n}") for n in range(count)):
        sandbox.create_pods([make(f"small-{n}", **unlike[n % 5]) for n in range(count, count + 10)])
        count += 10
    eventually(lambda: bound(sandbox, f"{short}-small") == count, 20, "the small ones are bound")
    sandbox.create_pods([make("vip", cpu="3", priority_class="important")])
    eventually(lambda: preempted(sandbox, f"{short}-filler"), 20, "somebody is preempted")
    eventually(lambda: condition(sandbox, f"{short}-big"), 20, "the big one is told why")


def bound(sandbox: Sandbox, prefix: str) -> int:
    return sum(
        bool(pod["spec"].get("nodeName"))
        for name, pod in sandbox.pods().items()
        if name.startswith(prefix)
    )


def is_timed(sandbox: Sandbox, name: str) -> bool:
    """Return whether this scheduler times its plugins in the first attempt at a pod."""
    uid = sandbox.pods()[name]["metadata"]["uid"]
    return crc32(f"{uid}/1".encode()) % 100 < SAMPLED_PERCENT


def preempted(sandbox: Sandbox, prefix: str) -> bool:
    return (
        any(
            pod["metadata"].get("deletionTimestamp")
            for name, pod in sandbox.pods().items()
            if name.startswith(prefix)
        )
        or sum(name.startswith(prefix) for name in sandbox.pods()) < 2
    )


def is_complete(page: str) -> bool:
    """Return whether a page shows what the work leaves behind last."""
    scored = {("NodeResourcesFit", "Score"), ("TaintToleration", "Score")}
    asked = samples(page, "scheduler_plugin_evaluation_total", "plugin", "extension_point")
    timed = samples(page, "scheduler_plugin_execution_duration_seconds_count")
    evicted = samples(page, "scheduler_preemption_goroutines_execution_total")
    parked = ("unschedulable",)
    waiting = all(
        parked in samples(page, name, "queue")
        for name in ("scheduler_pending_pods", "scheduler_queued_entities")
    )
    # kube-scheduler looks at its cache once a second.
    counted = ("pods",) in samples(page, "scheduler_cache_size", "type")
    return bool(scored <= asked and timed and evicted and waiting and counted)


def test_everything_kube_scheduler_shows_is_here_or_left_out_for_a_reason(pages):
    theirs, ours = pages.families()
    known = set(documented()) | {name for name in ours if name.startswith("process_")}
    lost = {name: f.level for name, f in theirs.items() if name not in known}
    assert {n: level for n, level in lost.items() if entry_for(n) is None} == {}
    assert {n for n in theirs if n in known and entry_for(n)} == set(), "both here and left out"


def test_nothing_else_bears_their_names(pages):
    theirs, ours = pages.families()
    own = ("k8s_scheduler_", "python_")
    extra = {name for name in ours if name not in theirs and not name.startswith(own)}
    assert extra == NEVER_THERE


def test_types_labels_and_buckets_are_the_same(pages):
    theirs, ours = pages.families()
    shared = sorted(set(theirs) & set(ours))
    assert len(shared) > 30
    for name in shared:
        there, here = theirs[name], ours[name]
        assert (here.kind, here.buckets) == (there.kind, there.buckets), name
        assert here.labels == there.labels, name


def test_levels_of_what_is_left_out_are_as_listed(pages):
    theirs, _ = pages.families()
    for pattern, (level, _why) in left_out().items():
        found = {f.level for name, f in theirs.items() if fnmatchcase(name, pattern)}
        assert level == "all" or found <= {level}, pattern


def test_stable_and_beta_metrics_are_there(pages):
    theirs, ours = pages.families()
    promised = {
        n for n, f in theirs.items() if f.level in {"stable", "beta"} and entry_for(n) is None
    }
    assert promised <= set(ours)
    assert {n for n in promised if n.startswith("scheduler_")} == {
        "scheduler_framework_extension_point_duration_seconds",
        "scheduler_goroutines",
        "scheduler_pending_pods",
        "scheduler_plugin_evaluation_total",
        "scheduler_plugin_execution_duration_seconds",
        "scheduler_pod_scheduling_attempts",
        "scheduler_pod_scheduling_sli_duration_seconds",
        "scheduler_preemption_attempts_total",
        "scheduler_preemption_victims",
        "scheduler_queue_incoming_pods_total",
        "scheduler_schedule_attempts_total",
        "scheduler_scheduling_algorithm_duration_seconds",
        "scheduler_scheduling_attempt_duration_seconds",
        "scheduler_unschedulable_pods",
    }


# What the work has left in them


def samples(page: str, name: str, *labels: str) -> set[tuple[str, ...]]:
    """Return the values of labels in the samples of that name that are not zero."""
    return {
        tuple(sample.labels[label] for label in labels)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and sample.value
    }


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("scheduler_schedule_attempts_total", ("result",)),
        ("scheduler_preemption_victims_count", ()),
        ("scheduler_preemption_attempts_total", ()),
        ("scheduler_preemption_goroutines_execution_total", ("result",)),
        ("scheduler_scheduling_algorithm_duration_seconds_count", ()),
        ("leader_election_master_status", ()),
    ],
)
def test_the_same_happened_to_both(pages, name, labels):
    assert samples(pages.ours, name, *labels) == samples(pages.theirs, name, *labels)


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        ("scheduler_pending_pods", "queue", {"unschedulable", "gated"}),
        ("scheduler_queued_entities", "queue", {"unschedulable"}),
        ("scheduler_cache_size", "type", {"nodes", "pods"}),
        ("scheduler_unschedulable_pods", "plugin", {"NodeResourcesFit"}),
    ],
)
def test_both_still_hold_what_could_not_be_placed(pages, name, label, values):
    for page in (pages.theirs, pages.ours):
        assert values <= {value for (value,) in samples(page, name, label)}


def test_both_have_timed_the_same_points(pages):
    name = "scheduler_framework_extension_point_duration_seconds_count"
    theirs = {point for (point,) in samples(pages.theirs, name, "extension_point")}
    ours = {point for (point,) in samples(pages.ours, name, "extension_point")}
    assert ours == theirs - THEIR_POINTS


def test_plugins_that_were_asked_at_filter_and_score_are_the_same(pages):
    name, labels = "scheduler_plugin_evaluation_total", ("plugin", "extension_point")
    points = {"Filter", "Score"}
    theirs = {entry for entry in samples(pages.theirs, name, *labels) if entry[1] in points}
    ours = {entry for entry in samples(pages.ours, name, *labels) if entry[1] in points}
    assert ours == theirs - SILENT


# What pods ask for and are limited to


def asking(name: str, requests: Object, limits: Object | None = None, **more: object) -> Object:
    """Return a container."""
    resources = {"requests": requests, "limits": limits or {}}
    return {"name": name, "image": "pause:3.10", "resources": resources, **more}


def pods_of_all_kinds(node: str) -> list[Object]:
    """Return pods whose sums are made in every way there is. None of them is ever decided about."""
    huge = {"hugepages-2Mi": "4Mi"}
    plain = {"cpu": "700m", "memory": "100M"}
    specs: dict[str, Object] = {
        "nothing": {"containers": [asking("a", {})]},
        "both": {"containers": [asking("a", plain, {"cpu": "1500m"}), asking("b", {"cpu": "1"})]},
        "limits-alone": {"containers": [asking("a", {}, {"cpu": "3m", "memory": "1.5Gi"})]},
        "zero": {"containers": [asking("a", {"cpu": "0", "memory": "1"}, {"memory": "2k"})]},
        "kinds": {
            "containers": [
                asking(
                    "a",
                    {"ephemeral-storage": "1Ti", "memory": "1Mi", "example.com/gpu": "2"} | huge,
                    {"example.com/gpu": "2"} | huge,
                )
            ]
        },
        "init": {
            "initContainers": [
                asking("early", {"cpu": "2"}, {"memory": "1Gi"}),
                asking("sidecar", {"cpu": "300m"}, {"memory": "1Gi"}, restartPolicy="Always"),
                asking("late", {"cpu": "1900m"}, {"memory": "64Mi"}),
            ],
            "containers": [asking("a", plain, {"memory": "200M"})],
        },
        "overhead": {
            "runtimeClassName": "heavy",
            "containers": [asking("a", {"cpu": "1"}, {"cpu": "2"})],
        },
        "whole": {
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}},
            "containers": [asking("a", plain), asking("b", {"cpu": "1m"}, {"memory": "1Gi"})],
        },
        "important": {"priorityClassName": "important", "containers": [asking("a", plain)]},
    }
    pods = []
    for name, spec in specs.items():
        pending, bound = make_pod(f"{name}-pending"), make_pod(f"{name}-bound", node_name=node)
        pending["spec"] = spec | {"schedulerName": "nobody"}
        bound["spec"] = spec | {"schedulerName": OURS, "nodeName": node}
        pods += [pending, bound]
    for scheduler in (OURS, THEIRS):
        gated = make_pod(f"gated-{scheduler}", scheduler_name=scheduler)
        gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        pods.append(gated)
    return pods


def test_resources_of_pods_are_shown_to_the_letter(stage):
    bed, daemon = stage.bed, stage.daemon

    def both() -> tuple[list[str], list[str]]:
        path = "/metrics/resources"
        return sorted(ask(bed, path).splitlines()), sorted(daemon.get(path)[1].splitlines())

    with Sandbox(bed, prefix="resources") as sandbox:
        sandbox.create_cluster_object(
            "/apis/node.k8s.io/v1/runtimeclasses",
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": "heavy"},
                "handler": "heavy",
                "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            },
        )
        sandbox.create_nodes(
            [make_node("holds-all", taints=[{"key": "x", "effect": "NoSchedule"}])]
        )
        pods = sandbox.create_pods(pods_of_all_kinds("holds-all"))
        last = sandbox.create_pods([make_pod("last", scheduler_name="nobody")])
        shown = {
            p["metadata"]["name"]
            for p in pods + last
            if not p["metadata"]["name"].startswith("nothing")
        }

        def names(lines: list[str]) -> set[str]:
            here = [line for line in lines if f'namespace="{sandbox.namespace}"' in line]
            return {line.partition('pod="')[2].partition('"')[0] for line in here}

        eventually(lambda: all(names(page) == shown for page in both()), 20, "all pods are shown")
        theirs, ours = both()
        assert ours == theirs
        assert any(line.endswith(" 0.7000000000000001") for line in ours), "no fraction like theirs"
        # Resizing in place changes the spec at once, and a pod that has finished goes.
        resized, finished = (f"{sandbox.path}/pods/{name}-bound" for name in ("both", "init"))
        bed.client.patch(
            f"{resized}/resize",
            {"spec": {"containers": [{"name": "b", "resources": {"requests": {"cpu": "1300m"}}}]}},
            content_type=STRATEGIC_MERGE_PATCH,
        )
        bed.client.patch(f"{finished}/status", {"status": {"phase": "Failed"}})
        left = shown - {"init-bound"}
        eventually(lambda: all(names(page) == left for page in both()), 20, "one is over")
        theirs, ours = both()
        assert ours == theirs
        resize = [line for line in ours if 'pod="both-bound"' in line and "cpu" in line]
        assert [line.split()[-1] for line in resize] == ["1.5", "2"]
