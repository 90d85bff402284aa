"""Sees to it that victims leave, stage by stage.

        promises to lesser pods taken back ─▶ all victims but the last ─▶ the last ─▶ answered
                                             └─ one can't be evicted                    │
                                                │         all that leave were seen to  │
                                                ▼                                       ▼
                                              over, the pod is tried again  ◀──────── over

While it lasts, the pod is kept out of the queue's reach: trying it before its victims are known to
leave would only preempt more. The last victim goes alone so that the pod can't be told that all is
done before it is. Once the pod is gone or bound no other pod is asked to leave for it;
kube-scheduler would finish what it began.

No victim is evicted twice. From the request until the watch shows it leaving, any other pod that
needs its place waits with the one that asked first.
"""

from typing import Final

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.attempt_ends import AttemptEnds
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.pods.in_flight import Phase
from k8s_scheduler.core.engine.preemptions import OngoingPreemption
from k8s_scheduler.core.engine.telling import tell_victim
from k8s_scheduler.core.messages.incoming import VICTIM_GONE, RequestResult
from k8s_scheduler.core.messages.outgoing import ClearNomination, Evict, PodReference
from k8s_scheduler.core.queue.queued_pod import QueuedPod

_LAST: Final = 2


class Evictions:
    """Carries preemptions out."""

    def __init__(self, state: CoreState, ends: AttemptEnds) -> None:
        self._state = state
        self._pods = state.pods
        self._preemptions = state.preemptions
        self._ends = ends
        # Their pods are looked at when everything that a message brings is known.
        self._ended: list[OngoingPreemption] = []

    def start(
        self,
        queued: QueuedPod,
        node: NodeName,
        *,
        plugin: str,
        victims: tuple[Pod, ...],
        now: float,
    ) -> None:
        """Let the victims leave, except those that are on their way out."""
        self._state.meter.metrics.preemption_victims.observe(len(victims))
        staying = [pod for pod in victims if self._pods.is_staying(PodUid(pod.metadata.uid))]
        if not staying:
            return
        metadata = queued.pod.metadata
        preemption = OngoingPreemption(
            uid=queued.uid,
            attempt=queued.attempts,
            namespace=metadata.namespace,
            name=metadata.name,
            scheduler_name=queued.pod.spec.scheduler_name,
            node=node,
            plugin=plugin,
            others=self._lesser_promises(queued.pod, node),
            victims=tuple(map(PodReference.of, staying)),
            generations=tuple(victim.metadata.generation for victim in staying),
        )
        self._preemptions.add(preemption)
        self._advance(preemption, now=now)
        self._conclude(now=now)

    def _lesser_promises(self, pod: Pod, node: NodeName) -> tuple[PodReference, ...]:
        """Take back promises to less important pods; return those whose status names the node."""
        cache, priority = self._state.cache, pod.spec.priority or 0
        promised = cache.nominations.on(node).values()
        lesser = [other for other in promised if (other.spec.priority or 0) < priority]
        for other in lesser:
            cache.end_nomination(PodUid(other.metadata.uid))
        return tuple(PodReference.of(o) for o in lesser if o.status.nominated_node_name)

    # What happens

    def take_answer(self, result: RequestResult) -> bool:
        """Take an answer; False if it is not about a preemption.

        A pod whose preemption is over may be tried again.
        """
        preemption = self._preemptions.of_answer(result)
        if preemption is None:
            return False
        about = preemption.requests.pop(result.request)
        victim = next((v for v in preemption.victims if v.uid == about), None)
        if victim is not None:
            self._victim_answered(preemption, victim, result)
        elif not result.done:
            # A promise that can't be taken back from a status is no reason to stop.
            preemption.failed = True
        if not preemption.is_waiting:
            self._go_on(preemption, now=result.now)
        self._conclude(now=result.now)
        return True

    def _victim_answered(
        self, preemption: OngoingPreemption, victim: PodReference, result: RequestResult
    ) -> None:
        uid = victim.uid
        del self._preemptions.asked[uid]
        joined = [other for other in self._preemptions.of_victim(uid) if uid in other.joined]
        if not result.done:
            for failed in (preemption, *joined):
                failed.failed = failed.stopped = True
        else:
            if self._pods.is_staying(uid):
                self._preemptions.granted[uid] = None
            if result.message != VICTIM_GONE:
                self._state.out.append(tell_victim(victim, preemption))
        for other in joined:
            del other.joined[uid]
            if not other.is_waiting:
                self._go_on(other, now=result.now)

    def saw_leave(self, uid: PodUid, *, now: float) -> None:
        """The watch has shown a pod leaving: those that waited for it may be tried."""
        concerned = self._preemptions.of_victim(uid)
        self._preemptions.granted.pop(uid, None)
        for preemption in concerned:
            if preemption.is_answered:
                self._end_if_seen(preemption)
        for waiting in self._preemptions.of_victim(uid):
            if not self.is_under_way(waiting.uid):
                self._state.queue.look_again(waiting.uid, now=now)
        self._conclude(now=now)

    def doubt_grants(self, *, now: float) -> None:
        """Wait no longer for victims that stay: storage was set back to before their deletion.

        The pods for which they were to leave are tried again, as after any failure.
        """
        granted = self._preemptions.granted
        for uid in [uid for uid in granted if self._pods.is_staying(uid)]:
            del granted[uid]
            for preemption in self._preemptions.of_victim(uid):
                preemption.failed = True
                if preemption.is_answered:
                    self._end_if_seen(preemption)
        self._conclude(now=now)

    def is_under_way(self, uid: PodUid) -> bool:
        """Return whether a pod has to wait until its victims are known to leave."""
        return any(map(self._holds_back, self._preemptions.of(uid)))

    def _holds_back(self, preemption: OngoingPreemption) -> bool:
        if preemption.stage < _LAST or self._is_unseen(preemption):
            return True
        # That the last one leaves may be seen before it is answered.
        return preemption.is_waiting and self._pods.is_staying(preemption.victims[-1].uid)

    def _is_unseen(self, preemption: OngoingPreemption) -> bool:
        return any(victim.uid in self._preemptions.granted for victim in preemption.victims)

    # Stages

    def _go_on(self, preemption: OngoingPreemption, *, now: float) -> None:
        """Ask for what comes next, unless the pod needs the place no more."""
        if not self._pods.wants_node(preemption.uid):
            preemption.stopped = True
        self._advance(preemption, now=now)

    def _advance(self, preemption: OngoingPreemption, *, now: float) -> None:
        """Ask for what comes next; a stage with nothing to do is over at once."""
        while not preemption.is_waiting and not preemption.stopped and preemption.stage < _LAST:
            preemption.stage += 1
            if preemption.stage == 0:
                for other in preemption.others:
                    request = self._request(preemption, other)
                    self._state.out.append(
                        ClearNomination(**preemption.about, request=request, other=other)
                    )
                continue
            last = len(preemption.victims) - 1
            for index in range(last) if preemption.stage < _LAST else (last,):
                self._make_leave(preemption, index, now=now)
        if not preemption.is_waiting:
            preemption.is_answered = True
            self._state.meter.preemption_ended(failed=preemption.failed)
            self._end_if_seen(preemption)

    def _make_leave(self, preemption: OngoingPreemption, index: int, *, now: float) -> None:
        """Send a victim back that has no room on the API server yet; have any other deleted."""
        victim, preemptions = preemption.victims[index], self._preemptions
        flight = self._state.in_flight.get(victim.uid)
        if flight is not None and flight.phase is not Phase.BINDING:
            preemption.last_in_memory = preemption.stage == _LAST
            self._state.out.append(tell_victim(victim, preemption, " (in kube-scheduler memory)."))
            self._ends.preempted(flight, by_plugin=preemption.plugin, now=now)
        elif victim.uid in preemptions.asked:
            preemption.joined[victim.uid] = None
        elif victim.uid not in preemptions.granted and self._pods.is_staying(victim.uid):
            # One that was seen to leave since it was chosen need not be asked again.
            preemptions.asked[victim.uid] = None
            evict = Evict(
                **preemption.about,
                request=self._request(preemption, victim),
                victim=victim,
                scheduler_name=preemption.scheduler_name,
                observed_generation=preemption.generations[index],
            )
            self._state.out.append(evict)

    def _request(self, preemption: OngoingPreemption, about: PodReference) -> int:
        number = self._state.out.number()
        preemption.requests[number] = about.uid
        return number

    # The end

    def _end_if_seen(self, preemption: OngoingPreemption) -> None:
        """End a preemption for which nothing more is asked; one that was given up does not wait."""
        if not self._is_unseen(preemption) or preemption.failed or preemption.stopped:
            self._preemptions.remove(preemption)
            self._ended.append(preemption)

    def _conclude(self, *, now: float) -> None:
        """Let pods be tried again whose preemption is over.

        At once, if nothing that happens from now on would let them: something went wrong, or the
        last victim had no room on the API server yet, and the watch will not show it leaving.
        """
        ended, self._ended = self._ended, []
        for preemption in ended:
            if preemption.failed or preemption.last_in_memory:
                self._state.queue.activate(preemption.uid, now=now)
            else:
                self._state.queue.look_again(preemption.uid, now=now)
