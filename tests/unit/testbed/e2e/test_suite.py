"""What the suite is called with, and what is made of what it writes."""

import json
from pathlib import Path

import pytest

from testbed.e2e.suite import (
    Choice,
    Outcome,
    Spec,
    command,
    read_results,
    rehearse,
    select,
    short_name,
)
from testbed.errors import TestbedError

CHOICE = Choice(seed=7, limit_seconds=600)


def line(name="[sig-scheduling] Specs run [Serial]", state="passed", message="", **changes):
    return json.dumps({"name": name, "state": state, "seconds": 1.5, "message": message} | changes)


@pytest.fixture
def suite(tmp_path, program):
    """Make a suite that writes the lines it is given, whatever it is called with."""

    def make(lines, code=0):
        text = "\n".join(lines)
        return program(
            tmp_path / "suite",
            "#!/bin/sh\n"
            "for flag; do case $flag in --results=*) out=${flag#--results=} ;; esac; done\n"
            f"cat > $out <<'END'\n{text}\nEND\n"
            f'echo "called with $*"\nexit {code}\n',
        )

    return make


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("passed", Outcome.PASS),
        ("skipped", Outcome.SKIP),
        ("pending", Outcome.SKIP),
        ("failed", Outcome.FAIL),
        ("panicked", Outcome.FAIL),
        ("timedout", Outcome.FAIL),
        ("interrupted", Outcome.FAIL),
        ("aborted", Outcome.FAIL),
    ],
)
def test_every_state_of_ginkgo_is_an_outcome(state, outcome):
    assert read_results([line(state=state)]) == [Spec("Specs run", outcome, 1.5, "")]


def test_the_reason_is_the_first_line_that_says_something():
    (spec,) = read_results([line(state="failed", message="\n  Timed out.\nExpected\n  nothing\n")])
    assert spec.reason == "Timed out."
    assert read_results([line()])[0].reason == ""


@pytest.mark.parametrize(
    "broken", ["", "no JSON", "[]", "{}", line(seconds="soon"), line(seconds=None)]
)
def test_what_is_no_result_is_shown(broken):
    with pytest.raises(TestbedError, match="no result of a spec"):
        read_results([broken])


def test_names_lose_their_group_and_the_labels_behind_them():
    text = "[sig-scheduling] SchedulerPreemption [async] works [Feature:X] [Serial]"
    assert short_name(text) == "SchedulerPreemption [async] works"
    assert short_name("Other thing [0.0.0.0] hostIP") == "Other thing [0.0.0.0] hostIP"


def test_specs_that_were_not_chosen_are_left_out():
    specs = read_results([line(name="a"), line(name="b", state="skipped")])
    assert [spec.name for spec in select(specs, ["a"])] == ["a"]


def test_both_schedulers_get_the_same_specs_in_the_same_order():
    flags = Choice(seed=7, limit_seconds=600, focus="Preempt").flags()
    assert "--ginkgo.seed=7" in flags
    assert "--ginkgo.timeout=600s" in flags
    assert "--ginkgo.focus=Preempt" in flags
    assert "--ginkgo.label-filter=!Feature: containsAny OffByDefault" in flags
    assert not [flag for flag in CHOICE.flags() if "focus" in flag]


def test_a_run_names_its_cluster_and_where_reports_go():
    called = command(
        Path("/suite"), CHOICE, kubeconfig=Path("/kc"), results=Path("/r"), reports=Path("/out")
    )
    assert called[0] == "/suite"
    assert {"--kubeconfig=/kc", "--results=/r", "--report-dir=/out"} <= set(called)
    assert set(CHOICE.flags()) < set(called)
    assert "--ginkgo.dry-run" not in called


def test_a_rehearsal_returns_what_would_run(suite, tmp_path):
    made = suite([line(name="a"), line(name="b", state="skipped")])
    assert rehearse(made, CHOICE, folder=tmp_path) == ["a"]
    assert "--ginkgo.dry-run" in (tmp_path / "rehearsal.log").read_text()


def test_a_focus_that_matches_nothing_shows_what_there_is(suite, tmp_path):
    made = suite([line(name="[sig-scheduling] b", state="skipped")])
    with pytest.raises(TestbedError, match=r"no spec matches 'x', .* there are\n  b$"):
        rehearse(made, Choice(seed=7, limit_seconds=600, focus="x"), folder=tmp_path)


def test_a_suite_that_does_not_start_shows_what_it_said(suite, tmp_path):
    with pytest.raises(TestbedError, match="called with"):
        rehearse(suite([line()], code=2), CHOICE, folder=tmp_path)
