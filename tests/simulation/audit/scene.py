"""Where the auditor stands while it goes through a history: what is true, and who knows what."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.audit.views import View
from tests.simulation.history import (
    Answered,
    Call,
    Changed,
    Entry,
    Executed,
    Happened,
    Sent,
    SetBack,
    Shown,
)
from tests.simulation.plan import Plan
from tests.simulation.server import LEASES, NODES, PODS

BIND, CONDITION, EVICT, VOLUME, LEASE, EVENT, READ = (
    "bind",
    "condition",
    "evict",
    "volume",
    "lease",
    "event",
    "read",
)
# What a process may write only while it leads.
GUARDED = frozenset({BIND, CONDITION, EVICT, VOLUME})


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken."""

    at: float
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.at:.3f} s: {self.rule}: {self.what}"


@dataclass(slots=True)
class Bound:
    """Where a pod was bound, by whom, when."""

    node: str
    by: str
    at: float


@dataclass(slots=True)
class Scene:
    """The truth so far, and every client's view of it."""

    plan: Plan
    at: float = 0.0
    pods: dict[str, Json] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)
    bound: dict[str, Bound] = field(default_factory=dict)
    # The nodes that a pod was ever bound to: a restored storage undoes bindings.
    ever_bound: dict[str, list[str]] = field(default_factory=dict)
    # When a pod or node last changed, by uid and by name.
    changed_at: dict[str, float] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    calm_at: float | None = None
    _bodies: dict[int, Any] = field(default_factory=dict)

    def view(self, client: str) -> View:
        found = self.views.get(client)
        if found is None:
            found = self.views[client] = View()
        return found

    def body(self, call: Call) -> Any:
        """Return what a call brought along."""
        if call.number not in self._bodies:
            self._bodies[call.number] = call.request.json()
        return self._bodies[call.number]

    def break_rule(self, rule: str, what: str) -> None:
        self.violations.append(Violation(self.at, rule, what))

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def feed(self, entry: Entry) -> None:
        """Let an entry become part of what is true or known."""
        self.at = entry.at
        if isinstance(entry, Shown):
            self.view(entry.client).shown(entry)
        elif isinstance(entry, Changed):
            self._change(entry)
        elif isinstance(entry, Answered):
            self._learn(entry.at, entry.call)
        elif isinstance(entry, Happened) and entry.what == "calm":
            self.calm_at = entry.at
        elif isinstance(entry, SetBack):
            self._set_back(entry)

    def _learn(self, at: float, call: Call) -> None:
        """Let a client know what an answer tells."""
        if call.page and call.answer == 200:
            self.view(call.client).listed(at, call)
        elif kind_of(call) == READ:
            self.view(call.client).read(call, self.pods)

    def _set_back(self, entry: SetBack) -> None:
        self.pods = {doc.uid_of(pod): pod for pod in entry.pods}
        self.nodes = {node["metadata"]["name"]: node for node in entry.nodes}
        on_node = {uid: doc.node_of(pod) for uid, pod in self.pods.items() if doc.node_of(pod)}
        self.bound = {
            uid: known
            if (known := self.bound.get(uid)) and known.node == node
            # As it was bound before, by whomever.
            else Bound(node, "cluster", entry.at)
            for uid, node in on_node.items()
        }
        self.changed_at = dict.fromkeys((*self.pods, *self.nodes), entry.at)

    def _change(self, entry: Changed) -> None:
        change = entry.change
        path, content = change.location.list_path, change.content
        if path == NODES:
            self.changed_at[content["metadata"]["name"]] = entry.at
            self._put(self.nodes, content["metadata"]["name"], change.kind, content)
        elif path == PODS:
            uid = doc.uid_of(content)
            self._put(self.pods, uid, change.kind, content)
            self.changed_at[uid] = entry.at
            node = doc.node_of(content)
            if node and uid not in self.bound:
                self.bound[uid] = Bound(node, entry.by, entry.at)
                self.ever_bound.setdefault(uid, []).append(node)

    @staticmethod
    def _put(table: dict[str, Json], key: str, kind: str, content: Json) -> None:
        if kind == "DELETED":
            table.pop(key, None)
        else:
            table[key] = content


class Check:
    """A family of rules; each is told of every entry it has a method for."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def sent(self, call: Call) -> None: ...

    def executed(self, call: Call) -> None: ...

    def answered(self, call: Call) -> None: ...

    def happened(self, entry: Happened) -> None: ...

    def set_back(self, entry: SetBack) -> None: ...

    def finish(self) -> None: ...


class Audience:
    """Passes entries on to the checks that have something to say to them."""

    def __init__(self, checks: "list[Check]") -> None:
        self._of_calls: dict[type[Entry], list[Callable[[Any], None]]] = {
            Sent: _listening(checks, "sent"),
            Executed: _listening(checks, "executed"),
            Answered: _listening(checks, "answered"),
        }
        self._happened = _listening(checks, "happened")
        self._set_back = _listening(checks, "set_back")

    def tell(self, entry: Entry) -> None:
        """Pass an entry on; what was changed and shown is part of the scene, and that is all."""
        if isinstance(entry, Sent | Executed | Answered):
            for check in self._of_calls[type(entry)]:
                check(entry.call)
        elif isinstance(entry, Happened):
            for check in self._happened:
                check(entry)
        elif isinstance(entry, SetBack):
            for check in self._set_back:
                check(entry)


def _listening(checks: "list[Check]", name: str) -> list[Callable[[Any], None]]:
    """Return the methods of this name, of the checks that have one of their own."""
    silent = getattr(Check, name)
    return [getattr(check, name) for check in checks if getattr(type(check), name) is not silent]


def kind_of(call: Call) -> str:
    """Say what a call is about."""
    if not call.kind:
        call.kind = _kind_of(call)
    return call.kind


def _kind_of(call: Call) -> str:
    method, path = call.request.method, call.request.path
    if path.startswith(LEASES.rsplit("/", 1)[0]):
        return LEASE
    if "/events" in path:
        return EVENT
    if method == "GET":
        return READ
    if path.endswith("/binding"):
        return BIND
    if "/pods/" in path:
        return EVICT if method == "DELETE" else CONDITION
    return VOLUME


def is_doubtful(answer: int | str | None) -> bool:
    """Return whether, after this answer, a write may have been done or not."""
    return (
        answer is None
        or answer == "unknown"
        or (isinstance(answer, int) and (answer >= 500 or answer == 408))
    )
