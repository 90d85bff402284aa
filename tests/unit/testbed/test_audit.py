import json

from testbed.audit import COMPLETE, RECEIVED, read_log


def _line(stage: str, **more) -> str:
    entry = {
        "auditID": "id-1",
        "stage": stage,
        "verb": "create",
        "user": {"username": "system:serviceaccount:kube-system:k8s-scheduler"},
        "objectRef": {"namespace": "default", "name": "web-1", "subresource": "binding"},
    }
    return json.dumps(entry | more) + "\n"


def test_entries_are_parsed_and_only_an_executed_binding_is_a_success(tmp_path):
    body = {"metadata": {"uid": "u-1"}, "target": {"name": "node-3"}}
    log = tmp_path / "audit.log"
    log.write_text(
        _line(RECEIVED)
        + _line(COMPLETE, responseStatus={"code": 201}, requestObject=body)
        + _line(COMPLETE, responseStatus={"code": 409}, requestObject=body)
    )
    received, bound, refused = read_log(log)
    assert [entry.is_successful_binding for entry in (received, bound, refused)] == [
        False,
        True,
        False,
    ]
    assert (bound.target_node, bound.target_uid) == ("node-3", "u-1")
    assert (received.target_node, received.target_uid) == ("", "")
    assert bound.user.endswith("k8s-scheduler")


def test_a_delete_tells_which_pod_it_was_meant_for(tmp_path):
    log = tmp_path / "audit.log"
    options = {"kind": "DeleteOptions", "preconditions": {"uid": "u-1"}}
    log.write_text(
        _line(RECEIVED, verb="delete")
        + _line(COMPLETE, verb="delete", requestObject=options)
        + _line(COMPLETE, verb="delete", requestObject={"kind": "DeleteOptions"})
    )
    assert [entry.precondition_uid for entry in read_log(log)] == ["", "u-1", ""]


def test_line_that_is_still_being_written_is_left_out(tmp_path):
    log = tmp_path / "audit.log"
    log.write_text(_line(RECEIVED) + _line(COMPLETE)[:40])
    assert [entry.stage for entry in read_log(log)] == [RECEIVED]


def test_log_that_does_not_exist_yet_is_empty(tmp_path):
    assert list(read_log(tmp_path / "none")) == []
