"""What has been found out so far, per profile: as log fields, as JSON, as a table."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from k8s_scheduler.obs.shadow_metrics import ShadowMetrics
from k8s_scheduler.simulate.shadowing.findings import AGREES, Finding, Result, reason_text

# So many cases are told one by one, the latest ones; all of them are counted.
MOST_CASES = 200
_QUANTILES = (0.5, 0.9, 0.99)


class Regret(msgspec.Struct, frozen=True, rename="camel"):
    """Our best total minus that of the chosen node, over feasible choices."""

    count: int
    mean: float
    p50: int
    p90: int
    p99: int
    max: int


class UnplacedReport(msgspec.Struct, frozen=True, rename="camel"):
    """Pods the other scheduler said it could not place, and those for which we know a node."""

    seen: int
    feasible_for_us: int
    pods: tuple[str, ...]


class ProfileReport(msgspec.Struct, frozen=True, rename="camel"):
    """One scheduler that is followed."""

    bindings: int
    judged: int
    feasible: int
    agreed: int
    another_node: int
    results: dict[str, int]
    infeasible_by: dict[str, int]
    ties: int
    with_claims: int
    skipped: int
    behind: int
    unseen: int
    regret: Regret
    regret_counts: dict[str, int]
    unplaced: UnplacedReport


class Case(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A binding that is not among the best on the state just before it."""

    at: float
    pod: str
    profile: str
    node: str
    result: str
    regret: int | None = None
    better_nodes: int = 0
    feasible_nodes: int = 0
    reason: str = ""
    race: tuple[str, ...] = ()
    race_size: int = 0
    changes_near: int = 0


class ShadowReport(msgspec.Struct, frozen=True, rename="camel"):
    """The whole report, as `--out` writes it."""

    version: str
    started_at: float
    seconds: float
    latency_seconds: float
    profiles: dict[str, ProfileReport]
    cases: tuple[Case, ...]


@dataclass(slots=True)
class _Tally:
    results: Counter[Result] = field(default_factory=Counter)
    infeasible_by: Counter[str] = field(default_factory=Counter)
    regrets: Counter[int] = field(default_factory=Counter)
    unplaced_pods: list[str] = field(default_factory=list)
    feasible: int = 0
    another_node: int = 0
    ties: int = 0
    with_claims: int = 0
    skipped: int = 0
    behind: int = 0
    unseen: int = 0
    not_placed: int = 0
    could_be_placed: int = 0


class Report:
    """Counts findings."""

    def __init__(self, profiles: Iterable[str], metrics: ShadowMetrics | None = None) -> None:
        self._tallies = {name: _Tally() for name in profiles}
        self._metrics = metrics
        self._cases: deque[Case] = deque(maxlen=MOST_CASES)
        # Findings that are not logged yet.
        self._news: list[Case] = []

    # What is found

    def add(self, finding: Finding) -> None:
        tally = self._tallies[finding.profile]
        tally.results[finding.result] += 1
        tally.with_claims += finding.has_claims
        standing = finding.standing
        if standing is not None and standing.feasible:
            tally.feasible += 1
            tally.regrets[standing.regret] += 1
            tally.another_node += not standing.is_best
            tally.ties += standing.is_best and standing.ties > 1
        elif standing is not None:
            tally.another_node += standing.feasible_count > 0
            if finding.result is Result.INFEASIBLE:
                tally.infeasible_by[reason_text(standing.verdict)] += 1
        if self._metrics is not None:
            self._metrics.judged(finding.profile, finding.result.value)
            if standing is not None and standing.feasible:
                self._metrics.regretted(finding.profile, standing.regret)
        if finding.result is not Result.BEST:
            self._cases.append(case_of(finding))
            self._news.append(self._cases[-1])

    def skipped(self, profile: str) -> None:
        self._tallies[profile].skipped += 1

    def behind(self, profile: str) -> None:
        self._tallies[profile].behind += 1

    def unseen(self, profile: str) -> None:
        self._tallies[profile].unseen += 1

    def not_placed(self, profile: str) -> None:
        self._tallies[profile].not_placed += 1

    def could_be_placed(self, profile: str, pod: str, nodes: int) -> None:
        """Count such a pod for which there has been a node all the while."""
        tally = self._tallies[profile]
        tally.could_be_placed += 1
        if len(tally.unplaced_pods) < MOST_CASES:
            tally.unplaced_pods.append(pod)
        if self._metrics is not None:
            self._metrics.unplaced(profile)
        self._news.append(Case(0.0, pod, profile, "", "could be placed", feasible_nodes=nodes))

    # What is told

    @property
    def judged(self) -> int:
        return sum(tally.results.total() for tally in self._tallies.values())

    def take_news(self) -> list[Case]:
        news, self._news = self._news, []
        return news

    def profiles(self) -> dict[str, ProfileReport]:
        return {name: _profile_report(tally) for name, tally in self._tallies.items()}

    def whole(
        self, *, version: str, started_at: float, seconds: float, latency_seconds: float
    ) -> ShadowReport:
        return ShadowReport(
            version=version,
            started_at=started_at,
            seconds=round(seconds, 3),
            latency_seconds=latency_seconds,
            profiles=self.profiles(),
            cases=tuple(self._cases),
        )


def case_of(finding: Finding) -> Case:
    standing = finding.standing
    if standing is None:
        reason = finding.error
    elif standing.feasible:
        reason = ""
    else:
        reason = reason_text(standing.verdict)
    return Case(
        at=finding.at,
        pod=finding.pod,
        profile=finding.profile,
        node=finding.node,
        result=finding.result.value,
        regret=standing.regret if standing is not None and standing.feasible else None,
        better_nodes=0 if standing is None else standing.better,
        feasible_nodes=0 if standing is None else standing.feasible_count,
        reason=reason,
        race=finding.race,
        race_size=finding.race_size,
        changes_near=finding.changes_near,
    )


def _profile_report(tally: _Tally) -> ProfileReport:
    judged = tally.results.total()
    return ProfileReport(
        bindings=judged + tally.skipped + tally.behind + tally.unseen,
        judged=judged,
        feasible=tally.feasible,
        agreed=sum(tally.results[result] for result in AGREES),
        another_node=tally.another_node,
        results={result.value: tally.results[result] for result in Result},
        infeasible_by=dict(tally.infeasible_by.most_common()),
        ties=tally.ties,
        with_claims=tally.with_claims,
        skipped=tally.skipped,
        behind=tally.behind,
        unseen=tally.unseen,
        regret=_regret(tally.regrets),
        regret_counts={str(regret): n for regret, n in sorted(tally.regrets.items())},
        unplaced=UnplacedReport(
            tally.not_placed, tally.could_be_placed, tuple(tally.unplaced_pods)
        ),
    )


def _regret(counts: Mapping[int, int]) -> Regret:
    total = sum(counts.values())
    if not total:
        return Regret(0, 0.0, 0, 0, 0, 0)
    ordered = sorted(counts)
    p50, p90, p99 = (_quantile(counts, ordered, share * total) for share in _QUANTILES)
    mean = sum(regret * n for regret, n in counts.items()) / total
    return Regret(total, round(mean, 3), p50, p90, p99, ordered[-1])


def _quantile(counts: Mapping[int, int], ordered: list[int], rank: float) -> int:
    passed = 0
    for regret in ordered:
        passed += counts[regret]
        if passed >= rank:
            return regret
    return ordered[-1]


_ROWS = (
    ("bindings seen", lambda p: p.bindings),
    ("  judged", lambda p: p.judged),
    ("  left out by --sample", lambda p: p.skipped),
    ("  left out, too far behind", lambda p: p.behind),
    ("  pod never seen waiting", lambda p: p.unseen),
    ("feasible for us", lambda p: p.feasible),
    ("agreed", lambda p: p.agreed),
    ("  among the best", lambda p: p.results["best"]),
    ("    one of several equals", lambda p: p.ties),
    ("  nominated node", lambda p: p.results["nominated"]),
    ("  may be the best of a sample", lambda p: p.results["sampled"]),
    ("  explained by a race", lambda p: p.results["explained"]),
    ("not agreed: feasible, worse", lambda p: p.results["worse"]),
    ("not agreed: infeasible", lambda p: p.results["infeasible"]),
    ("could not be judged", lambda p: p.results["failed"]),
    ("we would have chosen another", lambda p: p.another_node),
    ("regret: mean", lambda p: p.regret.mean),
    ("regret: p50 / p90 / p99", lambda p: f"{p.regret.p50} / {p.regret.p90} / {p.regret.p99}"),
    ("regret: highest", lambda p: p.regret.max),
    ("with claims (decided before)", lambda p: p.with_claims),
    ("not placed by it", lambda p: p.unplaced.seen),
    ("  with a node for us", lambda p: p.unplaced.feasible_for_us),
)


def table(report: ShadowReport) -> Iterator[str]:
    names = list(report.profiles)
    width = max(len(label) for label, _ in _ROWS)
    columns = {name: max(len(name), 12) for name in names}
    yield " " * width + "".join(f"  {name:>{columns[name]}}" for name in names)
    for label, read in _ROWS:
        cells = (f"  {read(report.profiles[name])!s:>{columns[name]}}" for name in names)
        yield f"{label:<{width}}" + "".join(cells)
    for name, profile in report.profiles.items():
        for reason, count in profile.infeasible_by.items():
            yield f"{name}: {count} rejected by {reason}"
