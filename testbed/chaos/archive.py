"""The folder of a run: everything that happened, as files, and back.

    run.json        seed, times, who was judged          history.jsonl   every write (history.py)
    audit.log       the API server's own                 faults.jsonl    every fault (the proxies')
    passed.jsonl    Bindings through the proxies         actions.jsonl   what was done to the stage
    samples.jsonl   memory and open files                ends.jsonl      how processes ended
    metrics.json    last metrics of each process         replays.jsonl   what replaying came to
    log/            logs of all                          record/         recordings of the replicas
    decisions/      what recordings were replayed to     config/         all configurations
    configurations.jsonl  what lay in the file, and when
    scenarios/      questions to the oracle              opinions.jsonl  what it said of them

A file that is not there is one about which nothing is known; where the auditor needs it, it says so
(judging_evidence.py).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from testbed.audit import COMPLETE, RECEIVED, AuditEntry, read_log
from testbed.chaos.evidence import (
    BindingSeen,
    Change,
    Configuration,
    Decision,
    Done,
    Ended,
    EventSeen,
    Evidence,
    LeaseSeen,
    NodeSeen,
    Opinion,
    Passed,
    PodSeen,
    Replayed,
    Sample,
    Seen,
)

T = TypeVar("T")

_KINDS: Mapping[str, type[Seen]] = {
    kind.__name__: kind for kind in (PodSeen, NodeSeen, EventSeen, LeaseSeen)
}


def write_lines(path: Path, entries: Iterable[object]) -> None:
    """Write records as JSON lines."""
    path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))


def read_evidence(folder: Path) -> Evidence:
    """Read everything about a run."""
    run: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    faults = Counter(str(entry["fault"]) for entry in _lines(folder / "faults.jsonl"))
    logs = sorted((folder / "log").glob("replica-*.log"))
    metrics = folder / "metrics.json"
    return Evidence(
        **run,
        changes=read_history(folder / "history.jsonl"),
        bindings=list(read_bindings(folder / "audit.log")),
        decisions=read_decisions(folder),
        passed=_typed(folder / "passed.jsonl", Passed),
        done=_typed(folder / "actions.jsonl", Done),
        samples=_typed(folder / "samples.jsonl", Sample),
        ends=_typed(folder / "ends.jsonl", Ended),
        replayed=_typed(folder / "replays.jsonl", Replayed),
        configurations=_typed(folder / "configurations.jsonl", Configuration),
        opinions=_typed(folder / "opinions.jsonl", Opinion),
        faults=dict(faults),
        metrics=json.loads(metrics.read_text(encoding="utf-8")) if metrics.exists() else {},
        logs={log.stem: log.read_text(encoding="utf-8", errors="replace") for log in logs},
    )


def read_history(path: Path) -> list[Change]:
    """Read every write, in order."""
    return [
        Change(
            line["revision"],
            line["at"],
            line["gone"],
            msgspec.convert(line["what"], _KINDS[line["kind"]]),
        )
        for line in _lines(path)
    ]


def read_bindings(path: Path) -> Iterator[BindingSeen]:
    """Yield every Binding that the API server was asked for, with its answer if it gave one."""
    waiting: dict[str, AuditEntry] = {}
    for entry in read_log(path):
        if entry.subresource != "binding":
            continue
        if entry.stage == RECEIVED:
            waiting[entry.audit_id] = entry
        elif entry.stage == COMPLETE:
            waiting.pop(entry.audit_id, None)
            yield _binding(entry, entry.status)
    for entry in waiting.values():
        yield _binding(entry, 0)


def _binding(entry: AuditEntry, status: int) -> BindingSeen:
    return BindingSeen(
        at=datetime.fromisoformat(entry.raw["stageTimestamp"]).timestamp(),
        user=entry.user,
        namespace=entry.namespace,
        name=entry.name,
        uid=entry.target_uid,
        node=entry.target_node,
        status=status,
    )


def read_decisions(folder: Path) -> list[Decision] | None:
    """Read what recordings were replayed to; None if none was."""
    files = sorted((folder / "decisions").glob("*.jsonl"))
    if not files:
        return None
    return [
        Decision(
            replica=file.stem,
            uid=line["uid"],
            namespace=line["namespace"],
            name=line["name"],
            node=line["node"],
            attempt=int(line["attempt"]),
            now=float(line["now"]),
            seen_pods=int(line["seen"].get("pods") or 0),
            seen_nodes=int(line["seen"].get("nodes") or 0),
            number=int(line.get("number", 0)),
        )
        for file in files
        for line in _lines(file)
        if line.get("node")
    ]


def _typed(path: Path, kind: type[T]) -> list[T]:
    return [msgspec.convert(line, kind) for line in _lines(path)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield json.loads(line)
