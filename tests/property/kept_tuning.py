"""Limits made small, so that a short history comes to the end of them."""

from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

from k8s_scheduler.core.engine.shapes import families, groups, row_part, shape_cache
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.state import columns, counters
from k8s_scheduler.core.state.counters import Counter
from k8s_scheduler.core.state.facts import FactLog
from k8s_scheduler.core.state.live_counters import Counters

# What is made small, so that a short history comes to the end of it.
TUNINGS: tuple[dict[str, int], ...] = (
    {},
    {"few_domains": 0},
    {"few_domains": 1, "logged": 2},
    {"few_domains": 2, "groups": 4},
    {"few_domains": 0, "logged": 3, "counters": 3},
    {"facts": 4, "capacity": 1},
    {"verdicts": 4, "remembered": 1},
    {"absent": 1, "few_domains": 0, "capacity": 2},
    {"rebuild": 1, "bytes": 1500},
)
_PLACES: dict[str, tuple[Any, str]] = {
    "few_domains": (groups.LIMITS, "few_domains"),
    "groups": (groups.LIMITS, "groups"),
    "logged": (Counter, "LOGGED"),
    "counters": (Counters, "LIMIT"),
    "facts": (FactLog, "LIMIT"),
    "capacity": (columns, "_FIRST_CAPACITY"),
    "verdicts": (VerdictTable, "LIMIT"),
    "remembered": (families, "_REMEMBERED"),
    "absent": (counters, "_ABSENT"),
    "rebuild": (row_part, "_REBUILD_ROWS"),
    "patience": (shape_cache, "_PATIENCE"),
}


def tuned(tuning: dict[str, int]) -> AbstractContextManager[Any]:
    """Make things small for a while."""
    stack = ExitStack()
    for name, value in {"patience": 2, **tuning}.items():
        if name in _PLACES:
            stack.enter_context(patch.object(*_PLACES[name], value))
    return stack
