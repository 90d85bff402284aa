"""What two versions in turn must not do, judged by what the API server has and has audited.

Room is exact: the nodes of a phase hold its pods and not one more. A leader that does not know a
Binding of the one before overfills a node; one that counts a pod twice leaves another without a
node. The API server carries no second Binding out, so a pod that two leaders decided about is one
whose second Binding was refused.

A process that is killed leaves Bindings behind that the server carries out after its end: the log
has then no answer, or an error, and the pod has the node. Such a Binding counts if no other does.

Each process logs in with a token of its own, and the audit log names the token. So it is known
which of them bound each pod: their turns must not overlap, and each must have had one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from testbed.audit import COMPLETE, AuditEntry
from testbed.client import Object

_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class Phase:
    """One change of leaders: the leader, its successor, and which pods came meanwhile."""

    number: int
    leader: str
    successor: str
    pods: Sequence[str]
    # By the API server's own clock, which is the bed's: when the leader was told to end.
    signalled_at: str
    # How many of the pods had been asked for by then.
    asked_by_then: int


class Account:
    """Who bound what: the API server's log, with processes by their names."""

    def __init__(
        self, entries: Iterable[AuditEntry], processes: Mapping[str, str], pods: Iterable[Object]
    ) -> None:
        """`processes` are named by the ids of their tokens, as the log shows them."""
        self._processes = processes
        asked = [entry for entry in entries if entry.subresource == "binding"]
        answered = {entry.audit_id for entry in asked if entry.stage == COMPLETE}
        # Each once: by its answer, or by its arrival where there was none.
        self.bindings: Sequence[AuditEntry] = [
            entry for entry in asked if entry.stage == COMPLETE or entry.audit_id not in answered
        ]
        self.carried_out = [*self._counted(pods)]

    def _counted(self, pods: Iterable[Object]) -> Iterable[AuditEntry]:
        certain = [entry for entry in self.bindings if entry.is_successful_binding]
        yield from certain
        known = {entry.target_uid for entry in certain}
        for pod in pods:
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
            if not node or pod["metadata"]["uid"] in known:
                continue
            for entry in self.bindings:
                # What has only arrived has no body yet, so its node is not known.
                if entry.name == name and is_doubtful(entry) and entry.target_node in {"", node}:
                    yield entry

    def process_of(self, entry: AuditEntry) -> str:
        """Return whose token a request was made with."""
        shown = (entry.raw.get("user", {}).get("extra") or {}).get(_CREDENTIAL) or ["?"]
        return self._processes.get(shown[0], f"another process ({shown[0]})")

    def in_order(self) -> list[tuple[str, str, str]]:
        """Return (when it was received, process, pod) of each that was carried out."""
        return sorted(
            (entry.raw["requestReceivedTimestamp"], self.process_of(entry), entry.name)
            for entry in self.carried_out
        )


def is_doubtful(entry: AuditEntry) -> bool:
    """Return whether a Binding may have been carried out although its log does not say so."""
    return entry.stage != COMPLETE or not 200 <= entry.status < 500


def judge(
    pods: Iterable[Object], account: Account, phases: Sequence[Phase], *, slots: int
) -> list[str]:
    """Return what is wrong."""
    found = {pod["metadata"]["name"]: pod for pod in pods}
    wanted = [name for phase in phases for name in phase.pods]
    return [
        *_lost(found, wanted),
        *_bound(found, account),
        *_overfilled(found.values(), slots),
        *_turns(account, phases),
    ]


def _lost(found: dict[str, Object], wanted: Sequence[str]) -> Iterable[str]:
    for name in wanted:
        if name not in found:
            yield f"{name} is gone"
        elif not found[name]["spec"].get("nodeName"):
            yield f"{name} has no node"


def _bound(found: dict[str, Object], account: Account) -> Iterable[str]:
    by_name: dict[str, list[AuditEntry]] = {}
    for entry in account.carried_out:
        by_name.setdefault(entry.name, []).append(entry)
    for name, pod in found.items():
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        entries = by_name.get(name, [])
        if node and len(entries) != 1:
            yield f"{name} was bound {len(entries)} times"
        for entry in entries:
            if entry.target_uid not in {"", uid} or entry.target_node not in {"", node}:
                yield f"{name} was bound to {entry.target_node} and is on {node}"
    for entry in account.bindings:
        if entry.status == _CONFLICT:
            yield f"{entry.name} was bound again by {account.process_of(entry)}, and refused"


def _overfilled(pods: Iterable[Object], slots: int) -> Iterable[str]:
    held = Counter(pod["spec"].get("nodeName") or "" for pod in pods)
    for node, count in sorted(held.items()):
        if node and count > slots:
            yield f"{node} has {count} pods and room for {slots}"


def _turns(account: Account, phases: Sequence[Phase]) -> Iterable[str]:
    """Yield where a process bound that had not taken over yet, or had been replaced."""
    leaders = [phases[0].leader, *(phase.successor for phase in phases)] if phases else []
    bindings = account.in_order()
    turns = [process for process, _ in groupby(process for _, process, _ in bindings)]
    if turns != leaders:
        yield f"bindings were made by {' > '.join(turns)}, not by {' > '.join(leaders)}"
    for phase in phases:
        binders = Counter(process for _, process, pod in bindings if pod in set(phase.pods))
        for process in (phase.leader, phase.successor):
            if not binders[process]:
                yield f"{process} bound none of the pods of phase {phase.number}"


def figures(account: Account, phase: Phase) -> str:
    """Return in numbers what happened in a phase."""
    names = set(phase.pods)
    bindings = [each for each in account.in_order() if each[2] in names]
    before = sum(process == phase.leader for _, process, _ in bindings)
    by_then = sum(when <= phase.signalled_at for when, _, _ in bindings)
    doubtful = sum(is_doubtful(e) for e in account.carried_out if e.name in names)
    return (
        f"{phase.leader} bound {before} pods, {phase.successor} {len(bindings) - before}; when the "
        f"leader was told to end, {phase.asked_by_then - by_then} of {phase.asked_by_then} waited; "
        f"{doubtful} were bound for a process that was gone"
    )
