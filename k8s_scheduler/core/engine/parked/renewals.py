"""Keeps what parked pods say of themselves true, without trying them again.

An event may change why a pod fits nowhere, and not that it does. kube-scheduler tries the pod again
and tells the new reason. Here waking has found out already that an attempt would be in vain, so
only its words are due: the pod is judged by the code that an attempt runs (`Cycle.diagnose`,
`PostFilter.would`), and where that says something else than the pod was told, event, condition and
metrics are renewed. No attempt is counted and no backoff grows.

     Tick: something changed ─▶ round: peers by turn ─▶ judged, if need be ─┬─▶ told, some of them
           (or is owed)                  ▲                                  │
                                         └─── others first ◀── more to tell ┴─▶ woken instead

* **Judged once.** Peers (pods of one shape, priority, policy) are judged once per state of the
  cluster, and an attempt of one of them is a judgement of all.
* **Bounded.** At most `JUDGED_PER_SECOND` judgements and the configured number of pods told each
  second, and one pod at most `POD_BURST` times in a row and then every `POD_SECONDS`. What is too
  much is not queued: pods that say something else than their peers' present reason are found by
  looking, so they are told the newest one when it is their turn. Few pods of each group are told
  before it is the next one's turn, and the group that waited longest comes first.
* **Woken instead** is a pod for which an attempt would do more than tell: a node takes it, others
  could be made to leave for it, a promise has to be taken back, a plugin fails.
* **Left alone** is a pod for which room is being made, and one that something else than filters
  has held back (Reserve, Permit, extenders, errors: `told` is 0).

What is known of peers and the order of turns are not part of checkpoints: taking one lets
everything be looked at again (`rewind`).
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from k8s_scheduler.api.meta import PodUid
from k8s_scheduler.api.quantity import QuantityError
from k8s_scheduler.core.engine.allowance import JUDGED_PER_SECOND
from k8s_scheduler.core.engine.core_state import CoreState
from k8s_scheduler.core.engine.decision.cycle import Cycle, NoNode
from k8s_scheduler.core.engine.parked.parked_audit import ParkedAudit
from k8s_scheduler.core.engine.preemption.post_filter import PostFilter, rejection
from k8s_scheduler.core.engine.telling import digest_of, tell_failure
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.status import UNSCHEDULABLE
from k8s_scheduler.core.queue.peers import Peers
from k8s_scheduler.core.queue.prices import DEAR, ORDINARY
from k8s_scheduler.core.queue.queued_pod import QueuedPod
from k8s_scheduler.core.queue.waking import Waker

# Work of one message, in judgements: the loop is not held for longer than a slice.
WORK_PER_STEP: Final = 4
# What is found out of preemption: so much work (see `work`) costs as much as one judgement.
UNITS_PER_JUDGEMENT: Final = 500
# Pods of one group that are told, and looked at, before it is the next one's turn.
TOLD_PER_TURN: Final = 4
LOOKED_AT_PER_TURN: Final = 256
WOKEN_PER_TURN: Final = 256
# Looking at so many pods costs as much as one judgement.
LOOKED_AT_PER_JUDGEMENT: Final = 256
# Each second everything is looked through anew, in the order of turns; of more groups than these,
# only every few seconds.
SORTED_PER_SECOND: Final = 1000
# How often one pod is told: kube-scheduler's longest backoff, after some that come at once.
POD_SECONDS: Final = 10.0
POD_BURST: Final = 4

# Why pods are woken from here; kube-scheduler knows no such event.
DIAGNOSIS_CHANGE: Final = "DiagnosisChange"

Moment: TypeAlias = tuple[int, int]


class _Promised:
    """Pods that are promised a node: each is judged by itself, since its promise binds others."""

    def __init__(self) -> None:
        self.turn = 0
        self.left: deque[PodUid] = deque()
        # What they were last judged on.
        self.judged_on: dict[PodUid, Moment] = {}


class Renewals:
    """Compares what parked pods were told with what holds them back now, in steps."""

    def __init__(
        self,
        state: CoreState,
        cycle: Cycle,
        *,
        post_filter: PostFilter,
        waker: Waker,
        audit: ParkedAudit,
    ) -> None:
        self._state = state
        self._cache = state.cache
        self._queue = state.queue
        self._meter = state.meter
        self._judgements = state.renewals.judgements
        self._tellings = state.renewals.tellings
        self._cycle = cycle
        self._post_filter = post_filter
        self._waker = waker
        self._audit = audit
        self._promised = _Promised()
        self._round: deque[Peers | _Promised] = deque()
        self._turns = 0
        # Ticks before an unfinished round is begun anew.
        self._pauses = 0
        # Nothing more may be done before the next tick.
        self._is_spent = False
        # What was there when the present round began, and the last one that left nothing to do.
        self._begun_on: tuple[Moment, int] | None = None
        self._done_with: tuple[Moment, int] | None = None
        self._is_owing = False

    @property
    def is_due(self) -> bool:
        return bool(self._round) and not self._is_spent

    # Rounds

    def begin(self, *, now: float) -> None:
        """Start a round if something has changed, or a pod is owed something."""
        self._is_spent = False
        rate = self._queue.renewals_per_second
        if not rate:
            self._round.clear()
            return
        self._judgements.at(now, JUDGED_PER_SECOND)
        self._tellings.at(now, rate)
        if not self._round and self._done_with == self._as_of():
            return
        if self._round and self._pauses:
            self._pauses -= 1
            return
        groups: list[Peers | _Promised] = list(self._queue.parked.peers())
        for peers in groups:
            if isinstance(peers, Peers):
                peers.look_again()
        self._promised.left = deque(self._promised_pods())
        groups.append(self._promised)
        groups.sort(key=lambda group: group.turn)
        self._pauses = len(groups) // SORTED_PER_SECOND
        self._round = deque(groups)
        self._begun_on = self._as_of()
        self._is_owing = False

    def step(self, *, now: float) -> None:
        work = 0.0
        while self._round and not self._is_spent:
            if work >= WORK_PER_STEP:
                break
            group = self._round.popleft()
            if isinstance(group, Peers):
                work += self._judge(group, now=now)
                work += self._tell(group, now=now)
            else:
                work += self._judge_promised(group, now=now)
        if self._begun_on is not None and not self._round:
            # What changed meanwhile, some of them have not been judged on.
            self._done_with = None if self._is_owing else self._begun_on
            self._begun_on = None

    def rewind(self) -> None:
        """Let everything be looked at again from the start."""
        self._round.clear()
        self._promised = _Promised()
        self._turns = self._pauses = 0
        self._begun_on = self._done_with = None
        for peers in self._queue.parked.peers():
            peers.forget()

    def _as_of(self) -> tuple[Moment, int]:
        return self._cache.moment, self._queue.parked.arrivals

    def _stop(self, group: Peers | _Promised) -> None:
        """Go on with a group at the next tick, when it still is its turn."""
        self._is_spent = True
        self._round.appendleft(group)

    def _had_its_turn(self, group: Peers | _Promised) -> None:
        self._turns += 1
        group.turn = self._turns

    # Judging

    def _judge(self, peers: Peers, *, now: float) -> float:
        """Find out what holds peers back; return what that cost."""
        state = self._cache.moment
        if peers.judged_on == state:
            return 0.0
        queued = next(filter(self._is_plain, peers), None)
        if queued is None:
            peers.judged_on = state
            return 0.0
        if self._judgements.is_spent:
            self._stop(peers)
            return 0.0
        return self._judge_one(queued, peers, now=now)

    def _judge_one(self, queued: QueuedPod, peers: Peers | None, *, now: float) -> float:
        """Judge a pod, for all its peers if there are; wake those that an attempt would help."""
        profile = self._state.profiles[queued.pod.spec.scheduler_name]
        spec = self._queue.parked.group_of(queued).spec
        price = 1.0 if spec.price < DEAR else spec.price / ORDINARY
        self._judgements.spend(price)
        try:
            with queued.view.asking(spec.questions):
                found = self._cycle.diagnose(profile, queued)
                room, work = None, 0
                if isinstance(found, NoNode):
                    room, work = self._post_filter.would(profile, queued, found)
        except (PluginError, QuantityError):
            # Let the pod's own attempt meet the error: there it is reported.
            self._wake((queued,) if peers is None else tuple(peers), now=now)
            return price
        cost = work / UNITS_PER_JUDGEMENT
        self._judgements.spend(cost)
        if fresh := spec.regroup(self._cache):
            # The pod was asked something new, and not all of its peers answer like it: which pods
            # are peers is another question now.
            self._waker.regrouped(fresh)
            self._round.clear()
            self._is_owing = True
            return price + cost
        pods = (queued,) if peers is None else tuple(peers)
        if not isinstance(found, NoNode):
            if not self._waker.is_due:
                # It fits, and waking has not found that.
                self._audit.report(queued, found)
            self._wake(pods, now=now)
        elif room is None:
            # The search goes on at the next tick, from where it has come to.
            self._meter.reason_renewed("search_put_off")
            self._is_owing = True
        elif room.nominated or (peers is None and room.nominated is not None):
            self._wake(pods, now=now)
        elif peers is not None:
            message = rejection(found, room)
            rejectors = found.diagnosis.rejectors
            peers.found(message, digest_of(message), rejectors, self._cache.moment)
            self._queue.parked.group_of(queued).blame(rejectors)
        return price + cost

    def _wake(self, pods: tuple[QueuedPod, ...], *, now: float) -> None:
        """Let pods be tried, unless waking has yet to look whether it does that itself."""
        self._is_owing = True
        if self._waker.is_due:
            return
        for queued in pods[:WOKEN_PER_TURN]:
            self._meter.reason_renewed("woken")
            self._queue.wake(queued, DIAGNOSIS_CHANGE, now=now)

    # Pods that are promised a node

    def _promised_pods(self) -> Iterator[PodUid]:
        parked, known = self._queue.parked, self._promised.judged_on
        uids = [PodUid(pod.metadata.uid) for _, pod in self._cache.nominations.entries()]
        self._promised.judged_on = {uid: known[uid] for uid in uids if uid in known}
        return (uid for uid in uids if uid in parked)

    def _judge_promised(self, promised: _Promised, *, now: float) -> float:
        """Wake those whose promise can't be kept; return what that cost."""
        cost = 0.0
        while promised.left and cost < TOLD_PER_TURN:
            state = self._cache.moment
            queued = self._queue.get(promised.left[0])
            is_ours = queued is not None and queued.uid in self._queue.parked
            if queued is None or not is_ours or not self._is_renewable(queued):
                promised.left.popleft()
                continue
            if promised.judged_on.get(queued.uid) == state:
                promised.left.popleft()
                continue
            if self._judgements.is_spent:
                self._stop(promised)
                return cost
            promised.left.popleft()
            promised.judged_on[queued.uid] = state
            cost += self._judge_one(queued, None, now=now)
        self._had_its_turn(promised)
        if promised.left:
            self._round.append(promised)
        return cost

    # Telling

    def _is_renewable(self, queued: QueuedPod) -> bool:
        """Return whether what a pod says of itself is ours to renew."""
        return (
            queued.told != 0
            and queued.pod.metadata.deletion_timestamp is None
            and not self._post_filter.is_awaited_by(queued.uid)
        )

    def _is_plain(self, queued: QueuedPod) -> bool:
        """Return whether the same goes for a pod as for its peers: it is promised nothing."""
        promised = self._cache.nominations.node_of(queued.uid)
        return promised is None and self._is_renewable(queued)

    def _tell(self, peers: Peers, *, now: float) -> float:
        """Tell some pods what holds them back now; return what looking for them cost."""
        if self._is_spent:
            return 0.0
        looked_at = told = 0
        while (queued := peers.first_unseen) is not None:
            if looked_at >= LOOKED_AT_PER_TURN or told >= TOLD_PER_TURN:
                self._round.append(peers)
                break
            looked_at += 1
            if queued.told == peers.digest or not peers.digest or not self._is_plain(queued):
                peers.seen(queued)
            elif now < queued.renewable_at - (POD_BURST - 1) * POD_SECONDS:
                self._meter.reason_renewed("pod_put_off")
                peers.owing = self._is_owing = True
                peers.seen(queued)
            elif self._tellings.is_spent:
                # It keeps its turn; others may have to be woken.
                self._meter.reason_renewed("put_off")
                self._is_owing = True
                return looked_at / LOOKED_AT_PER_JUDGEMENT
            else:
                self._tellings.spend(1.0)
                told += 1
                peers.seen(queued)
                self._renew(queued, peers, now=now)
        self._had_its_turn(peers)
        return looked_at / LOOKED_AT_PER_JUDGEMENT

    def _renew(self, queued: QueuedPod, peers: Peers, *, now: float) -> None:
        queued.told = peers.digest
        queued.renewable_at = max(queued.renewable_at, now) + POD_SECONDS
        self._queue.rejudged(queued, peers.rejectors)
        self._meter.reason_renewed("told")
        tell_failure(
            self._state.out,
            queued.pod,
            attempt=queued.attempts,
            reason=UNSCHEDULABLE,
            message=peers.message,
            is_news=True,
        )
