"""Tries out, for a pod that no node takes, whose leaving would help. Nothing is changed."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import NodeName
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.workloads import PodDisruptionBudget
from k8s_scheduler.core.engine.preemption.arranged import Arranged
from k8s_scheduler.core.engine.preemption.dry_runs import DryRunNode, DryRuns
from k8s_scheduler.core.engine.preemption.outcomes import Outcome
from k8s_scheduler.core.engine.preemption.searches import Search
from k8s_scheduler.core.engine.preemption.work import RECALL, ROUND, Price
from k8s_scheduler.core.framework.evaluation.runtime import Filtered, Nominated, Runtime
from k8s_scheduler.core.framework.evaluation.trial import counting_steps
from k8s_scheduler.core.framework.plugin import PostFilterPlugin
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.preemption import DryRunError, SearchSuspended, Victims
from k8s_scheduler.core.framework.profile import PluginStep, Profile
from k8s_scheduler.core.framework.reasons import Verdict, VerdictTable
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import Mask, UndeclaredReadError
from k8s_scheduler.core.state.nodes.node_table import Rows
from k8s_scheduler.core.state.protocols import PlacedPods
from k8s_scheduler.core.state.rows import NodeRow

# How many nodes are tried together where candidates are looked for: enough for a round to cost
# little per node, and few enough not to try many more than are wanted.
AT_ONCE: Final = 128
# The same where plugins count pods in their terms: each node is then judged by itself.
_AT_ONCE_COUNTING: Final = 16
# The same while nothing is known of what to expect.
_PROBE: Final = 8


@dataclass(frozen=True, slots=True)
class UnplacedCase:
    """A pod that no node takes, what was said about it, and the plugin that asks what can be tried.

    Nodes are tried `at_once`, those that come next together.
    """

    profile: Profile
    step: PluginStep[PostFilterPlugin]
    pod: Pod
    rows: Rows
    filtered: Filtered
    nominated: Nominated
    seed: int
    at_once: int = 1


class Evaluator:
    """Evaluates what would come of evicting pods.

    It implements `framework.preemption.UnplacedPod`, on the state as it is now. With a `search`,
    what came of nodes before is known, and no more is tried than its work allows.
    """

    def __init__(
        self,
        state: PlacedPods,
        runtime: Runtime,
        verdicts: VerdictTable,
        case: UnplacedCase,
        *,
        search: Search | None = None,
        arranged: Arranged | None = None,
    ) -> None:
        self._state = state
        self._runtime = runtime
        self._verdicts = verdicts
        self._profile = profile = case.profile
        self._step = case.step
        self._pod = case.pod
        self._filtered = filtered = case.filtered
        self._nominated = case.nominated
        self._seed = case.seed
        self._rows = case.rows
        self._search = search
        self._arranged = Arranged(state) if arranged is None else arranged
        terms = filtered.before.state.terms
        counting = [step for step, _ in counting_steps(profile, terms)]
        self._at_once = min(case.at_once, _AT_ONCE_COUNTING) if counting else case.at_once
        one_by_one = sum(step.barring is None and step.sifting is None for step in counting)
        self._price = Price(case.pod, counting=len(counting), one_by_one=one_by_one)
        # What came of nodes that were tried, until the plugin asks.
        self._tried: dict[NodeName, Outcome] = {}
        # What went wrong in dry runs, whether or not others worked.
        self.failures: list[str] = []
        # Whether something may be tried in any case, however much was only looked up: a step that
        # finds out nothing would be repeated for ever.
        self._is_fresh = search is not None and not search.work.is_spent
        if search is not None:
            search.outcomes.catch_up(terms)

    def verdict_on(self, node: NodeName) -> Verdict | None:
        """Return why a node does not take the pod; None for a node that is not there."""
        row = self._state.nodes.row_of(node)
        found = np.flatnonzero(self._rows == (-1 if row is None else row))
        return self._verdicts[int(self._filtered.codes[found[0]])] if len(found) else None

    def pods_on(self, node: NodeName) -> tuple[Pod, ...]:
        row = self._state.nodes.row_of(node)
        if row is None or self._state.nodes.node_at(row) is None:
            return ()
        return tuple(placed.pod for placed in self._state.pods_on(row))

    def resolvable_count(self) -> int:
        verdicts = self._verdicts
        counts = self._filtered.counts()
        return sum(count for code, count in counts if verdicts[code].resolvable)

    def nodes_with_lesser(self) -> tuple[NodeName, ...]:
        """Return those of them with pods that are less important, in the table's order."""
        return self._with_lesser

    @functools.cached_property
    def _with_lesser(self) -> tuple[NodeName, ...]:
        return self._names(self._lesser_rows)

    @functools.cached_property
    def _lesser_rows(self) -> Rows:
        if not self._state.pods.has_lesser(self._pod.spec.priority or 0):
            # Said at once: every pod without a place is asked this, and most can't preempt.
            return self._rows[:0]
        return self._rows[self._resolvable & self._has_lesser[self._rows]]

    def lesser_among(self, rows: Sequence[NodeRow]) -> tuple[NodeName, ...]:
        """Return `nodes_with_lesser` of some rows only."""
        asked = np.zeros(len(self._has_lesser), dtype=np.bool_)
        asked[list(rows)] = True
        wanted = self._has_lesser & asked
        return self._names(self._rows[self._resolvable & wanted[self._rows]])

    def _names(self, rows: Rows) -> tuple[NodeName, ...]:
        return tuple(map(self._state.nodes.name_of, map(NodeRow, rows.tolist())))

    @functools.cached_property
    def _has_lesser(self) -> Mask:
        return self._state.rows_with_lesser(self._pod.spec.priority or 0)

    @functools.cached_property
    def _resolvable(self) -> Mask:
        codes = self._filtered.codes
        by_code = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
        for code, _ in self._filtered.counts():
            # A row that takes the pod is not one where others would have to leave.
            by_code[code] = code > 0 and self._verdicts[code].resolvable
        found: Mask = by_code[codes]
        return found

    def node_count(self) -> int:
        return len(self._rows)

    def seed(self) -> int:
        return self._seed

    def dry_run(self, node: NodeName) -> Victims | Verdict:
        """Return who would have to leave a node, or why it would not help if pods left."""
        found: Outcome | None = self._refusals.get(node)
        if found is None:
            found = self._tried.pop(node, None) or self._known(node)
        if found is None:
            self._try(self._after(node))
            found = self._tried.pop(node)
        if isinstance(found, DryRunError):
            self.failures.append(str(found))
            raise found
        return found

    @functools.cached_property
    def _refusals(self) -> Mapping[NodeName, Verdict]:
        """Nodes that are known not to help, from before: found together, because they are many."""
        if self._search is None or self._filtered.pre_filter is not None:
            return {}
        found = self._search.outcomes.refusals(self._lesser_rows, self._nominated)
        self._search.work.spend(len(found) * RECALL // 4)
        name_of = self._state.nodes.name_of
        return {name_of(row): verdict for row, verdict in found.items()}

    def _known(self, node: NodeName) -> Outcome | None:
        """Return what is to be said of a node without trying it; None if it has to be tried."""
        row = self._state.nodes.row_of(node)
        if row is None:
            return DryRunError(f'there is no node "{node}"')
        if not self._has_lesser[row]:
            return DryRunError(f'nobody on node "{node}" is less important')
        if self._filtered.pre_filter is not None:
            # Nothing was prepared for this plugin, so nothing can be tried: its word stands.
            return self._filtered.pre_filter
        if self._search is None:
            return None
        return self._search.recall(node, row, self._nominated.get(row, ()))

    def carry_on(self) -> None:
        """Try the nodes that come after the one at which the search was suspended.

        Until one would help, or all are known: nothing but that can be news to the plugin, and all
        that it knows it would ask again. Raises SearchSuspended.
        """
        search = self._search
        if search is None or search.stopped_at is None:
            return
        name_of = self._state.nodes.name_of
        place = self._place_of(search.stopped_at)
        if place is None:
            return
        rows = np.roll(self._lesser_rows, -place)
        may_be_open = search.outcomes.are_open(rows)
        if self._nominated:
            may_be_open |= np.isin(rows, list(self._nominated))
        for row in rows[may_be_open].tolist():
            node = name_of(NodeRow(row))
            if self._known(node) is None:
                self._try(self._after(node))
                if any(isinstance(found, Victims) for found in self._tried.values()):
                    search.stopped_at = None
                    return

    def _place_of(self, node: NodeName) -> int | None:
        row = self._state.nodes.row_of(node)
        found = np.flatnonzero(self._lesser_rows == (-1 if row is None else row))
        return int(found[0]) if len(found) else None

    def _after(self, node: NodeName) -> Iterator[NodeName]:
        """Yield a node and those that come after it and have to be tried, too."""
        yield node
        place = self._place_of(node) if self._at_once > 1 else None
        if place is None:
            return
        for row in self._lesser_rows[place + 1 :].tolist():
            following = self._state.nodes.name_of(NodeRow(row))
            if following not in self._tried and self._known(following) is None:
                yield following

    def _try(self, nodes: Iterator[NodeName]) -> None:
        """Try some of the nodes, the first one at least, and note what came of each."""
        reads = None if self._search is None else Reads()
        candidates = self._candidates(nodes, reads)
        self._is_fresh = False
        runs = DryRuns(
            self._runtime,
            self._profile,
            self._filtered.before.state.terms,
            budgets=self._arranged.budgets,
            listed=self._budgets_of,
            reads=reads,
        )
        try:
            # It must have declared that it reads them, whichever pods are there.
            self._budgets_of("")
            found = runs.select(list(candidates.values()), self._allowance())
        except (PluginError, UndeclaredReadError) as error:
            if len(candidates) > 1:
                # Which of them it is about shows when they are tried one by one.
                self._try(iter(list(candidates)[:1]))
                return
            results: dict[NodeName, Outcome] = {
                node: DryRunError(str(error)) for node in candidates
            }
        else:
            pairs = zip(candidates, found, strict=True)
            results = {node: self._outcome(node, each) for node, each in pairs if each is not None}
        self._note(results, candidates, reads)

    def _candidates(
        self, nodes: Iterator[NodeName], reads: Reads | None
    ) -> dict[NodeName, DryRunNode]:
        """Return the first of the nodes, as many as may be tried, with what is to be tried."""
        search = self._search
        work = None if search is None else search.work
        priority = self._pod.spec.priority or 0
        # Where nodes help, each costs more than is spent before that shows.
        helps = search is not None and search.helped
        most = _PROBE if search is not None and search.helped is None else self._at_once
        expected = 0
        found: dict[NodeName, DryRunNode] = {}
        for node in nodes:
            if work is not None and not found and work.is_spent and not self._is_fresh:
                self._stop_at(node)
            if work is not None and found and work.left <= expected:
                break
            row = self._state.nodes.row_of(node)
            if row is None:
                continue
            lesser = self._arranged.below(row, priority)
            trial = self._runtime.trial(self._profile, self._filtered.before, row, reads)
            promised = self._nominated.get(row, ())
            found[node] = DryRunNode(trial, lesser, promised)
            if work is not None:
                amount = found[node].amount
                work.spend(self._price.take_away(*amount))
                expected += self._price.expected(*amount) if helps else 0
            if len(found) >= most:
                break
        return found

    def _stop_at(self, node: NodeName) -> NoReturn:
        if self._search is not None:
            self._search.stopped_at = node
        raise SearchSuspended

    def _allowance(self) -> Callable[[DryRunNode], bool]:
        """Return who says whether it may be found out who would have to leave a node.

        Of the first one it always may: that is the least that a step finds out.
        """
        work = None if self._search is None else self._search.work
        asked: list[DryRunNode] = []
        # Those of them whose pods come back in rounds.
        judged: list[DryRunNode] = []

        def may_go_on(candidate: DryRunNode) -> bool:
            if work is None:
                return True
            if asked and work.left <= 0:
                return False
            if candidate.room is not None:
                work.spend(self._price.add_up(candidate.amount[0]))
            else:
                rounds = 0 if judged else ROUND * candidate.amount[0]
                work.spend(rounds + self._price.let_back(*candidate.amount))
                judged.append(candidate)
            asked.append(candidate)
            return True

        return may_go_on

    def _note(
        self,
        outcomes: Mapping[NodeName, Outcome],
        candidates: Mapping[NodeName, DryRunNode],
        reads: Reads | None,
    ) -> None:
        self._tried.update(outcomes)
        if self._search is None or reads is None:
            return
        rows = {node: candidates[node].trial.delta.row for node in outcomes}
        promised = {rows[node]: candidates[node].promised for node in outcomes}
        found = {node: (rows[node], outcome) for node, outcome in outcomes.items()}
        self._search.helped = any(isinstance(each, Victims) for each in outcomes.values())
        self._search.remember(found, promised, reads)

    def _outcome(self, node: NodeName, found: Victims | int) -> Outcome:
        if not isinstance(found, Victims):
            return self._verdicts[found]
        if not found.pods:
            return DryRunError(f'expected at least one victim pod on node "{node}"')
        return found

    def _budgets_of(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets of a namespace; the plugin must have declared that it reads them."""
        view = self._runtime.view(self._step, self._rows)
        return view.objects(Kind.POD_DISRUPTION_BUDGET, namespace)
