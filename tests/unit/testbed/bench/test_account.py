"""What the audit log says of a run."""

import json

import pytest

from testbed.bench.account import CONTESTANT, LogReader
from testbed.bench.runs import follow, latencies, middle_rate, percentile
from testbed.errors import TestbedError


def line(verb, resource, name, second, *, subresource="", code=201, **more):
    reference = {"resource": resource, "name": name, "namespace": "default"}
    if subresource:
        reference["subresource"] = subresource
    return json.dumps(
        {
            "verb": verb,
            "objectRef": reference,
            "responseStatus": {"code": code},
            "stageTimestamp": f"2026-01-01T00:00:{second:09.6f}Z",
            **more,
        }
    )


def event(name, second, reason="Scheduled"):
    # kube-scheduler writes more of it than anybody reads here.
    body = {"kind": "Event", "reason": reason, "regarding": {"kind": "Pod"}}
    return line("create", "events", name, second, requestObject=body)


def written(path, *lines):
    path.write_text("".join(f"{one}\n" for one in lines))
    return LogReader(path)


def test_a_pod_comes_is_bound_and_has_its_event(tmp_path):
    reader = written(
        tmp_path / "log",
        line("create", "pods", "p", 1),
        line("create", "pods", "p", 1.25, subresource="binding"),
        event("p.17abc", 2),
    )
    account = reader.catch_up()
    assert latencies(account, ["p"]) == [0.25]
    assert account.told["p"] - account.bound["p"] == 0.75
    assert account.requests == {"create pods": 1, "create pods/binding": 1, "create events": 1}


def test_pods_are_in_the_order_in_which_their_bindings_came_in(tmp_path):
    """Several are written at a time, and the last that came in may be written first."""

    def binding(name, received, written_at):
        at = f"2026-01-01T00:00:{received:09.6f}Z"
        more = {"requestReceivedTimestamp": at}
        return line("create", "pods", name, written_at, subresource="binding", **more)

    reader = written(
        tmp_path / "log",
        binding("second", 1.2, 1.3),
        binding("first", 1.1, 1.4),
        event("first.1", 2),
        event("second.1", 2),
    )
    account = reader.catch_up()
    assert sorted(account.bound, key=account.bound.get) == ["second", "first"]
    assert sorted(account.asked, key=account.asked.get) == ["first", "second"]


def test_an_event_about_something_else_does_not_stop_the_clock(tmp_path):
    """It may be written late: after the Binding that came of the next attempt."""
    reader = written(
        tmp_path / "log",
        line("create", "pods", "p", 1, subresource="binding"),
        event("p.17abc", 2, "FailedScheduling"),
        line("create", "events", "p.17abd", 3),
    )
    account = reader.catch_up()
    assert (list(account.bound), account.told) == (["p"], {})


def test_a_refused_binding_and_a_failure_told_bind_nobody(tmp_path):
    reader = written(
        tmp_path / "log",
        line("create", "pods", "p", 1, subresource="binding", code=409),
        event("p.17abc", 2, "FailedScheduling"),
    )
    assert reader.catch_up().bound == {}


def test_an_event_whose_line_comes_before_that_of_the_binding_counts(tmp_path):
    reader = written(
        tmp_path / "log",
        event("p.17abc", 2),
        line("create", "pods", "p", 1, subresource="binding"),
        event("q.17abc", 2),
        line("create", "pods", "q", 1, subresource="binding", code=504),
    )
    account = reader.catch_up()
    assert list(account.told) == list(account.bound) == ["p", "q"]


def test_only_what_the_contestant_does_for_its_own_pods_is_work(tmp_path):
    contestant, benchmark = {"username": CONTESTANT}, {"username": "kubernetes-admin"}
    reader = written(
        tmp_path / "log",
        line("create", "pods", "churn-1", 1, user=benchmark),
        line("delete", "pods", "churn-1", 2, user=benchmark),
        line("patch", "pods", "churn-1", 2, subresource="status", user=contestant),
        line("patch", "pods", "p", 3, subresource="status", user=contestant),
    )
    account = reader.catch_up()
    assert (account.work, sum(account.requests.values())) == (1, 4)


def test_a_binding_that_was_refused_binds_nobody(tmp_path):
    reader = written(
        tmp_path / "log", line("create", "pods", "p", 1, subresource="binding", code=409)
    )
    account = reader.catch_up()
    assert (account.bound, account.refused) == ({}, 1)


def test_a_binding_whose_answer_was_lost_counts_once_its_event_is_there(tmp_path):
    """Its scheduler reads the pod, finds it bound, and asks for no other Binding."""
    reader = written(
        tmp_path / "log",
        line("create", "pods", "p", 1, subresource="binding", code=504),
        event("p.17abc", 6),
    )
    account = reader.catch_up()
    assert account.told["p"] - account.bound["p"] == 5


def test_a_line_that_is_still_being_written_waits(tmp_path):
    path = tmp_path / "log"
    whole = line("create", "pods", "p", 1)
    path.write_text(whole[:20])
    reader = LogReader(path)
    assert reader.catch_up().created == {}
    path.write_text(whole + "\n")
    assert list(reader.catch_up().created) == ["p"]


def test_a_log_that_is_not_there_yet_says_nothing(tmp_path):
    assert LogReader(tmp_path / "log").catch_up().requests == {}


def test_the_middle_leaves_out_a_slow_start_and_a_slow_end():
    times = [0.0, *(10 + 0.1 * n for n in range(98)), 100.0]
    assert middle_rate(times) == pytest.approx(10)


@pytest.mark.parametrize(("share", "value"), [(0.5, 6), (0.99, 10), (0.0, 1)])
def test_a_percentile_is_one_of_the_values(share, value):
    assert percentile(list(range(1, 11)), share) == value


def test_a_run_that_stands_still_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.bench.runs._STILL_SECONDS", 0.05)
    reader = written(tmp_path / "log", line("create", "pods", "p", 1))
    with pytest.raises(TestbedError, match="0 pods bound, 0 events"):
        follow(reader, ["p"], dict, started=0.0)
