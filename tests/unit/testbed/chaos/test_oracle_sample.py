"""Decisions become questions, and answers become opinions."""

import json
from pathlib import Path

from testbed.chaos import oracle_sample
from testbed.chaos.archive import read_evidence
from testbed.chaos.oracle_sample import ask_for_opinions
from testbed.chaos.replays import Answer
from testbed.chaos.scenarios import scenario_of
from testbed.chaos.seen_worlds import seen_worlds
from tests.unit.testbed.chaos.histories import Story, a_good_story, node, pod


def scenarios(story):
    seen = seen_worlds(story.evidence())
    return {each.decision.name: scenario_of(each.decision.name, each) for each in seen}


def placed(scenario):
    """Return where pods are, by name."""
    pods = [each for each in scenario["objects"] if each["kind"] == "Pod"]
    return {each["metadata"]["name"]: each["spec"].get("nodeName") for each in pods}


class TestQuestions:
    def test_hold_what_had_been_seen_and_what_was_decided_before(self):
        story = Story(node("n1"), node("n2", open=False))
        story.write(pod("p1"))
        story.write(pod("p2", zone="z"))
        seen = story.revision
        story.decide("p1")
        story.bind("p1")
        story.bind("theirs")
        story.decide("p2", seen=seen)
        found = scenarios(story)
        assert placed(found["p1"]) == {"p1": None}
        assert placed(found["p2"]) == {"p1": "n1", "p2": None}
        assert found["p2"]["pending"] == ["chaos/p2"]
        assert found["p2"]["objects"][-1]["spec"]["nodeSelector"]
        shut = [each["spec"] for each in found["p1"]["objects"] if each["kind"] == "Node"]
        assert shut == [{}, {"unschedulable": True}]

    def test_of_a_pod_that_history_does_not_know_there_is_none(self):
        story = a_good_story()
        story.decide("unknown")
        assert scenarios(story)["unknown"] is None


class TestOpinions:
    """A run of one decision, an oracle that is told what to say, and a replay that writes."""

    def opinions(self, monkeypatch, tmp_path, *, feasible, totals, rebuilt=True):
        story = Story()
        story.write(pod("p1"))
        story.decide("p1", by="a-1")
        evidence = story.evidence()
        monkeypatch.setattr(oracle_sample, "read_evidence", lambda _: evidence)

        def replay(arguments):
            [at] = [n for n, each in enumerate(arguments) if each == "--scenario"]
            if rebuilt:
                question = {"id": "x", "objects": [], "pending": ["chaos/p1"]}
                Path(arguments[at + 2]).write_text(json.dumps(question), encoding="utf-8")
            return Answer(0, "")

        def answers(questions):
            scores = {name: {"": total} for name, total in totals.items()}
            return [{"id": q["id"], "feasible": feasible, "scores": scores} for q in questions]

        assert ask_for_opinions(tmp_path, answers=answers, ask=replay) == 2
        times = '"lease_seconds": 1, "write_seconds": 1, "quiet_from": 1, "ended_at": 1'
        (tmp_path / "run.json").write_text(f'{{"seed": 1, "scheduler": "s", {times}}}')
        (tmp_path / "history.jsonl").touch()
        (tmp_path / "audit.log").touch()
        return {each.source: each.complaint for each in read_evidence(tmp_path).opinions}

    def test_a_feasible_node_of_the_best_score_is_right(self, monkeypatch, tmp_path):
        found = self.opinions(
            monkeypatch, tmp_path, feasible=["n1", "n2"], totals={"n1": 5, "n2": 5}
        )
        assert found == {"history": "", "recording": ""}

    def test_a_node_that_is_not_feasible_is_wrong(self, monkeypatch, tmp_path):
        found = self.opinions(monkeypatch, tmp_path, feasible=["n2"], totals={"n2": 5})
        assert all(complaint.startswith("not feasible") for complaint in found.values())

    def test_scores_count_where_everything_is_known(self, monkeypatch, tmp_path):
        found = self.opinions(
            monkeypatch, tmp_path, feasible=["n1", "n2"], totals={"n1": 5, "n2": 6}
        )
        assert found == {"history": "", "recording": "scores 5, and another node 6"}

    def test_an_answer_without_scores_is_no_proof(self, monkeypatch, tmp_path):
        for totals in ({}, {"n2": 5}):
            found = self.opinions(monkeypatch, tmp_path, feasible=["n1", "n2"], totals=totals)
            assert found == {"history": "", "recording": "the oracle gives it no score"}

    def test_what_can_not_be_rebuilt_is_no_proof(self, monkeypatch, tmp_path):
        found = self.opinions(monkeypatch, tmp_path, feasible=["n1"], totals={}, rebuilt=False)
        assert found == {"history": "", "recording": "could not be rebuilt"}
