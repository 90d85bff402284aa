"""Promised pods, counted in for many rows at once and remembered, are as if tried row by row.

A core lives on while promises, pods and nodes come and go. After each step pods of all kinds are
judged with what the core remembers, and once more from scratch: each row by itself, with nothing
kept, on pods read anew.
"""

import random

import numpy as np
import pytest

from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.ports import host_ports
from k8s_scheduler.api.resources import pod_requests
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views.pod_view import PodView
from k8s_scheduler.core.state.delta import PlacedPod
from k8s_scheduler.core.state.rows import NodeRow
from tests.builders import make_node, make_pod
from tests.inside import inside
from tests.unit.core.engine.cores import FullHarness

ZONES = "abc"
STEPS = 25


def any_pod(draw, name):
    """Return a builder of a pod with some of all that a promise or a node may collide with."""
    pod = make_pod(name).priority(draw.choice([0, 0, 0, 1, 2]))
    pod.request(cpu=draw.choice(["0", "500m", "1", "2"]))
    pod.label(app=draw.choice("xy"))
    spec = pod.raw["spec"]
    if draw.random() < 0.25:
        address = draw.choice(["", "10.0.0.1"])
        spec["containers"][0]["ports"] = [{"hostPort": draw.choice([80, 81]), "hostIP": address}]
    if draw.random() < 0.4:
        disk = {"pdName": draw.choice("dde")}
        spec["volumes"] = [{"name": "v", "gcePersistentDisk": disk}]
    if draw.random() < 0.2:
        spec["nodeSelector"] = {"zone": draw.choice(ZONES)}
    kind = draw.random()
    selector = {"matchLabels": {"app": draw.choice("xy")}}
    if kind < 0.2:
        term = {"labelSelector": selector, "topologyKey": draw.choice(["zone", "host"])}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif kind < 0.4:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": draw.choice(["zone", "host"]),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    return pod


class Life:
    """A core, and what happens to it."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.h = FullHarness()
        self.number = 0
        self.there = []
        self.nodes = [f"n{i}" for i in range(8)]
        for name in self.nodes:
            self.put_node(name)

    def put_node(self, name):
        node = make_node(name).label(zone=self.draw.choice(ZONES), host=name)
        node.offers(cpu=self.draw.choice(["2", "4"]), pods=str(self.draw.randint(2, 6)))
        if self.draw.random() < 0.1:
            node.taint("k")
        self.h.node(node.obj())

    def step(self):
        self.number += 1
        what = self.draw.choice(["promise", "promise", "promise", "place", "gone", "node", "drop"])
        name = f"p{self.number}"
        if what in {"promise", "place"}:
            pod = any_pod(self.draw, name)
            node = self.draw.choice([*self.nodes, "unknown"])
            if what == "place":
                pod.on(node)
            else:
                # Nobody tries it: it stays promised.
                pod.gate("wait")
                pod.raw["status"]["nominatedNodeName"] = node
            self.there.append(pod.obj())
            self.h.pod(self.there[-1])
        elif what == "gone" and self.there:
            self.h.drop_pod(self.there.pop(self.draw.randrange(len(self.there))))
        elif what == "node":
            self.put_node(self.draw.choice(self.nodes))
        elif what == "drop":
            name = self.draw.choice(self.nodes)
            if inside(self.h.core).cache.nodes.row_of(NodeName(name)) is not None:
                self.h.drop_node(name)


def shown(verdicts, codes):
    return [verdicts[code] if code else None for code in codes.tolist()]


def remembered(core, profile, pod, rows):
    """Judge as the core does, with all that it keeps."""
    cycle = inside(core).cycle
    nominated = cycle.nominees.counting_for(pod)
    found = cycle._runtime.run_filters(profile, PodView(pod), rows, nominated)
    return shown(cycle._verdicts, found.codes)


def from_scratch(core, profile, pod, rows):
    """Judge every row by itself, first with the pods promised to it, then without."""
    cache, verdicts = inside(core).cache, VerdictTable()
    runtime = Runtime(cache, verdicts)
    found = runtime.run_filters(profile, PodView(pod), rows)
    codes = found.codes.copy()
    if found.before.rejection is None:
        for place, row in enumerate(rows.tolist()):
            name = cache.nodes.name_of(NodeRow(row))
            if found.before.names is not None and name not in found.before.names:
                continue
            promised = [
                PlacedPod(other, pod_requests(other), host_ports(other))
                for node, other in cache.nominations.entries()
                if node == name
                and other.metadata.uid != pod.metadata.uid
                and (other.spec.priority or 0) >= (pod.spec.priority or 0)
            ]
            trial = runtime.trial(profile, found.before, NodeRow(row))
            trial.add(*promised)
            codes[place] = trial.judge() or codes[place]
    return shown(verdicts, codes)


@pytest.mark.parametrize("seed", range(40))
def test_all_rows_at_once_are_as_each_by_itself(seed):
    life = Life(seed)
    core = life.h.core
    compared = changed = 0
    for _ in range(STEPS):
        life.step()
        rows = inside(core).cache.nodes.present_rows()
        asked = [any_pod(life.draw, f"q{life.number}-{i}").obj() for i in range(3)]
        asked += [pod for pod in life.there if pod.status.nominated_node_name][-1:]
        for pod in asked:
            profile = inside(core).profiles[pod.spec.scheduler_name]
            want = from_scratch(core, profile, pod, rows)
            # Twice: the second time everything is remembered.
            assert remembered(core, profile, pod, rows) == want
            assert remembered(core, profile, pod, rows) == want
            # Seldom: another question makes the core forget the last one.
            if len(rows) and life.draw.random() < 0.1:
                alone = np.array([rows[-1]], dtype=np.int64)
                assert remembered(core, profile, pod, alone) == want[-1:]
            plain = shown(
                inside(core).cycle._verdicts,
                inside(core).cycle._runtime.run_filters(profile, PodView(pod), rows).codes,
            )
            compared += 1
            changed += plain != want
    # It would be no test if promises never mattered.
    assert changed > 0, compared
