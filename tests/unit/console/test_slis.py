"""Health checks are counted as often as they are asked."""

import pytest

from k8s_scheduler.console.health import Check
from k8s_scheduler.console.slis import HealthSlis


def counts(slis, name, endpoint):
    labels = {"name": name, "type": endpoint}
    value = slis.registry.get_sample_value
    return (
        value("kubernetes_healthcheck", labels),
        value("kubernetes_healthchecks_total", labels | {"status": "success"}),
        value("kubernetes_healthchecks_total", labels | {"status": "error"}),
    )


def test_answers_are_passed_on_and_counted_by_endpoint():
    slis = HealthSlis()
    answers = iter([None, "not yet", "not yet"])
    (check,) = slis.watch("readyz", [Check("synced", lambda: next(answers))])
    slis.watch("livez", [Check("ping", lambda: None)])
    assert check.name == "synced"
    assert check.ask() is None
    assert counts(slis, "synced", "readyz") == (1, 1, None)
    assert [check.ask(), check.ask()] == ["not yet", "not yet"]
    assert counts(slis, "synced", "readyz") == (0, 1, 2)
    assert counts(slis, "ping", "livez") == (None, None, None)


def test_a_check_that_raises_has_failed_and_raises_still():
    slis = HealthSlis()
    (check,) = slis.watch("livez", [Check("odd", lambda: 1 / 0)])
    with pytest.raises(ZeroDivisionError):
        check.ask()
    assert counts(slis, "odd", "livez") == (0, None, 1)
