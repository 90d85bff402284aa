"""Limits made small, so that a short history comes to the end of them."""

from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

from k8s_scheduler.core.engine.shapes import groups, row_columns, variant_cache
from k8s_scheduler.core.framework.reasons import VerdictTable
from k8s_scheduler.core.framework.views import answers
from k8s_scheduler.core.plugins import node_resources_fit
from k8s_scheduler.core.plugins.inter_pod_affinity import newcomer
from k8s_scheduler.core.state import columns
from k8s_scheduler.core.state.amounts import column_grants
from k8s_scheduler.core.state.counts import pod_counter
from k8s_scheduler.core.state.counts.concerned import ConcernIndex
from k8s_scheduler.core.state.counts.count_log import CountLog
from k8s_scheduler.core.state.counts.live_counters import Counters
from k8s_scheduler.core.state.counts.pod_counter import PodCounter
from k8s_scheduler.core.state.news.facts import FactLog
from k8s_scheduler.core.state.nodes.key_holders import KeyHolders
from k8s_scheduler.core.state.nodes.labels import LabelColumns

# What is made small, so that a short history comes to the end of it.
TUNINGS: tuple[dict[str, int], ...] = (
    {},
    {"few_domains": 0, "columns": 1},
    {"few_domains": 1, "logged": 2, "few_resources": 2, "spare": 0},
    {"few_domains": 2, "groups": 4, "told": 0, "few_terms": 1},
    {"few_domains": 0, "logged": 3, "counters": 3, "held": 2, "told": 1},
    {"facts": 4, "capacity": 1, "label_bytes": 100},
    {"verdicts": 4, "remembered": 1, "columns": 2, "few_resources": 4, "idle": 2, "unswept": 1},
    {
        "absent": 1,
        "domains": 1,
        "few_domains": 0,
        "capacity": 2,
        "spare": 1,
        "few_terms": 0,
        "holders": 1,
    },
    {"rebuild": 1, "bytes": 1500, "columns": 1},
)
_PLACES: dict[str, tuple[Any, str]] = {
    "few_domains": (groups.LIMITS, "few_domains"),
    "groups": (groups.LIMITS, "groups"),
    "logged": (PodCounter, "LOGGED"),
    "counters": (Counters, "LIMIT"),
    "facts": (FactLog, "LIMIT"),
    "capacity": (columns, "_FIRST_CAPACITY"),
    "verdicts": (VerdictTable, "LIMIT"),
    "remembered": (answers, "_REMEMBERED"),
    "absent": (pod_counter, "_ABSENT"),
    "domains": (pod_counter, "_DOMAINS"),
    "idle": (PodCounter, "IDLE"),
    "unswept": (ConcernIndex, "UNSWEPT"),
    "held": (CountLog, "LIMIT"),
    "told": (ConcernIndex, "TOLD"),
    # Terms of a pod that are counted each by itself.
    "few_terms": (newcomer, "FEW_TERMS"),
    "spare": (LabelColumns, "SPARE"),
    "holders": (KeyHolders, "FEW"),
    "label_bytes": (LabelColumns, "MAX_BYTES"),
    "rebuild": (row_columns, "_REBUILD_ROWS"),
    # Resources that have a column, and that a pod may ask for before it asks for many.
    "columns": (column_grants, "MOST_COLUMNS"),
    "few_resources": (node_resources_fit, "FEW_RESOURCES"),
    "patience": (variant_cache, "_PATIENCE"),
}


def tuned(tuning: dict[str, int]) -> AbstractContextManager[Any]:
    """Make things small for a while."""
    stack = ExitStack()
    for name, value in {"patience": 2, **tuning}.items():
        if name in _PLACES:
            stack.enter_context(patch.object(*_PLACES[name], value))
    return stack
