"""Pods that a hard spread constraint counts: how many of them may stay is told as judging would."""

import random

import pytest

from k8s_scheduler.core.framework.evaluation.trial import Trial
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.engine.preemption.test_dry_runs_affinity import found_for
from tests.unit.core.engine.preemption.told_at_once import told_and_judged

ZONES = "abc"


def constraint(key: str, *, skew: int = 1, app: str = "x", **more) -> dict:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def spread(pod, *constraints: dict):
    pod.raw["spec"]["topologySpreadConstraints"] = list(constraints)
    return pod


def drawn_constraint(chance: random.Random) -> dict:
    more = {}
    if chance.random() < 0.3:
        more["minDomains"] = chance.randrange(1, 5)
    if chance.random() < 0.3:
        more["nodeAffinityPolicy"] = chance.choice(["Honor", "Ignore"])
    if chance.random() < 0.3:
        more["nodeTaintsPolicy"] = chance.choice(["Honor", "Ignore"])
    key, app = chance.choice(["zone", "host", "zone"]), chance.choice("xxy")
    return constraint(key, skew=chance.randrange(1, 4), app=app, **more)


def story(seed: int):
    """Return a cluster and a pod that preempts, the same for the same seed."""
    chance = random.Random(seed)
    made = FullHarness()
    nodes = chance.randrange(1, 6)
    for number in range(nodes):
        labels = {"host": f"n{number}", "zone": chance.choice(ZONES)}
        if chance.random() < 0.15:
            del labels["zone"]
        node = (
            make_node(f"n{number}")
            .label(**labels)
            .offers(cpu="4", pods=str(chance.choice([6, 20])))
        )
        if chance.random() < 0.2:
            node.taint("t")
        made.node(node.obj())
    for number in range(chance.randrange(2, 16)):
        pod = make_pod(f"p{number}").label(app=chance.choice("xxyz"))
        pod.request(cpu=chance.choice(["100m", "1", "2"])).on(f"n{chance.randrange(nodes)}")
        pod.priority(chance.choice([0, 0, 1, 50]))
        if chance.random() < 0.2:
            pod.namespace("elsewhere")
        if chance.random() < 0.15:
            pod.deleting()
        pod.raw["status"]["startTime"] = f"2026-01-01T00:00:{number:02}Z"
        made.pod(pod.obj())
    if chance.random() < 0.3:
        made.budget("b", 0, app="y")
    if chance.random() < 0.3:
        vip = make_pod("vip").label(app="x").request(cpu="1").priority(20)
        vip.raw["status"]["nominatedNodeName"] = "n0"
        vip.raw["spec"]["schedulingGates"] = [{"name": "wait"}]
        made.pod(vip.obj())
    new = make_pod("new").label(app=chance.choice("xxz")).request(cpu=chance.choice(["1", "3"]))
    spread(new, *(drawn_constraint(chance) for _ in range(chance.randrange(1, 3))))
    keys = {(c["topologyKey"]) for c in new.raw["spec"]["topologySpreadConstraints"]}
    if len(keys) < len(new.raw["spec"]["topologySpreadConstraints"]):
        new.raw["spec"]["topologySpreadConstraints"].pop()
    return made, new


@pytest.mark.parametrize("hundred", range(5))
def test_the_victims_are_those_that_judging_finds(hundred, monkeypatch):
    seeds = range(hundred * 100, hundred * 100 + 100)
    at_once, judged, told = told_and_judged(monkeypatch, story, seeds)
    assert at_once == judged
    assert sum(map(bool, at_once)) > 10
    assert None not in told
    assert sum(any(quota.places for quota in each) for each in told) > 5


def test_a_crowd_that_counts_is_judged_no_more_often_than_a_few(monkeypatch):
    judged = 0
    judge = Trial.judge

    def counted(trial):
        nonlocal judged
        judged += 1
        return judge(trial)

    monkeypatch.setattr(Trial, "judge", counted)
    counts = []
    for many in (3, 60):
        made = FullHarness()
        for name in ("n0", "n1"):
            made.node(make_node(name).label(host=name).offers(cpu="9", pods="100").obj())
        for number in range(many):
            made.pod(make_pod(f"p{number}").label(app="x").request(cpu="1m").on("n0").obj())
        made.pod(make_pod("full").request(cpu="9").priority(99).on("n1").obj())
        judged = 0
        new = spread(make_pod("new").label(app="x").request(cpu="1m"), constraint("host", skew=2))
        [(victims, _)] = found_for(monkeypatch, made, new)
        # One may stay beside it.
        assert len(victims) == many - 1
        counts.append(judged)
    assert counts[0] == counts[1] > 0
