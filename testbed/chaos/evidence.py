"""What the auditor has before it: plain records, each with its time by the machine's clock.

`Change` is the history of the cluster as etcd has it: every write, in order, with its revision,
which is the resourceVersion that clients see. It has no holes, whatever happened to API servers
and their watch caches; if it ever has one, the run can't be judged and that is a finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.audit import SCHEDULER_USER
from testbed.chaos.resources import NOTHING, Room

# How the detail of an action begins that came to nothing.
NOT_DONE = "not done"


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod after one write."""

    uid: str
    namespace: str
    name: str
    scheduler: str
    node: str
    asks: Room
    zone: str = ""  # the zone that its node selector asks for
    finished: bool = False
    leaving: bool = False
    gated: bool = False
    scheduled: tuple[str, str, str] = ("", "", "")  # the PodScheduled condition

    @property
    def takes(self) -> Room:
        """What it takes on its node."""
        return NOTHING if self.finished or not self.node else self.asks


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node after one write. `open` means that new pods may come."""

    name: str
    has: Room
    zone: str = ""
    open: bool = True


@dataclass(frozen=True, slots=True)
class EventSeen:
    """An event about a pod."""

    uid: str
    reason: str
    note: str
    reporter: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """Who holds the schedulers' Lease."""

    holder: str


Seen = PodSeen | NodeSeen | EventSeen | LeaseSeen


@dataclass(frozen=True, slots=True)
class Change:
    """One write. A deletion shows what was deleted."""

    revision: int
    at: float
    gone: bool
    what: Seen


@dataclass(frozen=True, slots=True)
class BindingSeen:
    """A Binding by the API server's audit log; status 0 is one that was never answered."""

    at: float
    user: str
    namespace: str
    name: str
    uid: str
    node: str
    status: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What a replica decided, by the replay of its recording, and what it had seen by then."""

    replica: str
    uid: str
    namespace: str
    name: str
    node: str
    attempt: int
    now: float
    seen_pods: int
    seen_nodes: int
    number: int = 0  # among those of its recording


@dataclass(frozen=True, slots=True)
class Passed:
    """A Binding on its way through a replica's proxy."""

    at: float
    ended_at: float
    replica: str
    namespace: str
    name: str
    status: int


@dataclass(frozen=True, slots=True)
class Done:
    """An action of the plan: carried out, or tried in vain."""

    at: float
    ended_at: float
    action: str
    detail: str = ""

    @property
    def was_done(self) -> bool:
        """Whether anything came of it."""
        return not self.detail.startswith(NOT_DONE)


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory and open files of one process of a replica."""

    at: float
    process: str
    rss_bytes: int
    open_files: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of a replica ended. `asked` says that the run wanted that end."""

    at: float
    process: str
    code: int
    asked: bool
    last_words: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What lay in the configuration file from then on, by the SHA-256 of its text."""

    at: float
    hash: str
    good: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of replaying the recording of one process; code 0 is well."""

    process: str
    code: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What kube-scheduler's own code says of a decision; no complaint is well."""

    source: str  # what the question was rebuilt from
    replica: str
    namespace: str
    name: str
    node: str
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything about one run."""

    seed: int
    scheduler: str
    lease_seconds: float
    write_seconds: float
    quiet_from: float
    ended_at: float
    changes: Sequence[Change]
    # From the last fault until every pod that fits has to be bound.
    settle_seconds: float = 90.0
    user: str = SCHEDULER_USER  # who sends our Bindings, by the audit log
    bindings: Sequence[BindingSeen] = ()
    decisions: Sequence[Decision] | None = None
    passed: Sequence[Passed] = ()
    done: Sequence[Done] = ()
    samples: Sequence[Sample] = ()
    ends: Sequence[Ended] = ()
    replayed: Sequence[Replayed] = ()
    opinions: Sequence[Opinion] = ()
    configurations: Sequence[Configuration] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    # process -> name and labels -> value, at its end or the run's
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    holes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. `rule` is from a small fixed set."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"
