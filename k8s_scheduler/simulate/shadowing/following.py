"""Follows other schedulers: every binding of theirs is judged on the state just before it.

    informers ─▶ told ─▶ (held back for the latency) ─▶ judge, if it is a binding ─▶ core

The core is told of everything some seconds late, so that at each binding what came right after it
is known too: that is where the decisions are that were made before and seen after. Nothing here
can write: the core is never asked to schedule, and what it returns is at most logged.
"""

import itertools
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.api.meta import ClusterObject, PodUid, key_of
from k8s_scheduler.api.node import Node
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.inspection import OverLimitError, PluginError
from k8s_scheduler.core.messages.incoming import LimitCaches, Message
from k8s_scheduler.core.messages.outgoing import Log
from k8s_scheduler.core.scheduler import Scheduler
from k8s_scheduler.simulate.shadowing.changes import (
    Binding,
    SeenChange,
    node_change,
    object_change,
    pod_change,
)
from k8s_scheduler.simulate.shadowing.findings import (
    Finding,
    Result,
    Standing,
    may_be_best_of_sample,
    standing_of,
)
from k8s_scheduler.simulate.shadowing.orders import Variant, variants
from k8s_scheduler.simulate.shadowing.report import Report
from k8s_scheduler.simulate.shadowing.unplaced import UnplacedPods, failed_to_place

_WHOLE = 1 << 32
_MOST_TEXTS = 8
# Changes that are held back at most before bindings are no longer judged: telling the core of a
# change takes a fraction of what judging does, so the queue becomes shorter from there on.
MOST_AHEAD = 20_000


@dataclass(frozen=True, slots=True)
class FollowingOptions:
    """How bindings are followed.

    `latency_seconds` is how long a decision may take until it is seen, `sample` the share of
    bindings that are judged, and `percentages_of_nodes_to_score` each scheduler's setting, by name;
    one that is not there chooses by size, as with 0.
    """

    latency_seconds: float = 3.0
    percentages_of_nodes_to_score: Mapping[str, int] = field(default_factory=dict)
    sample: float = 1.0


class Follower:
    """Holds changes back, judges bindings, keeps the core up to date."""

    def __init__(
        self,
        core: Scheduler,
        profiles: Iterable[str],
        *,
        report: Report,
        options: FollowingOptions,
        log: Callable[[Log], None] = lambda _: None,
    ) -> None:
        """Judge with a core whose profiles have the names of the schedulers that are followed."""
        self._core = core
        self._profiles = frozenset(profiles)
        self._report = report
        self._options = options
        self._log = log
        self._live = False
        self._place = 0
        # When pods came to wait, or failed to be placed: whichever was last.
        self._queued: dict[PodUid, int] = {}
        self._ahead: deque[SeenChange] = deque()
        self._recent: deque[SeenChange] = deque()
        self._unplaced = UnplacedPods(self._feasible, report)

    # What happens in the cluster

    def start(self) -> None:
        """Judge from now on: what was told so far is how things were when we came."""
        self._live = True

    def pod_changed(self, old: Pod | None, new: Pod | None, *, now: float) -> None:
        self._take(pod_change(old, new, at=now, place=self._next(), queued=self._wait(old, new)))

    def node_changed(self, old: Node | None, new: Node | None, *, now: float) -> None:
        self._take(node_change(old, new, at=now, place=self._next()))

    def object_changed(
        self, kind: Kind, old: ClusterObject | None, new: ClusterObject | None, *, now: float
    ) -> None:
        self._take(object_change(kind, old, new, at=now, place=self._next()))

    def _next(self) -> int:
        self._place += 1
        return self._place

    def _wait(self, old: Pod | None, new: Pod | None) -> int | None:
        """Note when a pod came to wait; return it once, when a pod of theirs is bound."""
        known = new if new is not None else old
        if known is None or known.spec.scheduler_name not in self._profiles:
            return None
        uid = PodUid(known.metadata.uid)
        if new is None:
            self._queued.pop(uid, None)
            return None
        if new.spec.node_name:
            queued = self._queued.pop(uid, None)
            if old is None and self._live and new.status.start_time is None:
                self._report.unseen(new.spec.scheduler_name)
            return queued if old is not None and not old.spec.node_name else None
        if uid not in self._queued or _came_back(old, new):
            self._queued[uid] = self._place
        return None

    def _take(self, seen: SeenChange) -> None:
        if self._live:
            self._ahead.append(seen)
        else:
            self._tell(seen.forward)
            self._note_unplaced(seen)

    # Time

    def step(self, now: float) -> bool:
        """Tell the core of the next change whose time has come; return whether there was one."""
        if not self._ahead or self._ahead[0].at > now - self._options.latency_seconds:
            return False
        self._apply(self._ahead.popleft())
        return True

    def finish(self) -> None:
        """Tell the core of everything that is held back: nothing more will come."""
        while self._ahead:
            self._apply(self._ahead.popleft())

    def limit_caches(self, max_bytes: int, *, now: float) -> None:
        self._tell(LimitCaches(now, max_bytes))

    def look_at_unplaced(self, now: float) -> None:
        self._unplaced.look(now)

    def _apply(self, seen: SeenChange) -> None:
        while self._recent and self._recent[0].at < seen.at - self._options.latency_seconds:
            self._recent.popleft()
        if seen.binding is not None:
            self._judge(seen, seen.binding)
        self._tell(seen.forward)
        self._recent.append(seen)
        self._note_unplaced(seen)

    def _note_unplaced(self, seen: SeenChange) -> None:
        pod = seen.pod
        if pod is not None and pod.spec.scheduler_name in self._profiles and failed_to_place(pod):
            self._unplaced.put(pod)
        else:
            self._unplaced.remove(seen.key)

    def _tell(self, message: Message) -> None:
        for instruction in self._core.handle(message):
            if isinstance(instruction, Log):
                self._log(instruction)

    # Judging

    def _judge(self, seen: SeenChange, binding: Binding) -> None:
        if not self._is_sampled(binding.uid):
            self._report.skipped(binding.pod.spec.scheduler_name)
            return
        if len(self._ahead) > MOST_AHEAD:
            self._report.behind(binding.pod.spec.scheduler_name)
            return
        until = seen.at + self._options.latency_seconds
        near = list(itertools.takewhile(lambda s: s.at <= until, self._ahead))
        try:
            finding = self._find(seen, binding, near)
        except (PluginError, QuantityError, OverLimitError) as error:
            finding = self._finding(seen, binding, Result.FAILED, error=str(error))
        self._report.add(finding)

    def _find(self, seen: SeenChange, binding: Binding, near: list[SeenChange]) -> Finding:
        standing = standing_of(self._core.judge(binding.pod, makes_room=False), binding.node)
        if standing.is_best:
            return self._finding(seen, binding, Result.BEST, standing)
        if standing.feasible and binding.pod.status.nominated_node_name == binding.node:
            return self._finding(seen, binding, Result.NOMINATED, standing)
        changes = sum(s.matters for s in (*self._recent, *near))
        for variant in variants(binding, self._recent, near):
            if self._standing_on(variant, binding).is_best:
                return self._finding(
                    seen, binding, Result.EXPLAINED, standing, variant=variant, changes=changes
                )
        result = Result.WORSE if standing.feasible else Result.INFEASIBLE
        percentages = self._options.percentages_of_nodes_to_score
        percentage = percentages.get(binding.pod.spec.scheduler_name, 0)
        if may_be_best_of_sample(standing, percentage):
            result = Result.SAMPLED
        return self._finding(seen, binding, result, standing, changes=changes)

    def _standing_on(self, variant: Variant, binding: Binding) -> Standing:
        """Return how the choice stands in another state, and leave the core as it was.

        Newest changes are taken back first. What a core is told of an object replaces what it
        knew, so for the way back the last version of each is enough.
        """
        last = {seen.key: seen.forward for seen in self._recent}
        known = self._known({seen.key for seen in variant.told})
        try:
            for seen in variant.taken_back:
                self._quietly(seen.back)
            for seen in variant.told:
                self._quietly((seen.forward,))
            return standing_of(self._core.judge(binding.pod, makes_room=False), binding.node)
        finally:
            for back in known.values():
                self._quietly(back)
            for key in dict.fromkeys(seen.key for seen in reversed(variant.taken_back)):
                self._quietly((last[key],))

    def _known(self, keys: set[str]) -> dict[str, tuple[Message, ...]]:
        """Return how to bring the core back to what it knows of some objects that are ahead.

        That is how each was before the first of its changes that are held back. A change that was
        told out of its turn may be a later one, whose own way back leads only to the one before.
        """
        known: dict[str, tuple[Message, ...]] = {}
        for seen in self._ahead:
            if seen.key in keys:
                known.setdefault(seen.key, seen.back)
        return known

    def _quietly(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._core.handle(message)

    def _finding(
        self,
        seen: SeenChange,
        binding: Binding,
        result: Result,
        standing: Standing | None = None,
        *,
        variant: Variant | None = None,
        changes: int = 0,
        error: str = "",
    ) -> Finding:
        texts = () if variant is None else variant.texts
        volumes = binding.pod.spec.volumes or ()
        return Finding(
            at=seen.at,
            pod=key_of(binding.pod.metadata),
            profile=binding.pod.spec.scheduler_name,
            node=binding.node,
            result=result,
            standing=standing,
            race=texts[:_MOST_TEXTS],
            race_size=len(texts),
            changes_near=changes,
            has_claims=any(v.persistent_volume_claim is not None for v in volumes),
            error=error,
        )

    def _feasible(self, pod: Pod) -> int:
        try:
            return len(self._core.judge(pod, makes_room=False).feasible)
        except (PluginError, QuantityError, OverLimitError):
            return 0

    def _is_sampled(self, uid: PodUid) -> bool:
        return zlib.crc32(uid.encode()) < self._options.sample * _WHOLE


def _came_back(old: Pod | None, new: Pod) -> bool:
    """Return whether a pod that waits was let go by a gate, or has just failed to be placed."""
    if old is None:
        return True
    if bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates:
        return True
    return failed_to_place(new) and old.status.conditions != new.status.conditions
