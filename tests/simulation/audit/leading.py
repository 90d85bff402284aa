"""Rules about who may write: one at a time, within its lease, having seen what came before."""

from dataclasses import dataclass, field

from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.audit.scene import (
    BIND,
    GUARDED,
    LEASE,
    READ,
    Check,
    Scene,
    is_doubtful,
    kind_of,
)
from tests.simulation.history import Call, SetBack

# How far a replica's clock may go wrong, and a grain of time.
_CLOCK_DRIFT = 0.002
_GRAIN_SECONDS = 0.01


@dataclass(slots=True)
class Leader:
    """What one process knows of its own lease, and what it has under way."""

    held_from: float = float("-inf")
    # The version of the write that made it the leader.
    barrier: int = 0
    term: int = 0
    under_way: dict[int, Call] = field(default_factory=dict)
    # The last thing asked about each pod that is being bound.
    asked: dict[str, Call] = field(default_factory=dict)


class Leading(Check):
    """See the module's docstring."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._leaders: dict[str, Leader] = {}
        self._holder = ""
        self._term = 0
        self._written_in_term = 0
        self._renewed_at = float("-inf")

    def sent(self, call: Call) -> None:
        kind, leader = kind_of(call), self._leader(call.client)
        if kind in GUARDED:
            leader.under_way[call.number] = call
            self._check_lease(call, leader)
            self._check_barrier(call, leader)
        pod = call.request.path.removesuffix("/binding")
        if kind == BIND or (kind == READ and self._is_in_doubt(leader, pod)):
            leader.asked[pod] = call
        if kind == LEASE and call.request.method == "PUT" and not self._named_holder(call):
            self._check_release(call, leader)

    def executed(self, call: Call) -> None:
        if kind_of(call) != LEASE or not call.done or call.request.method == "GET":
            return
        holder = self._named_holder(call)
        if holder and holder != self._holder:
            self._term += 1
            self._leader(_client(holder)).term = self._term
            self.scene.count("terms")
        self._holder = holder
        self._renewed_at = self.scene.at

    def answered(self, call: Call) -> None:
        leader = self._leader(call.client)
        leader.under_way.pop(call.number, None)
        if kind_of(call) != LEASE or call.request.method == "GET":
            return
        answer = call.answer
        if isinstance(answer, int) and answer < 300 and self._named_holder(call):
            if leader.held_from == float("-inf") or not leader.barrier:
                leader.barrier = call.storage_version
            leader.held_from = max(leader.held_from, call.sent_at)

    def set_back(self, entry: SetBack) -> None:
        self._holder = entry.holder
        for leader in self._leaders.values():
            leader.barrier = min(leader.barrier, entry.version)

    def finish(self) -> None:
        calm = self.scene.calm_at
        silent = self.scene.at - self._renewed_at
        settings = self.scene.plan.settings
        if calm is not None and not self._holder:
            self.scene.break_rule("somebody leads at the end", "the lease has no holder")
        elif silent > settings.lease_seconds:
            self.scene.break_rule("somebody leads at the end", f"no renewal for {silent:.1f} s")

    def _check_lease(self, call: Call, leader: Leader) -> None:
        renew = self.scene.plan.settings.renew_seconds
        deadline = leader.held_from + renew * (1 + _CLOCK_DRIFT) + _GRAIN_SECONDS
        if call.sent_at > deadline:
            late = call.sent_at - leader.held_from - renew
            self.scene.break_rule("no write after the deadline", f"{call}, {late:.3f} s late")
        if leader.term < self._written_in_term:
            self.scene.break_rule("two leaders never both write", f"{call} by a former leader")
        self._written_in_term = max(self._written_in_term, leader.term)

    def _check_barrier(self, call: Call, leader: Leader) -> None:
        view = self.scene.view(call.client)
        for name, table in (("pods", view.pods), ("nodes", view.nodes)):
            if table.version < leader.barrier:
                self.scene.break_rule(
                    "nothing decided before the barrier",
                    f"{call} on {name} of {table.version}, leading since {leader.barrier}",
                )

    def _check_release(self, call: Call, leader: Leader) -> None:
        if leader.under_way:
            first = next(iter(leader.under_way.values()))
            self.scene.break_rule("released after the drain", f"{call} while {first} is under way")
        for asked in leader.asked.values():
            if is_doubtful(asked.answer) and asked.number not in leader.under_way:
                self.scene.break_rule("released after the drain", f"{call}, {asked} in doubt")

    def _is_in_doubt(self, leader: Leader, pod: str) -> bool:
        """Whether a read is about a Binding; pods that were rejected on their node are read too."""
        before = leader.asked.get(pod)
        return before is not None and is_doubtful(before.answer)

    def _leader(self, client: str) -> Leader:
        found = self._leaders.get(client)
        if found is None:
            found = self._leaders[client] = Leader()
        return found

    def _named_holder(self, call: Call) -> str:
        return self.scene.body(call).get("spec", {}).get("holderIdentity") or ""


def _client(identity: str) -> str:
    """Return whose identity it is: `a_1` is the first life of replica a."""
    return identity.replace("_", "")


class Evictions(Check):
    """Nobody is evicted but for a more important pod, and by uid.

    An eviction begins with the victim's condition. What has begun is seen through, with all that
    has to be asked for again, whoever has gone meanwhile.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._begun: set[tuple[str, str]] = set()

    def sent(self, call: Call) -> None:
        method, path = call.request.method, call.request.path
        if "/pods/" not in path:
            return
        body = self.scene.body(call)
        if method == "PATCH" and _is_farewell(body):
            self._begin(call, body["metadata"]["uid"])
        elif method == "DELETE":
            uid = (body.get("preconditions") or {}).get("uid")
            self.scene.count("evictions")
            if uid is None:
                self.scene.break_rule("evictions name the uid", str(call))
            else:
                self._begin(call, uid)

    def answered(self, call: Call) -> None:
        if call.request.method == "DELETE" and not is_doubtful(call.answer):
            uid = (self.scene.body(call).get("preconditions") or {}).get("uid")
            self._begun.discard((call.client, uid))

    def _begin(self, call: Call, uid: str) -> None:
        victim = self.scene.pods.get(uid)
        if victim is None or (call.client, uid) in self._begun:
            return
        self._begun.add((call.client, uid))
        view = self.scene.view(call.client)
        important = max(
            (
                doc.priority_of(s.newest)
                for s in view.pods.objects.values()
                if doc.is_ours(s.newest) and doc.uid_of(s.newest) != uid
            ),
            default=0,
        )
        if important <= doc.priority_of(victim):
            self.scene.break_rule("evictions serve the more important", str(call))


def _is_farewell(body: Json) -> bool:
    """Whether a patch tells a pod that it has to leave."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "DisruptionTarget" for condition in conditions)
