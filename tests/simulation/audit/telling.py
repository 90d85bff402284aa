"""Rules about what is told: events and conditions say what happened, and nothing else."""

from tests.fakes.transport import Json
from tests.simulation import documents as doc
from tests.simulation.audit.scene import BIND, CONDITION, EVENT, Check, Scene, kind_of
from tests.simulation.history import Call, Happened

# A binding in calm weather is told of within this time.
_TOLD_SECONDS = 8.0


class Telling(Check):
    """See the module's docstring."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._told: set[str] = set()
        self._gone: set[str] = set()
        self._deletes: set[tuple[str, str]] = set()
        self._writing: dict[int, tuple[str, str]] = {}
        self._preempted: list[tuple[float, Call, str]] = []

    def sent(self, call: Call) -> None:
        kind = kind_of(call)
        if kind == EVENT and call.request.method == "POST":
            self._check_event(call)
        elif call.request.method == "DELETE":
            uid = (self.scene.body(call).get("preconditions") or {}).get("uid", "")
            self._deletes.add((call.client, uid))
        elif kind == CONDITION and _is_failure(self.scene.body(call)):
            self._writing[call.number] = (call.client, self.scene.body(call)["metadata"]["uid"])
        elif kind == BIND:
            self._check_order(call)

    def answered(self, call: Call) -> None:
        self._writing.pop(call.number, None)

    def executed(self, call: Call) -> None:
        if kind_of(call) == EVENT and call.done:
            body = self.scene.body(call)
            if body.get("reason") == "Scheduled":
                self._told.add(body["regarding"]["uid"])
        if kind_of(call) == CONDITION and call.done:
            self._check_condition(call)

    def happened(self, entry: Happened) -> None:
        if entry.what == "killed" or entry.what.startswith("exit"):
            self._gone.add(entry.client)

    def finish(self) -> None:
        calm = self.scene.calm_at
        for uid, bound in self.scene.bound.items():
            if calm is None or bound.at < calm or bound.by == doc.FOREIGN or bound.by in self._gone:
                continue
            if self.scene.at - bound.at >= _TOLD_SECONDS and uid not in self._told:
                self.scene.break_rule("every binding is told", f"{uid} on {bound.node} is not")
        for at, call, uid in self._preempted:
            waited = self.scene.at - at
            told_of_deed = (call.client, uid) in self._deletes or call.client in self._gone
            if waited > 60.0 and not told_of_deed and uid in self.scene.pods:
                self.scene.break_rule("events tell what happened", f"{call}: {uid} is not evicted")

    def _check_event(self, call: Call) -> None:
        body = self.scene.body(call)
        uid, reason = body["regarding"]["uid"], body["reason"]
        if reason == "Scheduled":
            nodes = self.scene.ever_bound.get(uid, ())
            if not nodes:
                self.scene.break_rule("events tell what happened", f"{call}: {uid} is not bound")
            elif not any(body["note"].endswith(f" to {node}") for node in nodes):
                self.scene.break_rule(
                    "events tell what happened", f"{call}: {body['note']}, but on {nodes}"
                )
        elif reason == "Preempted" and uid in self.scene.bound:
            self._preempted.append((self.scene.at, call, uid))

    def _check_order(self, call: Call) -> None:
        """Whoever writes that a pod can't be placed waits for that before it places it."""
        uid = self.scene.body(call)["metadata"]["uid"]
        if (call.client, uid) in self._writing.values():
            self.scene.break_rule("conditions tell what happened", f"{call} overtakes a condition")

    def _check_condition(self, call: Call) -> None:
        """A pod that its own scheduler has bound is not called unschedulable by it afterwards."""
        body = self.scene.body(call)
        bound = self.scene.bound.get(body["metadata"]["uid"])
        if not _is_failure(body) or bound is None:
            return
        if bound.by == call.client and call.sent_at > bound.at:
            self.scene.break_rule("conditions tell what happened", f"{call} on a bound pod")
        else:
            self.scene.count("conditions that landed late")


def _is_failure(body: Json) -> bool:
    """Return whether a patch says that a pod was not placed."""
    conditions = body.get("status", {}).get("conditions") or ()
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


class Deeds(Check):
    """Counts what was done."""

    def answered(self, call: Call) -> None:
        if kind_of(call) == BIND and call.answer == 409:
            self.scene.count("bindings refused with 409")
