"""Harm that is no matter of the core's work and memory, and the tests that look at it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """One way to do harm, and a test of what comes of it."""

    what: str
    file: str
    test: str


_DOUBT = "tests/unit/kube/write/test_dispatcher_doubt.py"
_CONNECTIONS = "tests/unit/console/test_connections.py"

ELSEWHERE: tuple[Elsewhere, ...] = (
    Elsewhere(
        "a namespace whose Bindings are answered 500 for ever",
        _DOUBT,
        "test_a_thousand_binds_of_one_namespace_leave_room_for_others",
    ),
    Elsewhere(
        "many namespaces whose Bindings are answered late",
        _DOUBT,
        "test_slow_answers_in_many_namespaces_leave_most_workers_to_others",
    ),
    Elsewhere(
        "connections from one address",
        _CONNECTIONS,
        "test_an_address_that_has_its_share_is_refused_and_others_are_served",
    ),
    Elsewhere(
        "connections from many",
        _CONNECTIONS,
        "test_when_all_places_are_taken_the_largest_crowd_loses_its_oldest",
    ),
    Elsewhere(
        "a pod that ends a process",
        "tests/simulation/test_deadly_pod.py",
        "test_with_quarantine_all_others_are_bound_after_one_death",
    ),
)
