"""kube-scheduler's recorded decisions, as far as the plugins that are built decide them.

Each family is about one plugin; where another, unbuilt plugin had a say (it rejected the node, or
its own constraints are on the pod), that node or score is left out of the comparison. What is
compared must agree without exception.
"""

import msgspec
import pytest

from k8s_scheduler.api.config_load import default_configuration
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.messages.incoming import NodeChanged, PodChanged
from k8s_scheduler.core.scheduler import Scheduler, Setup
from tests.conformance.recorded import defaulted, scenarios

# Family, and the least number of node verdicts and of plugin scores it must really compare.
FAMILIES = {
    "resources": (600, 1000),
    "nodeaffinity": (800, 500),
    "taints": (800, 2000),
    "ports": (800, 2000),
    "images": (400, 2000),
    "daemonset": (700, 200),
}
CODES = {True: "Unschedulable", False: "UnschedulableAndUnresolvable"}
OURS = set(BUILT_INS) | {"PreFilterResult"}


def load(scenario):
    """Return a scheduler that has seen the scenario's nodes and bound pods."""
    core = Scheduler(Setup(profiles=default_configuration(known_plugins()).profiles))
    for raw in scenario["objects"]:
        if raw["kind"] == "Node":
            node = msgspec.convert(raw, Node)
            core.handle(NodeChanged(0.0, NodeName(node.metadata.name), node))
    for raw in scenario["objects"]:
        if raw["kind"] == "Pod":
            pod = msgspec.convert(defaulted(raw), Pod)
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
                # The recorded objects have no uid; their names are unique.
                key = f"{pod.metadata.namespace}/{pod.metadata.name}"
                metadata = msgspec.structs.replace(pod.metadata, uid=key)
                core.handle(
                    PodChanged(0.0, PodUid(key), msgspec.structs.replace(pod, metadata=metadata))
                )
    return core


def pending(scenario, key):
    for raw in scenario["objects"]:
        if raw["kind"] == "Pod":
            metadata = raw["metadata"]
            if f"{metadata.get('namespace', 'default')}/{metadata['name']}" == key:
                return msgspec.convert(defaulted(raw), Pod)
    raise KeyError(key)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    verdicts = scores = 0
    for scenario, decisions in scenarios(family):
        if scenario.get("config"):
            # These configure plugins that are not built.
            continue
        core = load(scenario)
        for key in scenario["pending"]:
            want = decisions[key]
            got = core.judge(pending(scenario, key))
            where = f"{scenario['id']} {key}"
            if (want.get("preFilter") or {}).get("plugin", "") not in OURS | {""}:
                continue
            verdicts += compare_verdicts(want, got, where)
            if sorted(want["feasible"]) == sorted(got.feasible):
                scores += compare_scores(want, got, where)
    assert verdicts >= FAMILIES[family][0], (verdicts, scores)
    assert scores >= FAMILIES[family][1], (verdicts, scores)


def compare_verdicts(want, got, where):
    if want.get("preFilter"):
        assert want["preFilter"]["reasons"] == [r.text for r in got.pre_filter.reasons], where
        assert want["message"] == got.diagnosis.message(), where
        return 1
    assert got.pre_filter is None, where
    compared = 0
    foreign = False
    for name, verdict in (want.get("rejected") or {}).items():
        if verdict["plugin"] not in OURS:
            foreign = True
            continue
        found = got.rejected[name]
        assert verdict["plugin"] == found.plugin, (where, name)
        assert verdict["code"] == CODES[found.resolvable], (where, name)
        if verdict["plugin"] != "PreFilterResult":
            assert set(verdict["reasons"]) == {r.text for r in found.reasons}, (where, name)
        compared += 1
    for name in want["feasible"]:
        assert name in got.feasible, (where, name)
        compared += 1
    if want.get("message") and not foreign:
        assert want["message"] == got.diagnosis.message(), where
    return compared


def compare_scores(want, got, where):
    compared = 0
    for name, by_plugin in (want.get("scores") or {}).items():
        for plugin, score in by_plugin.items():
            if plugin in BUILT_INS:
                assert got.scores[name][plugin] == score, (where, name, plugin)
                compared += 1
        skipped = set(BUILT_INS) - set(by_plugin)
        assert not skipped & set(got.scores[name]), (where, name)
    return compared
