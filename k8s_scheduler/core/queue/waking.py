"""Wakes parked pods that an event has helped, and only those.

What changed is judged by the very filters that rejected the pods: the touched rows, once per
parked shape; all rows, where one of the plugins that reject the shape looks beyond the row it
judges (at pods elsewhere, or at other objects) and has seen something new there. A pod is woken
iff one of these rows would now take it, so with all messages handled no parked pod is feasible;
or if it could now get room on a touched row by preemption.
Events that can't change the mind of a plugin that rejects the shape somewhere are not looked at.
A pod that found no node at all is woken by the first one, fitting or not: what it says of itself
would be wrong from then on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from k8s_scheduler.api.kinds import Kind
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.profile import Profile
from k8s_scheduler.core.framework.runtime import Filtered, Runtime
from k8s_scheduler.core.framework.shapes import ShapeKey
from k8s_scheduler.core.queue.parked import Alike
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.scheduling_queue import SchedulingQueue
from k8s_scheduler.core.state.cache import Cache
from k8s_scheduler.core.state.changes import (
    Change,
    Changes,
    NodeRow,
    event_label,
    object_event_label,
)
from k8s_scheduler.core.state.node_table import Rows

# Work of one step: judging a shape costs about a tenth of a millisecond, waking a pod a hundredth.
SHAPES_PER_STEP = 64
PODS_PER_STEP = 500


# Returns one of some rows on which preemption would make room for a pod; the engine knows how.
CouldMakeRoom = Callable[[Profile, QueuedPod, Rows, Filtered, Sequence[NodeRow]], NodeRow | None]


@dataclass(slots=True)
class _Round:
    """Changes, and the shapes that have not been judged against them yet, last one first."""

    changes: Changes
    shapes: list[ShapeKey]
    # Pods that are being woken, last one first, with the sequence under which each was parked: one
    # that was tried meanwhile and parked again is another case. It may take several steps.
    waking: list[tuple[QueuedPod, int]] = field(default_factory=list)
    event: str = ""


class Waker:
    """Compares what changed with who is parked, in steps.

    A round takes all changes so far and goes through all shapes; what changes meanwhile waits for
    the next round. A pod that is parked during a round was judged with all that had changed.
    """

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        cache: Cache,
        runtime: Runtime,
        profiles: Mapping[str, Profile],
        could_make_room: CouldMakeRoom,
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._runtime = runtime
        self._profiles = profiles
        self._round: _Round | None = None
        self._sampled = 0
        self._could_make_room = could_make_room

    def wake(self, *, now: float) -> None:
        """Do one step: judge some shapes, wake some pods."""
        if self._round is None:
            changes = self._cache.changes.drain()
            if not changes or not len(self._queue.parked):
                return
            shapes = self._queue.parked.shapes()
            shapes.reverse()
            self._round = _Round(changes, shapes)
        if self._step(self._round, now=now):
            self._round = None

    @property
    def is_due(self) -> bool:
        """Return whether something changed since parked pods were last looked at."""
        if self._round is not None:
            return True
        return bool(self._cache.changes and len(self._queue.parked))

    def rewind(self) -> None:
        """Give up an unfinished round; its changes are dealt with again from the start."""
        if self._round is not None:
            self._cache.changes.take_back(self._round.changes)
            self._round = None

    def sample(self) -> QueuedPod | None:
        """Return a pod of the next parked shape, in turn; None while anything is left to wake.

        Whoever asks judges it afresh: it must not fit, or waking has a hole.
        """
        shapes = self._queue.parked.shapes()
        if self.is_due or not shapes:
            return None
        self._sampled += 1
        alike = self._queue.parked.of_shape(shapes[self._sampled % len(shapes)])
        return None if alike is None else alike.first

    def _step(self, current: _Round, *, now: float) -> bool:
        """Return whether the round has come to its end."""
        judged = woken = 0
        while True:
            while current.waking:
                if woken >= PODS_PER_STEP:
                    return False
                queued, sequence = current.waking.pop()
                if queued.sequence == sequence and queued.uid in self._queue.parked:
                    self._queue.wake(queued, current.event, now=now)
                    woken += 1
            if not current.shapes:
                return True
            if judged >= SHAPES_PER_STEP:
                return False
            judged += 1
            self._judge(current, self._queue.parked.of_shape(current.shapes.pop()))

    def _judge(self, current: _Round, alike: Alike | None) -> None:
        """Let the pods of a shape be woken if a change has helped them."""
        if alike is None:
            return
        # What happened before the attempt that parked a pod is no news to it.
        news = current.changes.since(alike.seen)
        event = _first_nodes(alike, news) or self._help_for(alike, news)
        if event:
            current.event = event
            current.waking = [(queued, queued.sequence) for queued in reversed(alike)]

    def _help_for(self, alike: Alike, changes: Changes) -> str:
        """Return the event that made room for pods of a shape; empty if there is none."""
        profile = self._profiles[alike.first.pod.spec.scheduler_name]
        rejectors = sorted(alike.rejectors)
        rows = _helpful(changes.rows, profile, rejectors)
        read = {kind for name in rejectors for kind in profile.helpful_kinds.get(name, Kind)}
        kinds = [kind for kind in changes.objects if kind in read]
        if not rows and not kinds:
            return ""
        anything = (
            object_event_label(kinds[0], changes.objects[kinds[0]])
            if kinds
            else event_label(next(iter(rows.values())))
        )
        wide = [name for name in rejectors if name in profile.wide]
        everywhere = bool(kinds or _helpful(changes.rows, profile, wide))
        try:
            found = self._fitting(profile, alike, rows, everywhere=everywhere)
        except PluginError:
            # Let the pod's own cycle meet the error: there it is reported.
            return anything
        if found is None:
            return ""
        return event_label(rows[found]) if found in rows else anything

    def _fitting(
        self,
        profile: Profile,
        alike: Alike,
        rows: Mapping[NodeRow, Change],
        *,
        everywhere: bool,
    ) -> NodeRow | None:
        """Return a row that takes pods of a shape, a touched one if there is."""
        pod = alike.first.view
        nodes = self._cache.nodes
        touched = [row for row in rows if nodes.node_at(row) is not None]
        asked = nodes.present_rows() if everywhere else np.array(touched, dtype=np.int64)
        filtered = self._runtime.run_filters(profile, pod, asked)
        if len(filtered.feasible):
            fitting = filtered.feasible.tolist()
            return next((row for row in touched if row in fitting), NodeRow(fitting[0]))
        alike.blame(self._runtime.blamed(filtered.codes))
        return self._could_make_room(profile, alike.chief, asked, filtered, touched)


def _helpful(
    rows: Mapping[NodeRow, Change], profile: Profile, plugins: Iterable[str]
) -> dict[NodeRow, Change]:
    """Return the events that may change the mind of one of the plugins.

    A rejector that is no plugin of the profile may be helped by anything.
    """
    helpful = Change(0)
    for name in plugins:
        helpful |= profile.helped_by.get(name, ~Change(0))
    return {row: change & helpful for row, change in rows.items() if change & helpful}


def _first_nodes(alike: Alike, changes: Changes) -> str:
    """Return NodeAdd if there are nodes now and there were none when one of the pods was tried."""
    if alike.found_no_node and any(change & Change.NODE_ADD for change in changes.rows.values()):
        return event_label(Change.NODE_ADD)
    return ""
