"""Health pages read as kube-scheduler's do, and say why."""

import pytest

from k8s_scheduler.console.health import Check, Page, health_page

GOOD = Check("ping", lambda: None)
SYNC = Check("sched-handler-sync", lambda: "handlers are not fully synchronized")
LEASE = Check("leaderElection", lambda: "lease not renewed for 40s")


def page(*checks, verbose=False, role=None):
    return health_page("readyz", checks, verbose=verbose, role=role)


def test_all_well_is_ok_to_the_byte():
    assert page(GOOD) == Page(200, "ok")
    assert page() == Page(200, "ok")


def test_each_failing_check_has_a_line():
    assert page(GOOD, SYNC, LEASE) == Page(
        503,
        "[-]sched-handler-sync failed: handlers are not fully synchronized\n"
        "[-]leaderElection failed: lease not renewed for 40s\n"
        "readyz check failed\n",
    )


def test_verbose_lists_all_checks():
    assert page(GOOD, verbose=True) == Page(200, "[+]ping ok\nreadyz check passed\n")
    assert page(GOOD, SYNC, verbose=True) == Page(
        503,
        "[+]ping ok\n"
        "[-]sched-handler-sync failed: handlers are not fully synchronized\n"
        "readyz check failed\n",
    )


@pytest.mark.parametrize("role", ["leader", "standby"])
def test_role_is_said_whether_ready_or_not(role):
    assert page(GOOD, role=role) == Page(200, f"ok\nrole: {role}\n")
    assert page(SYNC, role=role).text.endswith(f"readyz check failed\nrole: {role}\n")


def test_a_check_that_raises_has_failed(caplog):
    def broken():
        raise KeyError("gone")

    assert page(Check("broken", broken)) == Page(
        503, "[-]broken failed: KeyError: 'gone'\nreadyz check failed\n"
    )
    (record,) = caplog.records
    assert record.fields == {"check": "broken"}
