"""Pods that count in affinity terms: who of them may stay is told at once, as judging would."""

import pytest

from k8s_scheduler.core.engine.preemption.dry_runs import DryRuns
from k8s_scheduler.core.framework.evaluation.trial import Trial
from k8s_scheduler.core.framework.preemption import Victims
from tests.builders import make_node, make_pod
from tests.unit.core.engine.cores import FullHarness
from tests.unit.core.engine.preemption.test_reprieve import by_judging, small

HOST, ZONE, NOWHERE = "host", "zone", "rack"
SIDES = {"anti": "podAntiAffinity", "near": "podAffinity"}


def term(key: str, **pairs: str) -> dict:
    return {"topologyKey": key, "labelSelector": {"matchLabels": pairs}}


def holding(pod, side: str, *terms: dict):
    affinity = pod.raw["spec"].setdefault("affinity", {})
    affinity[SIDES[side]] = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return pod


def crowd(kinds: str, cpu: str = "1"):
    """Return pods, one for each letter: what they are and what they think of the newcomer."""
    found = []
    for number, kind in enumerate(kinds):
        pod = small(number, cpu).label(app=kind)
        if kind in "hzr":
            key = {"h": HOST, "z": ZONE, "r": NOWHERE}[kind]
            holding(pod, "anti", term(key, app="new"))
        elif kind == "o":
            holding(pod, "anti", term(HOST, app="others"))
        elif kind == "n":
            holding(pod, "near", term(HOST, app="n"))
        elif kind == "t":
            pod.deleting()
        found.append(pod)
    return found


def bench(kinds: str, *, slots: int = 10, protected: str = "") -> FullHarness:
    made = FullHarness()
    made.node(make_node("n0").label(host="n0", zone="a").offers(cpu="6", pods=str(slots)).obj())
    if protected:
        made.budget("b", 0, app=protected)
    for number, pod in enumerate(crowd(kinds)):
        pod.on("n0").raw["status"]["startTime"] = f"2026-01-01T00:00:{number:02}Z"
        made.pod(pod.obj())
    return made


def newcomer(kind: str):
    pod = make_pod("new").label(app="new").request(cpu="2")
    if kind == "avoids":
        return holding(pod, "anti", term(HOST, app="a"))
    if kind == "avoids by zone":
        return holding(pod, "anti", term(ZONE, app="a"), term(NOWHERE, app="p"))
    if kind == "avoids in many ways":
        return holding(pod, "anti", *(term(HOST, app=app) for app in "ahtx"))
    if kind == "needs":
        return holding(pod, "near", term(HOST, app="p"))
    return pod


def found_for(monkeypatch, made: FullHarness, pod) -> list[tuple[list[str], int]]:
    """Return who would have to leave for a pod, and against how many budgets; for each dry run."""
    found = []
    select = DryRuns.select

    def seen(*args):
        results = select(*args)
        found.extend(results)
        return results

    with monkeypatch.context() as patch:
        patch.setattr(DryRuns, "select", seen)
        made.pod(pod.priority(10).obj())
        made.schedule()
    victims = [each for each in found if isinstance(each, Victims)]
    return [([pod.metadata.name for pod in each.pods], each.pdb_violations) for each in victims]


KINDS = ["ppppp", "hphph", "zpzp", "rprpr", "oooo", "apap", "hahat", "nnpt", "hhhhh", "tatha"]
NEWCOMERS = ["plain", "avoids", "avoids by zone", "avoids in many ways", "needs"]


@pytest.mark.parametrize("asking", NEWCOMERS)
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("protected", ["", "p", "h"])
def test_the_victims_are_those_that_judging_finds(kinds, asking, protected, monkeypatch):
    at_once = found_for(monkeypatch, bench(kinds, protected=protected), newcomer(asking))
    by_judging(monkeypatch)
    judged = found_for(monkeypatch, bench(kinds, protected=protected), newcomer(asking))
    assert judged == at_once


def test_only_they_leave_who_are_in_the_way(monkeypatch):
    assert found_for(monkeypatch, bench("hphp"), newcomer("plain")) == [(["p0", "p2"], 0)]
    assert found_for(monkeypatch, bench("apap"), newcomer("avoids by zone")) == [(["p0", "p2"], 0)]
    guarded = bench("hphp", protected="h")
    assert found_for(monkeypatch, guarded, newcomer("plain")) == [(["p0", "p2"], 2)]
    assert found_for(monkeypatch, bench("rprp"), newcomer("plain")) == []


def test_a_crowd_that_refuses_everybody_is_judged_once(monkeypatch):
    judged = 0
    judge = Trial.judge

    def counted(trial):
        nonlocal judged
        judged += 1
        return judge(trial)

    monkeypatch.setattr(Trial, "judge", counted)
    counts = []
    for many in (2, 50):
        judged = 0
        [(victims, _)] = found_for(monkeypatch, bench("h" * many, slots=100), newcomer("plain"))
        assert len(victims) == many
        counts.append(judged)
    assert counts[0] == counts[1] > 0
