"""What the scheduling queue promises, as one dictionary: every pod has one place and one story.

Nothing is indexed and nothing is sorted ahead: whatever is asked for is looked up in all pods.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from k8s_scheduler.api.pod import Pod
from tests.builders import make_pod

ACTIVE, BACKOFF, PARKED, GATED = "active", "backoff", "unschedulable", "gated"
PLACES = (ACTIVE, BACKOFF, PARKED, GATED)
# With the engine, or popped too early and waiting to be brought back (the latter counts as active).
POPPED = "popped"

# By failures in a row: how long a pod waits after them.
BACKOFF_SECONDS = (1, 2, 4, 8, 10)
PARKED_AT_MOST_SECONDS = 300


@dataclass(frozen=True)
class Facts:
    """What a pod of these histories is made from."""

    uid: str
    app: str
    cpu: str
    priority: int
    scheduler: str
    gated: bool
    namespace: str = "default"
    version: int = 0

    def pod(self) -> Pod:
        """Return it as the watch shows it."""
        pod = (
            make_pod(self.uid)
            .namespace(self.namespace)
            .uid(self.uid)
            .label(app=self.app)
            .request(cpu=self.cpu)
        )
        pod.priority(self.priority).scheduler(self.scheduler).version(self.version)
        if self.gated:
            pod.gate("wait")
        found: Pod = pod.obj()
        return found

    @property
    def shape(self) -> tuple[str, ...]:
        """What judging can see of it."""
        return self.app, self.cpu, self.scheduler


@dataclass
class Entry:
    """A pod, and all that happened to it."""

    facts: Facts
    timestamp: float
    place: str = ACTIVE
    aside: bool = False
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    rejectors: tuple[str, ...] = ()
    expiry: float = 0.0
    first_active: float | None = None
    flushed: bool = False


class QueueModel:
    """All pods that are neither bound nor gone."""

    def __init__(
        self, order: Callable[[Pod, float], tuple[float, ...]], max_attempts: int | None
    ) -> None:
        self._order = order
        self._max_attempts = max_attempts
        self.entries: dict[str, Entry] = {}
        # Whose victims are still being told to leave.
        self.held: set[str] = set()
        # Namespaces that are passed over.
        self.held_back: tuple[str, ...] = ()
        self._backoff_flushed = self._parked_flushed = 0.0

    # Reading

    def within(self, place: str) -> list[str]:
        """Return who is in a place."""
        return [uid for uid, entry in self.entries.items() if entry.place == place]

    def counts(self) -> dict[str, int]:
        """Return how many pods wait in each place."""
        return {place: len(self.within(place)) for place in PLACES}

    def rejected_by(self) -> Counter[tuple[str, str]]:
        """Return how many waiting pods each plugin of each profile has rejected."""
        return Counter(
            (plugin, entry.facts.scheduler)
            for entry in self.entries.values()
            if entry.place != POPPED
            for plugin in entry.rejectors
        )

    def next_ones(self) -> list[str]:
        """Return who may be popped now: several only if the order does not tell them apart."""
        free = {u: e for u, e in self.entries.items() if not self.is_held_back(u)}
        keys = {u: self.key(e) for u, e in free.items() if e.place == ACTIVE and not e.aside}
        if not keys:
            rejected = {u: free[u] for u in self.rejected() if u in free}
            keys = {uid: (entry.expiry, *self.key(entry)) for uid, entry in rejected.items()}
        first = min(keys.values(), default=())
        return [uid for uid, key in keys.items() if key == first]

    def rejected(self) -> list[str]:
        """Return who may be tried before its backoff is over."""
        return [uid for uid in self.within(BACKOFF) if not self.entries[uid].errors]

    def is_held_back(self, uid: str) -> bool:
        """Return whether a pod is passed over."""
        return self.entries[uid].facts.namespace in self.held_back

    def pass_over(self, uid: str, popped: str | None) -> None:
        """A rejected pod that was first in line and is held back waits as an active one."""
        entry = self.entries[uid]
        assert self.is_held_back(uid)
        assert entry.place == BACKOFF
        assert not entry.errors
        assert not any(
            e.place == ACTIVE and not e.aside and not self.is_held_back(u)
            for u, e in self.entries.items()
        )
        if popped is not None:
            first = self.entries[popped]
            assert (entry.expiry, *self.key(entry)) <= (first.expiry, *self.key(first))
        entry.place = ACTIVE

    def key(self, entry: Entry) -> tuple[float, ...]:
        """Return a pod's rank."""
        return self._order(entry.facts.pod(), entry.timestamp)

    # The watch

    def add(self, facts: Facts, now: float) -> None:
        """A new pod."""
        entry = self.entries[facts.uid] = Entry(facts, now)
        if facts.gated:
            entry.place = GATED
        else:
            entry.first_active = now

    def update(self, facts: Facts, now: float) -> None:
        """A new version of a pod, wherever it is."""
        entry = self.entries[facts.uid]
        before, entry.facts = entry.facts, facts
        entry.aside = False
        if entry.place == GATED or (entry.place == PARKED and before.shape != facts.shape):
            self._again(entry, now)

    def remove(self, uid: str) -> None:
        """A pod is gone, or bound."""
        del self.entries[uid]
        self.held.discard(uid)

    # The engine

    def pop(self, uid: str) -> None:
        """A pod is tried."""
        entry = self.entries[uid]
        entry.place = POPPED
        entry.attempts += 1

    def set_aside(self, uid: str) -> None:
        """A pod was popped too early."""
        entry = self.entries[uid]
        entry.place, entry.aside = ACTIVE, True
        entry.attempts -= 1

    def bring_back(self, scheduler: str) -> None:
        """Those that were set aside may be popped."""
        for entry in self.entries.values():
            if entry.facts.scheduler == scheduler:
                entry.aside = False

    def reject(self, uid: str, rejectors: tuple[str, ...], now: float) -> None:
        """No node takes a pod."""
        entry = self._ended(uid, now)
        entry.rejections += 1
        entry.errors = 0
        entry.place, entry.rejectors = PARKED, rejectors

    def fail(self, uid: str, now: float) -> bool:
        """An attempt ended in an error; return whether the pod is tried again by itself."""
        entry = self._ended(uid, now)
        entry.errors += 1
        again = self._max_attempts is None or entry.attempts < self._max_attempts
        entry.place = BACKOFF if again else PARKED
        entry.rejectors = () if again else ("PodMaxAttempts",)
        entry.expiry = self._expiry(entry)
        return again

    def wake(self, uid: str, now: float) -> None:
        """Something helps a parked pod."""
        self._again(self.entries[uid], now)

    def activate(self, uid: str, now: float) -> None:
        """A pod is to be tried at once."""
        entry = self.entries[uid]
        if entry.place not in (ACTIVE, POPPED):
            self._again(entry, now, at_once=True)

    def look_again(self, uid: str, now: float) -> None:
        """What held a pod back may be over."""
        entry = self.entries[uid]
        if entry.place == GATED:
            self._again(entry, now)

    def forget_what_no_checkpoint_keeps(self) -> None:
        """A new core takes over."""
        for entry in self.entries.values():
            entry.aside = entry.flushed = False

    # Time

    def tick(self, now: float) -> None:
        """Time has passed."""
        if now - self._backoff_flushed >= 1:
            self._backoff_flushed = now
            for uid in self.within(BACKOFF):
                entry = self.entries[uid]
                if entry.expiry < math.floor(now):
                    entry.place = ACTIVE
        if now - self._parked_flushed >= 30:
            self._parked_flushed = now
            for uid in self.within(PARKED):
                entry = self.entries[uid]
                if now - entry.timestamp > PARKED_AT_MOST_SECONDS:
                    entry.flushed = True
                    self._again(entry, now)

    # Moves

    def _ended(self, uid: str, now: float) -> Entry:
        entry = self.entries[uid]
        entry.timestamp, entry.flushed = now, False
        return entry

    def _again(self, entry: Entry, now: float, *, at_once: bool = False) -> None:
        if entry.facts.gated or entry.facts.uid in self.held:
            entry.place = GATED
            return
        entry.expiry = self._expiry(entry)
        over = at_once or entry.expiry < math.floor(now)
        entry.place = ACTIVE if over else BACKOFF
        if entry.first_active is None:
            entry.first_active = now

    @staticmethod
    def _expiry(entry: Entry) -> float:
        failures = entry.errors or entry.rejections
        if not failures:
            return 0.0
        wait = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1]
        return math.floor(entry.timestamp + wait)


def changed(facts: Facts, *, app: str, priority: int, ungate: bool) -> Facts:
    """Return a newer version of a pod; gates only ever go."""
    return replace(
        facts,
        app=app,
        priority=priority,
        gated=facts.gated and not ungate,
        version=facts.version + 1,
    )
