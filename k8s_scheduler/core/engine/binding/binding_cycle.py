"""The binding cycle: from a decision to the Bind by reserve, permit and pre-bind.

        assume ─▶ reserve ─▶ permit ─┬─ all said yes ───────────▶ pre-bind ─▶ Bind
                     │          │    └─ wait ─▶ (allowed) ────────▲   │
                     ▼          ▼          └──▶ (rejected, late) ─┐   ▼
                 turned away: unreserve everything, give the room back, tell

Plugins are asked one after the other. What they reserve is seen by every later decision, and is
given back on any failure. Nothing here waits: a pod that has to is left standing, and goes on
when a plugin, an answer, an object or the clock says so.

A pod that is not bound at once says in its status where it will go, so that others who plan with
pending pods (autoscalers) know. Binding takes that back, and so does a failure.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from k8s_scheduler.api.durations import format_duration
from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.metering.point_meter import PointMeter
from k8s_scheduler.core.engine.pods.in_flight import InFlightPod, Phase
from k8s_scheduler.core.engine.telling import plugin_log
from k8s_scheduler.core.framework import points
from k8s_scheduler.core.framework.evaluation.runtime import Runtime
from k8s_scheduler.core.framework.plugin import (
    ObjectPatch,
    PreBinding,
    PreBindPlugin,
    Rejection,
    Reservation,
    ReservePlugin,
    Wait,
)
from k8s_scheduler.core.framework.plugin_errors import PluginError, blaming, check_answer
from k8s_scheduler.core.framework.profile import PluginStep, Profile
from k8s_scheduler.core.framework.reasons import Reason, Verdict
from k8s_scheduler.core.framework.views.reads import Reads
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.core.messages.incoming import RequestResult
from k8s_scheduler.core.messages.outgoing import Bind, Nominate, PatchObject
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.state.rows import NodeRow

MAX_WAIT_SECONDS = 15 * 60.0
NO_BINDER = "no bind plugin of the profile binds this pod"


class TurnedAwayError(Exception):
    """A plugin refused a pod on the node that was chosen for it."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(", ".join(reason.text for reason in verdict.reasons))
        self.verdict = verdict


class BindingError(Exception):
    """Something that had to be done before binding went wrong."""


class BindingCycle:
    """Brings placed pods to the point where they can be bound."""

    def __init__(self, state: CoreState, runtime: Runtime) -> None:
        self._state = state
        self._cache = state.cache
        self._in_flight = state.in_flight
        self._runtime = runtime
        # The last word about waiting pods, in the order in which it was spoken: a rejection, or
        # None for a pod that may go on. Later words about the same pod are not heard.
        self._words: dict[PodUid, Verdict | None] = {}
        # The pod whose plugins are being asked: others may still make it wait.
        self._asking: PodUid | None = None
        self.attach(state.profiles.values())

    def attach(self, profiles: Iterable[Profile]) -> None:
        """Let plugins that speak about waiting pods know where."""
        for profile in profiles:
            for plugin in profile.attached:
                plugin.attach(self)

    # The cycle begins

    def begin(self, flight: InFlightPod, *, now: float) -> None:
        """Reserve and ask for permits; raises TurnedAwayError or PluginError, all undone."""
        profile = self._state.profiles.of_flight(flight)
        row = self._cache.nodes.row_of(flight.node)
        if row is None:
            raise BindingError(f'there is no node "{flight.node}"')
        self._cache.assume(flight.pod, row, flight.queued.view.requests)
        self._in_flight.start(flight)
        self._asking = flight.uid
        try:
            with self._timed(flight, points.RESERVE):
                self._reserve(flight, profile)
            with self._timed(flight, points.PERMIT):
                self._ask_permits(flight, profile, now=now)
        except (TurnedAwayError, PluginError):
            self.undo(flight, quietly=True)
            raise
        finally:
            self._asking = None
        # What comes later goes by the notes, as it has to after a checkpoint; terms hold a lot.
        flight.state.terms = {}
        self._cache.announce(flight.uid)
        if flight.objects:
            for kind in dict.fromkeys(kind for kind, _, _ in flight.objects):
                self._cache.objects.announce(kind)
        flight.changes_seen = self._cache.changes.count
        if flight.permits or flight.uid in self._words:
            self._tell_node(flight)
        else:
            self.go_on(flight, now=now)

    @contextmanager
    def _timed(self, flight: InFlightPod, point: str) -> Iterator[None]:
        watch = self._watch(flight)
        started = watch.now()
        status = points.ERROR
        try:
            yield
            status = points.WAIT if flight.permits else points.SUCCESS
        except TurnedAwayError:
            status = points.UNSCHEDULABLE
            raise
        finally:
            watch.ended(point, status, started)

    def _reserve(self, flight: InFlightPod, profile: Profile) -> None:
        for step in profile.reserves:
            if step.only_prepared and step.name not in flight.state.terms:
                continue
            with blaming(step.name, "Reserve"):
                found = step.plugin.reserve(flight.state, flight.pod, self._view(step, flight))
                check_answer(found, Reservation, Rejection)
            if isinstance(found, Rejection):
                raise TurnedAwayError(Verdict(step.name, found.reasons, resolvable=True))
            if isinstance(found, Reservation):
                for kind, reserved in found.objects:
                    self._cache.objects.assume(kind, reserved)
                    metadata = reserved.metadata
                    flight.objects.append((kind, metadata.namespace, metadata.name))

    def _ask_permits(self, flight: InFlightPod, profile: Profile, *, now: float) -> None:
        for name, plugin in profile.permits:
            with blaming(name, "Permit"):
                said = plugin.permit(flight.state, flight.pod, flight.node)
                check_answer(said, Rejection, Wait)
            if isinstance(said, Rejection):
                raise TurnedAwayError(Verdict(name, said.reasons, resolvable=True))
            if isinstance(said, Wait):
                seconds = min(said.seconds, MAX_WAIT_SECONDS)
                flight.permits[name] = (now + seconds, seconds)

    # Going on

    def go_on(self, flight: InFlightPod, *, now: float) -> None:
        """Do the next PreBind, or bind; raises PluginError or BindingError, all undone."""
        if flight.phase is not Phase.PRE_BINDING:
            flight.phase = Phase.PRE_BINDING
            flight.since = now
        steps = self._state.profiles.of_flight(flight).pre_binds
        try:
            while flight.step < len(steps):
                step = steps[flight.step]
                if step.only_prepared and step.name not in flight.state.notes:
                    flight.step += 1
                    continue
                with blaming(step.name, "PreBind"):
                    view = self._view(step, flight)
                    wanted = step.plugin.pre_bind(flight.state, flight.pod, view)
                    check_answer(wanted, PreBinding)
                    _check_writes(step, wanted)
                if wanted is not None:
                    self._tell_node(flight)
                    flight.deadline = now + wanted.timeout_seconds
                    flight.errand = (f'running PreBind plugin "{step.name}"', wanted.errand)
                    for patch in wanted.patches:
                        self._write(flight, patch)
                    if flight.requests or not self._is_ready(flight, step):
                        return
                flight.step += 1
        except PluginError:
            self.pre_bind_ended(flight, points.ERROR, now=now)
            self.undo(flight)
            raise
        self.pre_bind_ended(flight, points.SUCCESS, now=now)
        flight.phase = Phase.BINDING
        flight.since = now
        self._state.out.append(Bind(**flight.attempt, node=flight.node))

    def answered(self, flight: InFlightPod, result: RequestResult) -> None:
        """Take the answer to a write; raises BindingError if it failed, all undone."""
        flight.requests.discard(result.request)
        if flight.phase is not Phase.PRE_BINDING:
            return
        if not result.done:
            self.pre_bind_ended(flight, points.ERROR, now=result.now)
            self.undo(flight)
            raise BindingError(f"{flight.errand[0]}: {result.message}")
        if not flight.requests:
            self.look_again(flight, now=result.now)

    def look_again(self, flight: InFlightPod, *, now: float) -> None:
        """See whether what a pod waits for has become true; raises PluginError, all undone."""
        if flight.phase is not Phase.PRE_BINDING or flight.requests:
            return
        step = self._state.profiles.of_flight(flight).pre_binds[flight.step]
        try:
            ready = self._is_ready(flight, step)
        except PluginError:
            self.pre_bind_ended(flight, points.ERROR, now=now)
            self.undo(flight)
            raise
        if ready:
            flight.step += 1
            self.go_on(flight, now=now)

    def undo(self, flight: InFlightPod, *, quietly: bool = False) -> None:
        """Give everything back, in reverse, and end the cycle, whatever plugins say to it.

        Quietly, if it only just began: what took nothing in the end is no news.
        """
        self._in_flight.end(flight.uid)
        watch = self._watch(flight)
        started = watch.now()
        for step in reversed(self._state.profiles.of_flight(flight).reserves):
            try:
                with blaming(step.name, "Unreserve"):
                    step.plugin.unreserve(flight.state, flight.pod)
            except PluginError as error:
                self._state.meter.plugin_failed(error.plugin, error.extension_point)
                self._state.out.remark(plugin_log(flight.queued, error))
        watch.ended(points.UNRESERVE, points.SUCCESS, started)
        for kind, namespace, name in reversed(flight.objects):
            self._cache.objects.revert(kind, namespace, name, quietly=quietly)
        if self._cache.is_assumed(flight.uid):
            self._cache.forget(flight.uid, quietly=quietly)

    # Waiting pods, as plugins see them

    def uids(self, plugin: str) -> tuple[PodUid, ...]:
        """Return the pods that wait for a plugin's word, longest waiting first."""
        waiting = self._in_flight.in_phase(Phase.WAITING)
        return tuple(flight.uid for flight in waiting if plugin in flight.permits)

    def pod(self, uid: PodUid) -> Pod | None:
        flight = self._in_flight.get(uid)
        return flight.pod if flight is not None and flight.phase is Phase.WAITING else None

    def allow(self, uid: PodUid, plugin: str) -> None:
        """Let a pod go on, as far as a plugin is concerned."""
        flight = self._waiting(uid)
        if flight is None or plugin not in flight.permits:
            return
        del flight.permits[plugin]
        if not flight.permits and uid != self._asking:
            self._words[uid] = None

    def reject(self, uid: PodUid, plugin: str, message: str) -> None:
        if self._waiting(uid) is not None:
            reason = Reason(code=f"{plugin}/Rejected", text=message)
            self._words[uid] = Verdict(plugin, (reason,), resolvable=True)

    def _waiting(self, uid: PodUid) -> InFlightPod | None:
        """Return a waiting pod about which the last word has not been spoken."""
        flight = self._in_flight.get(uid)
        if flight is None or flight.phase is not Phase.WAITING or uid in self._words:
            return None
        return flight

    # What plugins said, and what the clock says

    def take_words(self) -> list[tuple[InFlightPod, Verdict | None]]:
        """Return the pods about which the last word was spoken: a rejection, or None."""
        words, self._words = self._words, {}
        found = ((self._in_flight.get(uid), verdict) for uid, verdict in words.items())
        return [(f, v) for f, v in found if f is not None and f.phase is Phase.WAITING]

    def waited(self, flight: InFlightPod, status: str, *, now: float) -> None:
        """Take note that a pod waits for permits no longer."""
        self._state.meter.permit_waited(status, max(0.0, now - flight.since))

    def pre_bind_ended(self, flight: InFlightPod, status: str, *, now: float) -> None:
        """Take note of how long PreBind took, what it waited for included."""
        self._watch(flight).took(points.PRE_BIND, status, max(0.0, now - flight.since))

    def expire(self, *, now: float) -> None:
        """Send back the pods that have waited long enough for a permit."""
        for flight in self._in_flight.in_phase(Phase.WAITING):
            ends = [
                (deadline, seconds, name) for name, (deadline, seconds) in flight.permits.items()
            ]
            deadline, seconds, plugin = min(ends, default=(now + 1, 0.0, ""))
            if now >= deadline:
                text = (
                    f"rejected due to timeout after waiting {format_duration(seconds)} "
                    f"at plugin {plugin}"
                )
                self.reject(flight.uid, plugin, text)

    def overdue(self, *, now: float) -> list[InFlightPod]:
        """Return the pods whose PreBind has taken too long."""
        flights = self._in_flight.in_phase(Phase.PRE_BINDING)
        return [flight for flight in flights if flight.deadline and now >= flight.deadline]

    # Helpers

    def _watch(self, flight: InFlightPod) -> PointMeter:
        return self._state.meter.watches[flight.pod.spec.scheduler_name]

    def _is_ready(self, flight: InFlightPod, step: PluginStep[PreBindPlugin]) -> bool:
        reads, row = Reads(), self._row(flight)
        rows = np.array([] if row is None else [row], dtype=np.int64)
        view = self._runtime.view(step, rows, reads=reads)
        with blaming(step.name, "PreBind"):
            ready = step.plugin.pre_bound(flight.state, flight.pod, view)
        if ready:
            self._in_flight.pre_binding.forget(flight.uid)
        else:
            self._in_flight.pre_binding.asked(flight.uid, reads, row)
        return ready

    def _tell_node(self, flight: InFlightPod) -> None:
        """Let the pod's status name the node, unless it does."""
        if flight.nominated == flight.node:
            return
        flight.told = True
        self._state.out.append(Nominate(**flight.attempt, node=flight.node))

    def _write(self, flight: InFlightPod, patch: ObjectPatch) -> None:
        number = self._state.out.number()
        flight.requests.add(number)
        request = PatchObject(
            **flight.attempt,
            request=number,
            kind=patch.kind,
            object_namespace=patch.namespace,
            object_name=patch.name,
            patch=patch.patch,
        )
        self._state.out.append(request)

    def _view(
        self, step: PluginStep[ReservePlugin] | PluginStep[PreBindPlugin], flight: InFlightPod
    ) -> RowsView:
        row = self._row(flight)
        rows = np.array([] if row is None else [row], dtype=np.int64)
        return self._runtime.view(step, rows)

    def _row(self, flight: InFlightPod) -> NodeRow | None:
        row = self._cache.nodes.row_of(flight.node)
        return None if row is None or self._cache.nodes.node_at(row) is None else row


def _check_writes(step: PluginStep[PreBindPlugin], wanted: PreBinding | None) -> None:
    """Raise if a plugin wants an object changed that it has not declared: it has no right to."""
    for patch in () if wanted is None else wanted.patches:
        if patch.kind not in step.writes:
            raise TypeError(
                f"it would patch a {patch.kind.name}, which it does not declare in `writes`"
            )


def check_binder(profile: Profile, queued: QueuedPod) -> None:
    """Raise if no plugin of the profile binds the pod."""
    for name, plugin in profile.binds:
        with blaming(name, "Bind"):
            if plugin.binds(queued.pod):
                return
    raise BindingError(NO_BINDER)
