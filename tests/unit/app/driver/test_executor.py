"""What the core asks for reaches the right hands, and what they answer comes back to it."""

import json
import logging

import pytest

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.app.driver.executor import Carrier
from k8s_scheduler.app.driver.pump import Pump
from k8s_scheduler.core.messages.incoming import RequestResult
from k8s_scheduler.core.messages.outgoing import (
    Bind,
    ClearNomination,
    EventType,
    Evict,
    Log,
    Nominate,
    PatchCondition,
    PatchObject,
    PodReference,
    RecordEvent,
    Severity,
)
from k8s_scheduler.kube.write.binding import BindRequest
from k8s_scheduler.kube.write.write_requests import WriteOutcome
from k8s_scheduler.lib.slices import silent_meter

WALL_NS = 1_767_323_045_000_006_000  # 2026-01-02T03:04:05.000006Z
WHO = {"uid": PodUid("u"), "namespace": "a", "name": "p", "attempt": 3}
OTHER = PodReference("b", "v", PodUid("w"))


class Hands:
    """Stands for dispatcher, recorder and write lane."""

    def __init__(self):
        self.taken = []

    def bind_room(self):
        return 7

    def may_land(self, _uid):
        return False

    def submit_bind(self, request):
        self.taken.append(request)

    submit_condition = submit = record = submit_bind


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def carrier(hands):
    return Carrier(hands, hands, hands, hands, wall_clock_ns=lambda: WALL_NS)


def carry(carrier, hands, instruction):
    carrier.carry_out([instruction])
    [taken] = hands.taken
    return taken


def test_an_eviction_is_about_the_victim_and_for_the_pod(carrier, hands):
    evict = Evict(**WHO, request=5, victim=OTHER, scheduler_name="mine", observed_generation=9)
    taken = carry(carrier, hands, evict)
    assert (taken.uid, taken.attempt, taken.request) == ("u", 3, 5)
    assert taken.namespace == "b"
    assert [c.path for c in taken.calls] == [
        "/api/v1/namespaces/b/pods/v/status",
        "/api/v1/namespaces/b/pods/v",
    ]
    status, options = (json.loads(c.body) for c in taken.calls)
    assert status["metadata"] == options["preconditions"] == {"uid": "w"}
    [condition] = status["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert condition["message"].startswith("mine: ")
    assert condition["observedGeneration"] == 9


def test_a_promise_is_taken_back_from_the_other_pod(carrier, hands):
    taken = carry(carrier, hands, ClearNomination(**WHO, request=6, other=OTHER))
    assert (taken.uid, taken.attempt, taken.request, taken.namespace) == ("u", 3, 6, "b")
    [call] = taken.calls
    assert call.path == "/api/v1/namespaces/b/pods/v/status"
    assert json.loads(call.body)["metadata"] == {"uid": "w"}


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (Kind.PERSISTENT_VOLUME, "", "/api/v1/persistentvolumes/x"),
        (Kind.PERSISTENT_VOLUME_CLAIM, "b", "/api/v1/namespaces/b/persistentvolumeclaims/x"),
    ],
)
def test_an_object_is_changed_where_it_is(carrier, hands, kind, namespace, path):
    patch = {"metadata": {"resourceVersion": "7"}}
    instruction = PatchObject(
        **WHO, request=8, kind=kind, object_namespace=namespace, object_name="x", patch=patch
    )
    taken = carry(carrier, hands, instruction)
    assert (taken.uid, taken.attempt, taken.request) == ("u", 3, 8)
    assert taken.namespace == namespace
    [call] = taken.calls
    assert (call.path, json.loads(call.body)) == (path, patch)


def test_a_bind(carrier, hands):
    taken = carry(carrier, hands, Bind(**WHO, node=NodeName("n")))
    assert taken == BindRequest(PodUid("u"), "a", "p", NodeName("n"), 3)


@pytest.mark.parametrize("promise", [None, "", "n1"])
def test_a_condition_goes_with_the_promise(carrier, hands, promise):
    taken = carry(
        carrier,
        hands,
        PatchCondition(
            **WHO,
            reason="Unschedulable",
            message="no",
            observed_generation=2,
            last_transition_time="2026-01-01T00:00:00Z",
            nominated_node_name=None if promise is None else NodeName(promise),
        ),
    )
    assert (taken.uid, taken.reason, taken.message) == ("u", "Unschedulable", "no")
    assert (taken.observed_generation, taken.last_transition_time) == (2, "2026-01-01T00:00:00Z")
    assert taken.nominated_node_name == promise


def test_a_nomination_says_nothing_else(carrier, hands):
    taken = carry(carrier, hands, Nominate(**WHO, node=NodeName("n1")))
    assert (taken.uid, taken.namespace, taken.name) == ("u", "a", "p")
    assert (taken.reason, taken.nominated_node_name) == ("", "n1")


@pytest.mark.parametrize("related", [None, OTHER])
def test_an_event_names_the_other_pod(carrier, hands, related):
    taken = carry(
        carrier,
        hands,
        RecordEvent(
            **WHO,
            scheduler_name="mine",
            type=EventType.NORMAL,
            reason="Preempted",
            action="Preempting",
            note="so",
            related=related,
        ),
    )
    regarding = taken.regarding
    assert (regarding.kind, regarding.namespace, regarding.name, regarding.uid) == (
        "Pod",
        "a",
        "p",
        "u",
    )
    assert (taken.type, taken.reason, taken.action, taken.note) == (
        "Normal",
        "Preempted",
        "Preempting",
        "so",
    )
    assert taken.reporting_controller == "mine"
    if related is None:
        assert taken.related is None
    else:
        assert (taken.related.kind, taken.related.name, taken.related.uid) == ("Pod", "v", "w")
        assert taken.related.namespace == "b"


def test_a_log_line_keeps_its_fields(carrier, caplog):
    with caplog.at_level(logging.WARNING):
        carrier.carry_out([Log(Severity.WARNING, "so it is", {"pod": "a/p"})])
    [record] = caplog.records
    assert (record.levelno, record.message, record.fields) == (
        logging.WARNING,
        "so it is",
        {"pod": "a/p"},
    )


def test_everything_is_handed_over_in_order(carrier, hands):
    carrier.carry_out(
        [
            Evict(**WHO, request=1, victim=OTHER, scheduler_name="s"),
            Bind(**WHO, node=NodeName("n")),
            ClearNomination(**WHO, request=2, other=OTHER),
        ]
    )
    assert [getattr(taken, "request", None) for taken in hands.taken] == [1, None, 2]


class Core:
    """Writes down what it is told."""

    has_work = False

    def __init__(self):
        self.told = []

    def handle(self, message):
        self.told.append(message)
        return []


@pytest.mark.parametrize(
    ("outcome", "done", "message"),
    [
        (WriteOutcome(PodUid("u"), 3, 5, done=True), True, ""),
        (WriteOutcome(PodUid("u"), 3, 5, done=True, gone=True), True, "NotFound"),
        (WriteOutcome(PodUid("u"), 3, 5, done=False, message="no"), False, "no"),
    ],
)
def test_how_a_write_ended_is_told_to_the_core(carrier, outcome, done, message):
    core = Core()
    pump = Pump(core, carrier, clock=lambda: 12.0, meter=silent_meter())
    pump.write_ended(outcome)
    assert core.told == [RequestResult(12.0, PodUid("u"), 3, 5, done, message)]
