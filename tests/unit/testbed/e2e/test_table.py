"""Two columns, and who did worse."""

import pytest

from testbed.e2e.__main__ import verdict
from testbed.e2e.column import OURS, UPSTREAM, Column
from testbed.e2e.suite import Outcome, Spec
from testbed.e2e.table import reasons, shortfall, table

PASS, FAIL, SKIP = Outcome.PASS, Outcome.FAIL, Outcome.SKIP


def column(scheduler, *, in_time=True, **outcomes):
    specs = [
        Spec(name, outcome, 2.25, "" if outcome is PASS else f"{name} went wrong\nbadly")
        for name, outcome in outcomes.items()
    ]
    return Column(scheduler, tuple(specs), 61.0, in_time)


def test_every_chosen_spec_has_a_line_and_every_column_its_sums():
    upstream = column(UPSTREAM, b=PASS, a=PASS, c=SKIP)
    ours = column(OURS, a=FAIL, b=PASS)
    assert table([upstream, ours], ["c", "b", "a"]).splitlines() == [
        "kube-scheduler  k8s-scheduler   spec",
        "pass    2.2 s   fail    2.2 s   a",
        "pass    2.2 s   pass    2.2 s   b",
        "skip            -               c",
        "",
        "2               1               pass",
        "0               1               fail",
        "1               0               skip",
        "0               1               did not run",
        "1m01s           1m01s           all in all",
    ]


def test_nothing_is_said_of_specs_that_did_not_run_if_all_did():
    assert "did not run" not in table([column(UPSTREAM, a=PASS)], ["a"])


def test_reasons_stand_under_the_spec_they_belong_to():
    told = reasons([column(UPSTREAM, a=PASS, b=SKIP), column(OURS, b=FAIL, a=FAIL)])
    assert told.splitlines() == [
        "a",
        "  k8s-scheduler, fail: a went wrong",
        "b",
        "  kube-scheduler, skip: b went wrong",
        "  k8s-scheduler, fail: b went wrong",
    ]
    assert reasons([column(UPSTREAM, a=PASS)]) == ""


@pytest.mark.parametrize("other", [{"a": FAIL}, {"a": SKIP}, {}], ids=["fails", "skips", "is gone"])
def test_what_passes_with_kube_scheduler_has_to_pass_with_ours(other, capsys):
    upstream, ours = column(UPSTREAM, a=PASS, b=FAIL), column(OURS, **other)
    assert shortfall(upstream, ours) == ["a"]
    assert verdict([upstream, ours]) == 1
    assert "1 of the 1 specs that pass with kube-scheduler" in capsys.readouterr().out


def test_what_fails_with_kube_scheduler_may_do_as_it_likes(capsys):
    upstream, ours = column(UPSTREAM, a=PASS, b=FAIL, c=SKIP), column(OURS, a=PASS, b=FAIL, c=PASS)
    assert verdict([upstream, ours]) == 0
    assert "all 1 specs" in capsys.readouterr().out


def test_a_bed_on_which_nothing_passes_compares_nothing(capsys):
    assert verdict([column(UPSTREAM, a=FAIL), column(OURS, a=FAIL)]) == 2
    assert "the bed is at fault" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "code"), [(PASS, 0), (SKIP, 0), (FAIL, 1)])
def test_a_single_column_is_judged_by_itself(outcome, code):
    assert verdict([column(OURS, a=outcome)]) == code


def test_a_column_that_was_cut_short_proves_nothing(capsys):
    cut = column(UPSTREAM, a=PASS, b=SKIP, in_time=False)
    assert verdict([cut, column(OURS, a=PASS, b=SKIP, in_time=False)]) == 2
    assert "--minutes" in capsys.readouterr().err
    assert verdict([cut, column(OURS, a=FAIL)]) == 1
