"""Which fault meets which request.

The n-th request of a class gets the same draw whenever the seed is the same, whatever requests of
other classes come in between: a run can't be repeated to the millisecond, but the luck of it can.
"""

import random
import threading
from collections import Counter
from collections.abc import Sequence

from testbed.proxy.faults import Fault, RequestClass, Rule


class Chooser:
    """Draws faults by rules that may be exchanged at any time, from any thread."""

    def __init__(self, seed: int | str) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._rules: tuple[Rule, ...] = ()
        self._seen: Counter[RequestClass] = Counter()
        self._used: Counter[int] = Counter()
        self._expired: set[str] = set()

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Put these rules in force in place of those before; limits count anew."""
        with self._lock:
            self._rules = tuple(rules)
            self._used = Counter()

    def is_in_force(self, rule: Rule) -> bool:
        """Whether a rule that was drawn may still strike."""
        with self._lock:
            return any(rule is each for each in self._rules)

    def expire(self, token: str) -> None:
        """Refuse this bearer token from now on."""
        with self._lock:
            self._expired.add(f"Bearer {token}")

    def choose(
        self, kind: RequestClass, *, target: str = "", authorization: str = ""
    ) -> tuple[Rule, random.Random]:
        """Return what happens to a request, and the draw that says how; see `NOTHING`."""
        with self._lock:
            draw = random.Random(f"{self._seed}/{kind}/{self._seen[kind]}")
            self._seen[kind] += 1
            if authorization in self._expired:
                return EXPIRED, draw
            for number, rule in enumerate(self._rules):
                if draw.random() >= rule.probability or not rule.concerns(kind, target):
                    continue
                if rule.limit and self._used[number] >= rule.limit:
                    continue
                self._used[number] += 1
                return rule, draw
        return NOTHING, draw


EXPIRED = Rule(fault=Fault.EXPIRED)
# A rule that touches nothing: passing on zero seconds later.
NOTHING = Rule(fault=Fault.LATENCY, seconds=0.0)
