"""Decisions cost what they cost: CPU against a calibration loop in the same process.

The limits are twice what is promised (docs/benchmarks/core.md), so that only a real loss shows. A
workload is tried again before it counts as slow: the machine may be busy otherwise.
"""

import pytest

from tests.bench.core_speed import Course, run

NODES = 5000
PODS = 750
TRIES = 3

# Microseconds per decision, calibrated.
LIMITS = {
    "basic": 90,
    "spread": 180,
    "prefspread": 180,
    "defspread": 180,
    "anti": 180,
    "aff": 180,
    "prefanti": 180,
    "mixed": 220,
    "hetero": 350,
    "churn": 110,
    "daemonset": 120,
    "statefulset": 180,
    "full": 120,
    "localpv": 2500,
}


@pytest.mark.parametrize("workload", LIMITS)
def test_a_decision_is_cheap(workload):
    measured = []
    for _ in range(TRIES):
        course = Course(workload, NODES, PODS)
        run([course])
        measured.append(course.result()["us_per_decision"])
        if measured[-1] <= LIMITS[workload]:
            break
    assert min(measured) <= LIMITS[workload], measured
