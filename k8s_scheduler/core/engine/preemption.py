"""Tries out, for a pod that no node takes, whose leaving would help. Nothing is changed."""

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.dry_runs import Candidate, DryRuns
from k8s_scheduler.core.engine.victims import Budgets
from k8s_scheduler.core.framework.plugin import PostFilterPlugin
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.preemption import DryRunError, Victims
from k8s_scheduler.core.framework.profile import Profile, Step
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable
from k8s_scheduler.core.framework.runtime import Filtered, Nominated, Runtime
from k8s_scheduler.core.framework.trial import counting_steps
from k8s_scheduler.core.framework.views import Mask, UndeclaredReadError
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import NodeRow
from k8s_scheduler.core.state.node_table import Rows

# How many nodes are tried together where candidates are looked for: enough for a round to cost
# little per node, and few enough not to try many more than are wanted.
AT_ONCE: Final = 128


class Stuck:
    """A pod that no node takes: what was said about it, and what can be tried.

    It implements `framework.preemption.Unplaced`, on the state as it is now.
    """

    def __init__(
        self,
        *,
        state: Cache,
        runtime: Runtime,
        verdicts: VerdictTable,
        profile: Profile,
        step: Step[PostFilterPlugin],
        pod: Pod,
        rows: Rows,
        filtered: Filtered,
        nominated: Nominated,
        seed: int,
        at_once: int = 1,
    ) -> None:
        """Look at the state as it is; nodes are tried `at_once`, those that come next together."""
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._profile = profile
        self._step = step
        self._pod = pod
        self._filtered = filtered
        self._nominated = nominated
        self._seed = seed
        self._rows = rows
        self._budgets: Budgets | None = None
        self._at_once = at_once
        # What came of nodes that were tried, until somebody asks.
        self._tried: dict[NodeName, Victims | Verdict | DryRunError] = {}
        # What went wrong in dry runs, whether or not others worked.
        self.failures: list[str] = []

    def verdict_on(self, node: NodeName) -> Verdict | None:
        """Return why a node does not take the pod; None for a node that is not there."""
        row = self._state.nodes.row_of(node)
        found = np.flatnonzero(self._rows == (-1 if row is None else row))
        return self._verdicts[int(self._filtered.codes[found[0]])] if len(found) else None

    def pods_on(self, node: NodeName) -> tuple[Pod, ...]:
        """Return the pods on a node; none of a node that is gone."""
        row = self._state.nodes.row_of(node)
        if row is None or self._state.nodes.node_at(row) is None:
            return ()
        return tuple(placed.pod for placed in self._state.pods_on(row))

    def resolvable_count(self) -> int:
        """Return how many nodes might take the pod if others left."""
        verdicts = self._verdicts
        counts = self._filtered.counts()
        return sum(count for code, count in counts if verdicts[code].resolvable)

    def nodes_with_lesser(self) -> tuple[NodeName, ...]:
        """Return those of them with pods that are less important, in the table's order."""
        return self._with_lesser

    @functools.cached_property
    def _with_lesser(self) -> tuple[NodeName, ...]:
        pods = self._state.pods
        if not pods.has_lesser(self._pod.spec.priority or 0):
            return ()
        lesser = pods.column("row")[pods.column("priority") < (self._pod.spec.priority or 0)]
        has_lesser = np.zeros(self._state.nodes.row_count, dtype=np.bool_)
        has_lesser[lesser] = True
        rows = self._rows[self._resolvable & has_lesser[self._rows]]
        return tuple(self._state.nodes.name_of(NodeRow(row)) for row in rows.tolist())

    @functools.cached_property
    def _resolvable(self) -> Mask:
        codes = self._filtered.codes
        by_code = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
        for code, _ in self._filtered.counts():
            by_code[code] = self._verdicts[code].resolvable
        found: Mask = by_code[codes]
        return found

    def node_count(self) -> int:
        """Return how many nodes there are."""
        return len(self._rows)

    def seed(self) -> int:
        """Return a number that is another one at each attempt."""
        return self._seed

    def dry_run(self, node: NodeName) -> Victims | Verdict:
        """Return who would have to leave a node, or why nobody's leaving would help."""
        if node not in self._tried:
            self._try(self._next(node))
        found = self._tried.pop(node)
        if isinstance(found, DryRunError):
            self.failures.append(str(found))
            raise found
        return found

    def _next(self, node: NodeName) -> tuple[NodeName, ...]:
        """Return a node and those that come after it, as many as are worth trying with it."""
        nodes = self.nodes_with_lesser() if self._at_once > 1 else ()
        if node not in nodes or counting_steps(self._profile, self._filtered.before.state.terms):
            return (node,)
        place = nodes.index(node)
        return nodes[place : place + self._at_once]

    def _try(self, nodes: Sequence[NodeName]) -> None:
        """Try nodes, and note what came of each."""
        candidates: dict[NodeName, Candidate] = {}
        for node in nodes:
            found = self._candidate(node)
            if isinstance(found, Candidate):
                candidates[node] = found
            else:
                self._tried[node] = found
        if not candidates:
            return
        terms = self._filtered.before.state.terms
        try:
            runs = DryRuns(self._runtime, self._profile, terms, self._current_budgets())
            results = runs.select(list(candidates.values()))
        except (PluginError, UndeclaredReadError) as error:
            if len(nodes) > 1:
                # Which of them it is about shows when they are tried one by one.
                self._try(nodes[:1])
                return
            failure = DryRunError(str(error))
            failure.__cause__ = error
            self._tried[nodes[0]] = failure
            return
        for node, result in zip(candidates, results, strict=True):
            self._tried[node] = self._outcome(node, result)

    def _candidate(self, node: NodeName) -> Candidate | Verdict | DryRunError:
        """Return what is to be tried; what is to be said if there is nothing to try."""
        row = self._state.nodes.row_of(node)
        if row is None:
            return DryRunError(f'there is no node "{node}"')
        priority = self._pod.spec.priority or 0
        lesser = [p for p in self._state.pods_on(row) if p.priority < priority]
        if not lesser:
            return DryRunError(f'nobody on node "{node}" is less important')
        if self._filtered.pre_filter is not None:
            # Nothing was prepared for this plugin, so nothing can be tried: its word stands.
            return self._filtered.pre_filter
        trial = self._runtime.trial(self._profile, self._filtered.before, row)
        return Candidate(trial, lesser, self._nominated.get(row, ()))

    def _outcome(self, node: NodeName, found: Victims | int) -> Victims | Verdict | DryRunError:
        if not isinstance(found, Victims):
            return self._verdicts[found]
        if not found.pods:
            return DryRunError(f'expected at least one victim pod on node "{node}"')
        return found

    def _current_budgets(self) -> Budgets:
        """Return the budgets, read once; the plugin must have declared that it reads them."""
        if self._budgets is None:
            view = self._runtime.view(self._step, self._rows)
            self._budgets = Budgets(view.all_objects(Kind.POD_DISRUPTION_BUDGET))
        return self._budgets
