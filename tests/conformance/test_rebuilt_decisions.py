"""kube-scheduler's own code says of rebuilt decisions what was decided: the node was feasible."""

import msgspec
import pytest

from k8s_scheduler.core.messages.recording import read_segment
from k8s_scheduler.simulate.rebuilding import scenario_of
from k8s_scheduler.simulate.replaying import Replay
from tests.conformance.oracle.asking import ask
from tests.conformance.oracle.building import built_oracle
from tests.conformance.oracle.gen import scenarios
from tests.fakes.tape import METRICS, recorded


@pytest.mark.skipif(built_oracle() is None, reason="make oracle builds it")
async def test_the_oracle_finds_the_chosen_nodes_feasible(tmp_path):
    tapes = recorded(tmp_path / "tape", scenarios(77, 1))
    questions, decisions = {}, {}
    for number in range(len(tapes)):
        path = tmp_path / f"tape-{number}"

        def look(moment, number=number):
            name, pod = f"{number}/{moment.number}", moment.queued.pod
            state, profile = moment.snapshot(), moment.profile
            questions[name] = scenario_of(name, state, pod, profile=profile)

        replay = Replay(onlooker=look, _metrics=METRICS.scheduler)
        for decision in replay.segment(path.name, read_segment(path.read_bytes())):
            decisions[f"{number}/{decision.number}"] = decision
    placed = 0
    for answer in ask(built_oracle(), map(msgspec.to_builtins, questions.values())):
        decision, question = decisions[answer["id"]], questions[answer["id"]]
        assert "error" not in answer
        promised = any(o.get("status", {}).get("nominatedNodeName") for o in question.objects)
        if decision.node is None:
            # What nominated pods ask for is no part of a scenario: there may seem to be room.
            assert promised or not answer["feasible"]
            continue
        placed += 1
        assert decision.node in answer["feasible"]
        totals = {node: scores[""] for node, scores in answer["scores"].items()}
        assert promised or totals[decision.node] == max(totals.values())
    assert placed > 15
