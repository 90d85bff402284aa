"""Takes in what the core is told of pods."""

from k8s_scheduler.api.meta import NodeName, PodUid, key_of
from k8s_scheduler.api.pod import Pod, is_terminating
from k8s_scheduler.api.pod_counts import pod_excess
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.binding.binding_cycle import BindingCycle
from k8s_scheduler.core.engine.checks.overfilled import Overfilled
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.pods.directory import Where
from k8s_scheduler.core.engine.pods.unconfirmed import found_in, tell_read
from k8s_scheduler.core.engine.preemption.evictions import Evictions
from k8s_scheduler.core.engine.telling import unreadable
from k8s_scheduler.core.messages.incoming import PodChanged, PodRead


class PodMessages:
    """Handles the messages about pods."""

    def __init__(
        self,
        state: CoreState,
        binding_cycle: BindingCycle,
        *,
        evictions: Evictions,
        overfilled: Overfilled,
    ) -> None:
        self._state = state
        self._cache = state.cache
        self._binding_cycle = binding_cycle
        self._evictions = evictions
        self._overfilled = overfilled

    def changed(self, message: PodChanged) -> None:
        uid, pod = message.uid, message.pod
        self._keep_promise(uid, pod)
        if pod is None:
            self._gone(uid)
        elif pod.spec.node_name:
            self._bound(uid, pod)
        else:
            self._unbound(uid, pod, now=message.now)
        if pod is None or is_terminating(pod):
            self._evictions.saw_leave(uid, now=message.now)

    def _gone(self, uid: PodUid) -> None:
        self._leave_queue(uid)
        self._abandon(uid)
        left = self._cache.place_of(uid)
        self._state.limiting.left(uid)
        self._cache.remove_pod(uid)
        self._overfilled.pod_left(left)

    def _bound(self, uid: PodUid, pod: Pod) -> None:
        """Take in a pod with a node, whichever scheduler put it there."""
        self._leave_queue(uid)
        in_flight = self._state.in_flight
        if not in_flight.is_binding(uid):
            self._abandon(uid)
        in_flight.update(pod)
        before = self._cache.place_of(uid)
        try:
            sighting = self._cache.put_bound(self._state.limiting.placed(pod))
        except QuantityError as error:
            self._state.out.append(unreadable("pod", key_of(pod.metadata), error))
            return
        if before is not None and before.node != pod.spec.node_name:
            self._overfilled.pod_left(before)
        self._overfilled.pod_seen(pod, sighting, before)

    def _unbound(self, uid: PodUid, pod: Pod, *, now: float) -> None:
        state = self._state
        match state.pods.where(uid):
            case Where.IN_FLIGHT:
                state.in_flight.update(pod)
                if is_terminating(pod) and not state.in_flight.is_binding(uid):
                    # It needs no node any more. Its deletion comes by the watch.
                    self._abandon(uid)
            case Where.SUSPENDED:
                state.suspensions.update(pod)
                if is_terminating(pod):
                    state.suspensions.drop(uid)
            case Where.UNCONFIRMED | Where.BOUND:
                # A version without a node name is an older one.
                pass
            case Where.QUEUED:
                state.queue.update(pod, now=now)
            case Where.UNKNOWN if state.profiles.serves(pod):
                state.queue.add(pod, now=now)

    def _leave_queue(self, uid: PodUid) -> None:
        self._state.unconfirmed.seen(uid)
        self._state.queue.remove(uid)
        self._state.suspensions.drop(uid)

    def _abandon(self, uid: PodUid) -> None:
        """Give back what a pod in flight has taken: it is gone, or bound by another scheduler."""
        flight = self._state.in_flight.get(uid)
        if flight is not None:
            self._binding_cycle.undo(flight)

    def read(self, message: PodRead) -> None:
        """Take what reading a pod has shown of which the watch shows nothing."""
        state = self._state
        waiting = state.unconfirmed.of(message)
        if waiting is None:
            return
        uid = message.uid
        found = found_in(message, waiting)
        state.meter.metrics.unconfirmed_pods.labels(found).inc()
        state.out.append(tell_read(waiting, found))
        if found == "unbound":
            # The API server has the last word, whatever it said before.
            state.unconfirmed.seen(uid)
            self._cache.forget(uid)
        self.changed(PodChanged(message.now, uid, message.pod))

    # Promises of room

    def _keep_promise(self, uid: PodUid, pod: Pod | None) -> None:
        """Keep the room that a pod is promised in step with what its status says."""
        if pod is None or not self._may_be_promised(uid, pod):
            self._cache.end_nomination(uid)
        elif pod.status.nominated_node_name:
            self._cache.nominate(pod, NodeName(pod.status.nominated_node_name))
        elif (promised := self._cache.nominations.node_of(uid)) is not None:
            known = self._state.pods.unbound(uid)
            if known is None or known.pod.status.nominated_node_name:
                self._cache.end_nomination(uid)
            else:
                # A promise of ours may be on its way to the status: to the pod as it is now.
                self._cache.nominate(pod, promised)

    def _may_be_promised(self, uid: PodUid, pod: Pod) -> bool:
        """Return whether a pod is one of ours that may yet be tried."""
        return (
            not pod.spec.node_name
            and self._state.profiles.serves(pod)
            and self._cache.node_of(uid) is None
            # Pods that are promised room are judged along with others: no place for one past a
            # limit.
            and not (
                pod.status.nominated_node_name and pod_excess(pod, self._state.limiting.pod_limits)
            )
        )
