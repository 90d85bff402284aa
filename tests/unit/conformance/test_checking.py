"""The check keeps what differs; the report on another release says what changed, and of whom."""

import json

from tests.conformance.baseline import Changes, changed_parts
from tests.conformance.check import Check
from tests.conformance.oracle.compare import read_lines
from tests.conformance.oracle.flatten import flattened
from tests.conformance.oracle.gen import FAMILIES, scenarios
from tests.conformance.oracle.seq import sequences
from tests.conformance.oracle.undefault import undefaulted_scenarios
from tests.conformance.recorded_sets import SCENARIOS, Compared

WANT = {"id": "mix-1-0", "pod": "a/b", "feasible": ["n"]}
GOT = {"id": "mix-1-0", "pod": "a/b", "feasible": []}
QUESTION = {"id": "mix-1-0", "objects": [], "pending": ["a/b"]}


class TestCheck:
    """What differs can be looked at afterwards."""

    def test_a_difference_is_kept_with_its_question_and_both_answers(self, tmp_path, capsys):
        check = Check(tmp_path)
        other = QUESTION | {"id": "mix-1-1"}
        agreeing = Compared(("mix-1-1", "a/b"), WANT, WANT)
        check.take("seed 1", [QUESTION, other], [Compared(("mix-1-0", "a/b"), WANT, GOT), agreeing])
        assert check.differing == 1
        assert [p.name for p in tmp_path.iterdir()] == ["mix-1-0"]
        kept = {p.stem: json.loads(p.read_text()) for p in (tmp_path / "mix-1-0").iterdir()}
        assert kept == {"question": QUESTION, "want": WANT, "got": GOT}
        assert "agreement 1/2" in capsys.readouterr().out

    def test_the_differing_step_leads_to_its_sequence(self, tmp_path):
        sequence = {"id": "mix-seq1-0", "objects": [], "steps": []}
        step = Compared(("mix-seq1-0/3", "a/b"), WANT, GOT)
        Check(tmp_path).take("seed 1", [sequence], [step])
        assert json.loads((tmp_path / "mix-seq1-0" / "question.jsonl").read_text()) == sequence

    def test_agreement_leaves_no_file(self, tmp_path):
        check = Check(tmp_path)
        check.take("seed 1", [QUESTION], [Compared(("mix-1-0", "a/b"), WANT, WANT)])
        assert check.differing == 0
        assert list(tmp_path.iterdir()) == []


class TestBaseline:
    """Changes are told by part and plugin."""

    def test_scores_are_told_by_plugin(self):
        before = WANT | {"scores": {"n": {"": 10, "A": 4, "B": 6}}}
        after = WANT | {"scores": {"n": {"": 11, "A": 5, "B": 6}}}
        assert changed_parts(before, after) == ["scores.A"]

    def test_a_plugin_that_merely_appears_is_told_from_one_that_decides(self):
        before = WANT | {"scores": {"n": {"": 10, "A": 10}}}
        after = WANT | {"scores": {"n": {"": 10, "A": 10, "B": 0}}}
        assert changed_parts(before, after) == ["scores.B (0 or none)"]

    def test_reasons_are_told_by_the_plugins_on_both_sides(self):
        verdict = {"plugin": "A", "code": "Unschedulable", "reasons": ["x"]}
        before = WANT | {"rejected": {"m": verdict}}
        after = WANT | {"rejected": {"m": verdict | {"plugin": "B"}}}
        assert changed_parts(before, after) == ["reasons.A", "reasons.B"]

    def test_the_report_counts_by_family(self):
        changes = Changes()
        changes.add(("mix-1-0", "a/b"), WANT, GOT)
        changes.add(("mix-1-1", "a/b"), WANT, WANT)
        changes.add(("taints-1-1", "a/b"), WANT, None)
        assert list(changes.table()) == [
            "mix                 1 of 2      feasible 1",
            "taints              1 of 1      missing 1",
            "changed 2 of 3",
            "  feasible: 1",
            "  missing: 1",
        ]


class TestGenerators:
    """A seed gives the same questions, everywhere and always."""

    def test_a_seed_gives_the_same_scenarios(self):
        first, again = list(scenarios(5, 1)), list(scenarios(5, 1))
        assert first == again
        assert [s["id"] for s in first] == [f"{family}-5-0" for family in FAMILIES]
        assert first != list(scenarios(6, 1))

    def test_recorded_scenarios_are_those_of_their_seed(self):
        recorded = next(iter(read_lines(SCENARIOS.questions)))
        family, seed, _ = recorded["id"].split("-")
        assert next(iter(scenarios(int(seed), 1, family))) == recorded

    def test_a_flattened_sequence_has_a_scenario_for_each_step(self):
        sequence = next(iter(sequences(5, 1, 4)))
        steps = list(flattened(sequence))
        assert [s["id"] for s in steps] == [f"{sequence['id']}/{n}" for n in range(4)]
        assert all("steps" not in s for s in steps)

    def test_less_is_written_out_without_the_defaults(self):
        plain, bare = list(scenarios(5, 1)), list(undefaulted_scenarios(5, 1))
        assert len(plain) == len(bare)
        assert any(a["objects"] != b["objects"] for a, b in zip(plain, bare, strict=True))
        assert [a["pending"] for a in plain] == [b["pending"] for b in bare]
