"""The hunt for stale verdicts finds what it is there for.

Each case is a mistake that somebody could make: something that changes is not noted, something that
is read is not taken down, something that is kept is not looked at again. With it in place, the
histories of `test_kept_evaluations`, where all is well without it, have to fail.
"""

import functools
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from k8s_scheduler.core.engine.shapes import (
    evaluation,
    groups,
    partial_shape,
    row_columns,
    validity,
    variant_cache,
    withheld,
)
from k8s_scheduler.core.framework import reasons
from k8s_scheduler.core.framework.views import pod_view, reads
from k8s_scheduler.core.state import cluster_state, objects
from k8s_scheduler.core.state.amounts import amounts
from k8s_scheduler.core.state.amounts import names as amount_names
from k8s_scheduler.core.state.amounts import sparse as sparse_amounts
from k8s_scheduler.core.state.counts import count_log, live_counters, pod_counter
from k8s_scheduler.core.state.news import facts
from k8s_scheduler.core.state.nodes import labels
from k8s_scheduler.core.state.pods import nominations
from k8s_scheduler.core.state.terms import held_terms
from tests.property.kept_checks import StaleError
from tests.property.kept_world import LOOKED_AT, run

Plant = Callable[[pytest.MonkeyPatch], None]
# In `test_kept_evaluations` nothing is stale in these.
SEEDS = range(LOOKED_AT)


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, whatever is asked."""


def silent(owner: type, method: str) -> Plant:
    """Let a method change things without a note."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(owner, method)

        @functools.wraps(original)
        def silently(*args: Any, **options: Any) -> Any:
            with patch.object(facts.FactLog, "note", nothing):
                return original(*args, **options)

        monkeypatch.setattr(owner, method, silently)

    return plant


def unnoted(fact: int) -> Plant:
    """Let one fact of a node change without a note."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        note, put_node = facts.FactLog.note, cluster_state.ClusterState.put_node

        def masked(self: Any, row: int, found: int) -> None:
            note(self, row, found if found & facts.NODE else found & ~fact)

        def put(self: Any, node: Any) -> None:
            with patch.object(facts.FactLog, "note", masked):
                put_node(self, node)

        monkeypatch.setattr(cluster_state.ClusterState, "put_node", put)

    return plant


def replaced(owner: Any, name: str, instead: Any) -> Plant:
    """Put something else in place of a method."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owner, name, instead, raising=False)

    return plant


def around(owner: Any, name: str, outer: Callable[..., Any]) -> Plant:
    """Put something around a method; it is given the method first."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(owner, name)

        def both(*args: Any, **options: Any) -> Any:
            return outer(original, *args, **options)

        monkeypatch.setattr(owner, name, both)

    return plant


def frozen(value: object) -> property:
    """Return something that nobody can change."""
    return property(lambda _: value, lambda _, __: None)


def only_growing(change: Any, self: Any, row: int, difference: int) -> None:
    if difference > 0:
        change(self, row, difference)


def without_ports(take_down: Any, self: Any, name: str, *, wide: bool) -> None:
    if name != "ports":
        take_down(self, name, wide=wide)


def without_labels(take_down: Any, self: Any, name: str, *, wide: bool) -> None:
    if not name.startswith(("label/", "has_label/")):
        take_down(self, name, wide=wide)


def without_terms(take_down: Any, self: Any, name: str, seen: int) -> None:
    if name != "held_terms":
        take_down(self, name, seen)


class Forgetful(dict[str, None]):
    """Takes nothing down."""

    def __setitem__(self, name: str, value: None) -> None:
        """Do nothing."""


def one_resource_less(resources_of: Any, columns: Any) -> Any:
    found = resources_of(columns)
    return found and found[:-1]


def all_alike(answers: Any, self: Any, *args: Any) -> Any:
    answers(self, *args)
    return ()


def as_at_first(feasible: Any, self: Any) -> Any:
    self._known = (self.rows.flips.position, self.tables.nodes.present_rows())
    return feasible(self)


def once_and_for_all(is_same: Any, self: Any, nominated: Any) -> bool:
    return self._everybody is not None or is_same(self, nominated)


def no_changes(_: Any, *__: Any) -> tuple[()]:
    return ()


def as_before(self: Any, *_: Any) -> tuple[Any, bool]:
    return self._hidden, True


PLANTED: dict[str, Plant] = {
    # What changes is not noted.
    "a pod comes": silent(cluster_state.ClusterState, "_place"),
    "a pod goes": silent(cluster_state.ClusterState, "_displace"),
    "a pod changes": silent(cluster_state.ClusterState, "_refresh"),
    "a node goes": silent(cluster_state.ClusterState, "remove_node"),
    "an object changes": silent(objects.ObjectStore, "_changed"),
    "labels of a node": unnoted(facts.LABELS),
    "taints of a node": unnoted(facts.TAINTS),
    "what a node offers": unnoted(facts.ALLOCATABLE),
    "a cordon": unnoted(facts.UNSCHEDULABLE),
    "images of a node": unnoted(facts.IMAGES),
    "features of a node": unnoted(facts.FEATURES),
    "a held term": replaced(held_terms.HeldTerms, "version", frozen(0)),
    # Counts are not kept up to date.
    "a count, as a pod goes": around(pod_counter.PodCounter, "change", only_growing),
    "a count, as a pod changes": replaced(live_counters.Counters, "recount", nothing),
    "a count, as a node moves": replaced(live_counters.Counters, "_move", nothing),
    "a count, of new labels": replaced(live_counters.Counters, "meet_set", nothing),
    "a count, of new terms": replaced(live_counters.Counters, "_learn", nothing),
    "a count, of terms that come and go": replaced(count_log.CountLog, "note", nothing),
    "counts of domains of another epoch": replaced(live_counters.Counters, "_start_over", nothing),
    "domains of another epoch": replaced(labels.LabelColumns, "epoch", frozen(0)),
    # What is read is not taken down.
    "columns": replaced(reads.Reads, "column", nothing),
    "the column of ports": around(reads.Reads, "column", without_ports),
    "the columns of labels": around(reads.Reads, "column", without_labels),
    "what is read everywhere": replaced(reads.Reads, "everywhere", nothing),
    "counters": replaced(reads.Reads, "counter", nothing),
    "whether anything counts": replaced(reads.Reads, "presence", nothing),
    "objects": replaced(reads.Reads, "object", nothing),
    "scalars": replaced(reads.Reads, "scalar", nothing),
    # Resources that get or lose a column, or have none.
    "resources that have moved": replaced(amounts.Amounts, "_moved", frozen(Forgetful())),
    "cells that a column takes over": replaced(sparse_amounts.SparseAmounts, "pop", lambda *_: {}),
    "one of the resources": around(row_columns, "resources_of", one_resource_less),
    "the columns of many resources": replaced(amount_names.Families, "taken_down", lambda *_: ()),
    # What is kept is not looked at again.
    "codes of another epoch": replaced(reasons.VerdictTable, "epoch", frozen(0)),
    "rows that changed their group": replaced(groups.Groups, "stale_rows", lambda *_, **__: []),
    "terms and what they were made from": replaced(validity.Inputs, "are_valid", lambda *_: True),
    "objects that are others": replaced(validity.Inputs, "are_same", lambda *_: True),
    "rows that came to fit": silent(row_columns.RowColumns, "_judge_and_compare"),
    "rows that are given up": replaced(row_columns.RowColumns, "_is_lost", frozen(0)),
    "rows that are new": replaced(row_columns.RowColumns, "_grow", nothing),
    "pods that answer otherwise": around(variant_cache.VariantCache, "_answers", all_alike),
}
# Mistakes that show where pods are akin, in what is kept of all of them.
PLANTED_AMONG_KIN: dict[str, Plant] = {
    "what kin differ in": replaced(pod_view.Questions, "differ_in_partial", frozen(0)),
    "which claims kin name": replaced(pod_view, "names_claims", lambda _: False),
    "what changed": replaced(partial_shape.PartialShape, "catch_up", nothing),
    "kin that answer otherwise": around(variant_cache.VariantCache, "_answers", all_alike),
    "which rows pass": around(partial_shape.PartialShape, "feasible", as_at_first),
}
# Mistakes that show where pods were promised room.
PLANTED_AMONG_PROMISES: dict[str, Plant] = {
    "promises that are others": around(withheld.Withheld, "_is_same", once_and_for_all),
    "nominations that change": around(nominations.Nominations, "changed_since", no_changes),
    "what is on rows with promises": replaced(withheld.Withheld, "_touched", lambda *_: {}),
    "rows that are not withheld any more": replaced(evaluation, "differences", lambda *_: ([], [])),
    "promises for others": replaced(evaluation.KeptEvaluation, "_withhold", as_before),
}
# Where a mistake that seldom shows is found; looked at first, to save time.
HINTS = {
    "features of a node": 120,
    "a count, of new terms": 75,
    "resources that have moved": 157,
    "rows that are given up": 6,
}


# The same among promises.
PROMISE_HINTS = {"promises that are others": (25,), "nominations that change": (27,)}


def hunt(seeds: tuple[int, ...], **options: Any) -> None:
    """Run histories until one fails."""
    for seed in seeds:
        run(seed, **options)


@pytest.mark.parametrize("name", PLANTED_AMONG_KIN)
def test_a_mistake_planted_among_kin_is_found(name, monkeypatch):
    PLANTED_AMONG_KIN[name](monkeypatch)
    # Rows that do not belong together may not even fit together.
    with pytest.raises((StaleError, ValueError, IndexError)):
        hunt(tuple(SEEDS), has_kin=True)


@pytest.mark.parametrize("name", PLANTED_AMONG_PROMISES)
def test_a_mistake_planted_among_promises_is_found(name, monkeypatch):
    PLANTED_AMONG_PROMISES[name](monkeypatch)
    seeds = (*PROMISE_HINTS.get(name, ()), *SEEDS)
    with pytest.raises((StaleError, ValueError, IndexError, KeyError)):
        hunt(seeds, has_promises=True)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name, monkeypatch):
    PLANTED[name](monkeypatch)
    # A row that nobody knows of may be seen as one that is not there.
    with pytest.raises((StaleError, ValueError, IndexError, KeyError)):
        hunt((HINTS.get(name, 0), *SEEDS))
