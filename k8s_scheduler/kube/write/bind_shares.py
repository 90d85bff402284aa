"""What one namespace may take of the binding lane while binds of it are in doubt.

A bind in doubt waits for minutes, and the cause is often in its namespace alone: a fail-closed
webhook that is down makes the server answer 500 to every Binding there. Without a bound such binds
would fill the lane, and no pod would be bound any more. So a namespace is *suspect* as long as any
bind of it is in doubt, and while it is:

    limit                                        past it
    binds under way        PER_NAMESPACE         the caller is told to hand out no more pods of it
                                                 (`held`), until half of them have ended
    binds in doubt         PER_NAMESPACE         what was not sent yet ends as `held back`
    calls at the same time WORKERS_PER_NAMESPACE its binds wait for each other
    repetitions            RATE_PER_SECOND       they wait longer

and for all suspects together:

    binds in doubt         IN_ALL                no more pods are decided at all: that takes ten
                                                 namespaces in trouble, or a server in trouble
    calls at the same time WORKERS_IN_ALL        the other workers serve the other namespaces

Suspects take turns, so that one of them does not keep the others from being settled.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from k8s_scheduler.kube.write.bind_machine import BindMachine
from k8s_scheduler.lib.token_bucket import TokenBucket

PER_NAMESPACE: Final = 100
IN_ALL: Final = 1000
WORKERS_PER_NAMESPACE: Final = 8
WORKERS_IN_ALL: Final = 16
RATE_PER_SECOND: Final = 5.0
BURST: Final = 20.0


class _Suspect:
    """A namespace with binds in doubt."""

    __slots__ = ("bucket", "calling", "in_doubt", "ready")

    def __init__(self, now: float) -> None:
        self.in_doubt = 0
        # Calls under way, and binds that wait for their turn to make one.
        self.calling = 0
        self.ready: deque[BindMachine] = deque()
        self.bucket = TokenBucket(RATE_PER_SECOND, BURST, now)


class BindShares:
    """Counts binds by namespace, and chooses the next bind of the suspects."""

    def __init__(self, on_held: Callable[[tuple[str, ...]], None] = lambda _held: None) -> None:
        """Report every change of the namespaces of which no more pods should be handed out."""
        self._on_held = on_held
        self._under_way: Counter[str] = Counter()
        # First calls under way, of whatever namespace: each may leave a bind in doubt.
        self._first: Counter[str] = Counter()
        self._suspects: dict[str, _Suspect] = {}
        # In the order in which they became so; stands for an ordered set.
        self._held: dict[str, None] = {}
        self._calling = 0
        self.in_doubt = 0

    @property
    def held(self) -> tuple[str, ...]:
        return tuple(sorted(self._held))

    def is_suspect(self, namespace: str) -> bool:
        return namespace in self._suspects

    def is_full(self, namespace: str) -> bool:
        suspect = self._suspects.get(namespace)
        return suspect is not None and suspect.in_doubt + self._first[namespace] >= PER_NAMESPACE

    # The life of a bind

    def taken(self, namespace: str) -> None:
        self._under_way[namespace] += 1
        if namespace in self._suspects:
            self._look(namespace)

    def doubted(self, namespace: str, now: float) -> None:
        """Count a bind that is in doubt from now on."""
        suspect = self._suspects.get(namespace)
        if suspect is None:
            suspect = self._suspects[namespace] = _Suspect(now)
        suspect.in_doubt += 1
        self.in_doubt += 1
        self._look(namespace)

    def ended(self, namespace: str, *, in_doubt: bool) -> list[BindMachine]:
        """Count a bind that has ended; return those that need not wait for their turn any more."""
        self._under_way[namespace] -= 1
        if not self._under_way[namespace]:
            del self._under_way[namespace]
        freed: list[BindMachine] = []
        suspect = self._suspects.get(namespace)
        if suspect is None:
            return freed
        if in_doubt:
            suspect.in_doubt -= 1
            self.in_doubt -= 1
            if not suspect.in_doubt:
                del self._suspects[namespace]
                self._calling -= suspect.calling
                freed.extend(suspect.ready)
        self._look(namespace)
        return freed

    def pace_seconds(self, namespace: str, now: float) -> float:
        """Return the least wait before a bind in doubt is sent again."""
        suspect = self._suspects.get(namespace)
        if suspect is None:
            return 0.0
        return suspect.bucket.reserve(now, longest_seconds=float("inf")) or 0.0

    # Turns

    def line_up(self, bind: BindMachine) -> None:
        """Let a bind of a suspect namespace wait for its turn."""
        self._suspects[bind.request.namespace].ready.append(bind)

    def next(self) -> BindMachine | None:
        """Return the next bind of a suspect; None if none may go."""
        if self._calling >= WORKERS_IN_ALL:
            return None
        for namespace, suspect in self._suspects.items():
            if suspect.ready and suspect.calling < WORKERS_PER_NAMESPACE:
                # Move the namespace to the end of the line.
                self._suspects[namespace] = self._suspects.pop(namespace)
                return suspect.ready.popleft()
        return None

    @contextmanager
    def calling(self, namespace: str) -> Iterator[None]:
        """Count a worker for as long as it asks the server about a bind."""
        suspect = self._suspects.get(namespace)
        if suspect is None:
            yield
            return
        suspect.calling += 1
        self._calling += 1
        try:
            yield
        finally:
            suspect.calling -= 1
            if self._suspects.get(namespace) is suspect:
                self._calling -= 1

    @contextmanager
    def first_call(self, namespace: str) -> Iterator[None]:
        """Count a call that may leave a bind in doubt, until it is answered."""
        self._first[namespace] += 1
        try:
            yield
        finally:
            self._first[namespace] -= 1
            if not self._first[namespace]:
                del self._first[namespace]

    def _look(self, namespace: str) -> None:
        """Hold a namespace back, or release it, as its binds under way require."""
        under_way = self._under_way[namespace]
        if namespace in self._held:
            if namespace in self._suspects and under_way > PER_NAMESPACE // 2:
                return
            del self._held[namespace]
        elif namespace in self._suspects and under_way >= PER_NAMESPACE:
            self._held[namespace] = None
        else:
            return
        self._on_held(self.held)
