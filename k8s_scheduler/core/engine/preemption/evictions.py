"""Preemptions under way: who has to leave for whom, and how far that has come.

        promises to lesser pods taken back ─▶ all victims but the last ─▶ the last ─▶ answered
                                             └─ one can't be evicted                    │
                                                │         all that leave were seen to  │
                                                ▼                                       ▼
                                              over, the pod is tried again  ◀──────── over

While it lasts, the pod is kept out of the queue's reach: trying it before its victims are known to
leave would only preempt more. The last victim goes alone so that the pod can't be told that all is
done before it is. Once the pod is gone or bound nobody else is asked to leave for it;
kube-scheduler would finish what it began.

No victim is evicted twice. From the request until the watch shows it leaving, whoever else needs
its place waits with the one who asked first.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from k8s_scheduler.api.meta import NodeName, PodUid
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.engine.in_flight import Flight
from k8s_scheduler.core.engine.metering.meter import Meter
from k8s_scheduler.core.engine.numbering import Numbers
from k8s_scheduler.core.engine.outbox import Outbox
from k8s_scheduler.core.engine.preemption.eviction import Eviction, in_memory, preempted, reference
from k8s_scheduler.core.messages.checkpoint import EvictionEntry
from k8s_scheduler.core.messages.incoming import VICTIM_GONE, RequestResult
from k8s_scheduler.core.messages.outgoing import ClearNomination, Evict, PodReference

_LAST: Final = 2


class Ground(Protocol):
    """Where victims are, as far as is known."""

    def is_staying(self, uid: PodUid) -> bool:
        """Return whether a pod is there and not on its way out."""
        ...

    def wants_place(self, uid: PodUid) -> bool:
        """Return whether a pod is still there without a node of its own."""
        ...

    def on_its_way(self, uid: PodUid) -> Flight | None:
        """Return the flight of a pod that is not being bound yet."""
        ...

    def send_back(self, flight: Flight, *, plugin: str, now: float) -> None:
        """End such a flight: a plugin gives its place to another pod."""
        ...


class Evictions:
    """All preemptions under way, by the pod they are for."""

    def __init__(self, numbers: Numbers, meter: Meter, *, out: Outbox) -> None:
        # Of one pod there may be several: a late answer holds nobody back who sees it has worked.
        self._evictions: dict[PodUid, list[Eviction]] = {}
        self._by_victim: dict[PodUid, list[Eviction]] = {}
        self._numbers = numbers
        self._meter = meter
        self._out = out
        self._ground: Ground | None = None
        # Victims that were asked to leave without an answer yet, and those of which the server has
        # said that they leave and the watch has not. Dicts stand for ordered sets.
        self._asked: dict[PodUid, None] = {}
        self._granted: dict[PodUid, None] = {}
        # Their pods are looked at when everything that a message brings is known.
        self._ended: list[Eviction] = []

    def connect(self, ground: Ground) -> None:
        """Say where victims are; before the first preemption."""
        self._ground = ground

    def start(
        self,
        pod: Pod,
        *,
        attempt: int,
        node: NodeName,
        plugin: str,
        others: Iterable[Pod],
        victims: Iterable[Pod],
        now: float,
    ) -> None:
        """Begin; there is somebody who has to leave."""
        leaving = tuple(victims)
        metadata = pod.metadata
        eviction = Eviction(
            uid=PodUid(metadata.uid),
            attempt=attempt,
            namespace=metadata.namespace,
            name=metadata.name,
            scheduler_name=pod.spec.scheduler_name,
            node=node,
            plugin=plugin,
            others=tuple(map(reference, others)),
            victims=tuple(map(reference, leaving)),
            generations=tuple(victim.metadata.generation for victim in leaving),
        )
        self._keep(eviction)
        self._advance(eviction, now=now)

    # What happens

    def answered(self, result: RequestResult) -> None:
        """Take an answer; other attempts' answers are nobody's."""
        eviction = self._of(result)
        if eviction is None:
            return
        about = eviction.requests.pop(result.request)
        victim = next((v for v in eviction.victims if v.uid == about), None)
        if victim is not None:
            self._victim_answered(eviction, victim, result)
        elif not result.done:
            # A promise that can't be taken back from a status is no reason to stop.
            eviction.failed = True
        if not eviction.is_waiting:
            self._go_on(eviction, now=result.now)

    def _victim_answered(
        self, eviction: Eviction, victim: PodReference, result: RequestResult
    ) -> None:
        uid = victim.uid
        del self._asked[uid]
        joined = [other for other in self._by_victim[uid] if uid in other.joined]
        if not result.done:
            for failed in (eviction, *joined):
                failed.failed = failed.stopped = True
        else:
            if self._on_ground.is_staying(uid):
                self._granted[uid] = None
            if result.message != VICTIM_GONE:
                self._out.append(preempted(victim, eviction))
        for other in joined:
            del other.joined[uid]
            if not other.is_waiting:
                self._go_on(other, now=result.now)

    def saw_leave(self, uid: PodUid) -> list[PodUid]:
        """Take note that the watch has shown a pod leaving; return who waited for its sight."""
        concerned = self._by_victim.get(uid)
        self._granted.pop(uid, None)
        if concerned is None:
            return []
        for eviction in list(concerned):
            if eviction.is_answered:
                self._end_if_seen(eviction)
        return [e.uid for e in self._by_victim.get(uid, ()) if not self.is_under_way(e.uid)]

    def doubt_grants(self) -> None:
        """Wait no longer for victims that stay: storage was set back to before their deletion.

        Those for whom they were to leave are tried again, as after any failure.
        """
        for uid in [uid for uid in self._granted if self._on_ground.is_staying(uid)]:
            del self._granted[uid]
            for eviction in list(self._by_victim.get(uid, ())):
                eviction.failed = True
                if eviction.is_answered:
                    self._end_if_seen(eviction)

    # What is so

    def owns(self, result: RequestResult) -> bool:
        """Return whether an answer is about a preemption."""
        return self._of(result) is not None

    def is_under_way(self, uid: PodUid) -> bool:
        """Return whether a pod has to wait until its victims are known to leave."""
        return any(map(self._holds_back, self._evictions.get(uid, ())))

    def _holds_back(self, eviction: Eviction) -> bool:
        if eviction.stage < _LAST or self._is_unseen(eviction):
            return True
        # That the last one leaves may be seen before it is answered.
        return eviction.is_waiting and self._on_ground.is_staying(eviction.victims[-1].uid)

    def _is_unseen(self, eviction: Eviction) -> bool:
        return any(victim.uid in self._granted for victim in eviction.victims)

    def take_ended(self) -> list[Eviction]:
        """Return the preemptions that have come to their end, each once."""
        ended, self._ended = self._ended, []
        return ended

    # Checkpoints

    def entries(self) -> tuple[EvictionEntry, ...]:
        """Return all of them as checkpoint data."""
        return tuple(e.entry() for found in self._evictions.values() for e in found)

    @property
    def granted(self) -> tuple[PodUid, ...]:
        """The victims of which the server has said that they leave, and the watch has not."""
        return tuple(self._granted)

    def restore(self, entry: EvictionEntry) -> None:
        """Put a preemption where a checkpoint says it was."""
        eviction = Eviction.from_entry(entry)
        self._keep(eviction)
        asked = set(eviction.requests.values())
        self._asked |= dict.fromkeys(v.uid for v in eviction.victims if v.uid in asked)

    def restore_granted(self, granted: Iterable[PodUid]) -> None:
        """Take over who is known to leave and was not seen to."""
        self._granted |= dict.fromkeys(granted)

    # Stages

    def _go_on(self, eviction: Eviction, *, now: float) -> None:
        """Ask for what comes next, unless nobody needs the place any more."""
        if not self._on_ground.wants_place(eviction.uid):
            eviction.stopped = True
        self._advance(eviction, now=now)

    def _advance(self, eviction: Eviction, *, now: float) -> None:
        """Ask for what comes next; a stage with nothing to do is over at once."""
        while not eviction.is_waiting and not eviction.stopped and eviction.stage < _LAST:
            eviction.stage += 1
            if eviction.stage == 0:
                self._take_back(eviction)
                continue
            last = len(eviction.victims) - 1
            for index in range(last) if eviction.stage < _LAST else (last,):
                self._make_leave(eviction, index, now=now)
        if not eviction.is_waiting:
            eviction.is_answered = True
            self._meter.preemption_ended(failed=eviction.failed)
            self._end_if_seen(eviction)

    def _take_back(self, eviction: Eviction) -> None:
        for other in eviction.others:
            clearing = ClearNomination(
                uid=eviction.uid,
                namespace=eviction.namespace,
                name=eviction.name,
                attempt=eviction.attempt,
                request=self._request(eviction, other),
                other=other,
            )
            self._out.append(clearing)

    def _make_leave(self, eviction: Eviction, index: int, *, now: float) -> None:
        """Send a victim back that has no room on the API server yet; have any other deleted."""
        victim = eviction.victims[index]
        flight = self._on_ground.on_its_way(victim.uid)
        if flight is not None:
            eviction.last_in_memory = eviction.stage == _LAST
            self._out.append(in_memory(victim, eviction))
            self._on_ground.send_back(flight, plugin=eviction.plugin, now=now)
        elif victim.uid in self._asked:
            eviction.joined[victim.uid] = None
        elif victim.uid not in self._granted and self._on_ground.is_staying(victim.uid):
            # Whoever was seen to leave since it was chosen need not be asked again.
            self._asked[victim.uid] = None
            evict = Evict(
                uid=eviction.uid,
                namespace=eviction.namespace,
                name=eviction.name,
                attempt=eviction.attempt,
                request=self._request(eviction, victim),
                victim=victim,
                scheduler_name=eviction.scheduler_name,
                observed_generation=eviction.generations[index],
            )
            self._out.append(evict)

    def _request(self, eviction: Eviction, about: PodReference) -> int:
        number = self._numbers.next()
        eviction.requests[number] = about.uid
        return number

    # Keeping

    @property
    def _on_ground(self) -> Ground:
        if self._ground is None:
            raise RuntimeError("connect() comes before the first preemption")
        return self._ground

    def _of(self, result: RequestResult) -> Eviction | None:
        found = self._evictions.get(result.uid, ())
        return next((e for e in found if result.request in e.requests), None)

    def _keep(self, eviction: Eviction) -> None:
        self._evictions.setdefault(eviction.uid, []).append(eviction)
        for victim in eviction.victims:
            self._by_victim.setdefault(victim.uid, []).append(eviction)

    def _end_if_seen(self, eviction: Eviction) -> None:
        """End a preemption for which nothing more is asked; one that was given up does not wait."""
        if self._is_unseen(eviction) and not (eviction.failed or eviction.stopped):
            return
        _take_out(self._evictions, eviction.uid, eviction)
        for victim in eviction.victims:
            _take_out(self._by_victim, victim.uid, eviction)
        self._ended.append(eviction)


def _take_out(lists: dict[PodUid, list[Eviction]], uid: PodUid, eviction: Eviction) -> None:
    found = lists[uid]
    found.remove(eviction)
    if not found:
        del lists[uid]
