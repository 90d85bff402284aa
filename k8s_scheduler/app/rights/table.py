"""Which rights the daemon needs: one table, from what its configuration makes it do to RBAC rules.

A right stands here together with the code that uses it, and with a reason. Reads and patches of
objects follow from what the plugins of the enabled profiles declare (`depends_on`, `writes`), so a
profile with fewer plugins needs fewer rights. `manifests/rbac.yaml` is what comes out for the
shipped configuration (`k8s-scheduler rbac`), the chart holds the same rules, and tests keep all
three in step, run the daemon under exactly these rights, and take each one away.

To add one: a line in `_cluster_rules`, or a role of its own beside `_leader_election`; what it
depends on becomes a field of `Needs`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from k8s_scheduler.api.config.extras import IGNORE
from k8s_scheduler.api.config.types import SchedulerConfiguration
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.api.kinds import BUILT_IN, Kind, joined
from k8s_scheduler.core.setup import Setup

_INFORM: Final = ("list", "watch")
_CONFIG_MAPS: Final = ("configmaps",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionLease:
    """The Lease that replicas elect their leader with."""

    name: str
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the daemon is going to do, as far as rights go."""

    # The kinds, besides pods and nodes, that plugins read; those they have patched; and whether
    # pods may be evicted.
    reads: tuple[Kind, ...]
    writes: tuple[Kind, ...]
    preempts: bool
    # None without leader election.
    lease: ElectionLease | None
    # Whether pages are served, and so others' tokens and rights are looked up.
    serves: bool = True
    # The ConfigMaps that hold the configuration and the last good one, with their namespaces.
    config_map: ConfigMapName | None = None
    last_good: ConfigMapName | None = None
    # The namespaces whose Leases are looked at for rivals: none means all; None that none is.
    rivals: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role, and why it is there. Names limit it to objects so called.

    A rule is about resources, or about paths of a server (nonResourceURLs), and then of no group.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """A role: for the whole cluster, or for one namespace, then with an ending to its name.

    In a namespace that others share, its name has to tell us apart as one for the cluster does.
    """

    rules: tuple[Rule, ...]
    namespace: str = ""
    ending: str = ""
    is_among_others: bool = False


_RIVALS: Final = Rule(
    "coordination.k8s.io",
    ("leases",),
    ("list",),
    "Whether the holder of another Lease serves a schedulerName of ours (rivals).",
)


def needs_of(
    configuration: SchedulerConfiguration,
    *,
    serves: bool = True,
    config_map: ConfigMapName | None = None,
    last_good: ConfigMapName | None = None,
) -> Needs:
    """Return what a configuration makes the daemon do; ProfileError if it can't be run."""
    profiles = Setup(profiles=configuration.profiles).compiled().values()
    election = configuration.settings.leader_election
    rivals = configuration.extras.rivals
    return Needs(
        reads=joined(kind for profile in profiles for kind in profile.kinds),
        writes=tuple(sorted({kind for profile in profiles for kind in profile.writes})),
        preempts=any(profile.preempts for profile in profiles),
        lease=(
            ElectionLease(name=election.resource_name, namespace=election.resource_namespace)
            if election.leader_elect
            else None
        ),
        serves=serves,
        config_map=config_map,
        last_good=last_good,
        rivals=None if rivals.action == IGNORE else rivals.namespaces,
    )


def roles_of(needs: Needs) -> tuple[Role, ...]:
    cluster = Role(tuple(_cluster_rules(needs)))
    election = [] if needs.lease is None else [_leader_election(needs.lease)]
    return (cluster, *election, *_configuration(needs), *_rivals(needs))


def _cluster_rules(needs: Needs) -> Iterator[Rule]:
    yield Rule("", ("nodes",), _INFORM, "The state decisions are made on.")
    yield Rule(
        "",
        ("pods",),
        ("get", *_INFORM),
        "The pods, wherever they are; `get` reads one again when a write's outcome is unknown.",
    )
    for group, resources in _by_group(needs.reads).items():
        yield Rule(group, resources, _INFORM, "What the enabled plugins read, from watches alone.")
    yield Rule("", ("pods/binding",), ("create",), "The decision itself.")
    yield Rule(
        "",
        ("pods/status",),
        ("patch",),
        "Why a pod is pending, where it is promised room, why a victim has to leave.",
    )
    if needs.preempts:
        yield Rule("", ("pods",), ("delete",), "Preemption: victims leave for others.")
    for group, resources in _by_group(needs.writes).items():
        why = "Late binding: which volume is whose, and where others are to be made."
        yield Rule(group, resources, ("patch",), why)
    yield Rule(
        "events.k8s.io",
        ("events",),
        ("create", "patch"),
        "Scheduled, FailedScheduling and the like; `patch` extends a series.",
    )
    if needs.rivals == ():
        yield _RIVALS
    if needs.serves:
        yield Rule(
            "authentication.k8s.io",
            ("tokenreviews",),
            ("create",),
            "Whose token it is that a client shows at the secure port.",
        )
        yield Rule(
            "authorization.k8s.io",
            ("subjectaccessreviews",),
            ("create",),
            "Whether they may see the page.",
        )
        yield Rule(
            "",
            (),
            ("get",),
            "What `config current`, run in the pod with the pod's own token, asks the daemon for.",
            paths=("/configz",),
        )


def _leader_election(lease: ElectionLease) -> Role:
    group, resources = "coordination.k8s.io", ("leases",)
    rules = (
        Rule(
            group,
            resources,
            ("create",),
            "A request to create names nothing it could be limited by.",
        ),
        Rule(
            group,
            resources,
            ("get", "update", "watch"),
            "The name is leaderElection.resourceName of the configuration: change both together.",
            names=(lease.name,),
        ),
    )
    return Role(rules, namespace=lease.namespace, ending="-leader-election")


def _rivals(needs: Needs) -> Iterator[Role]:
    for namespace in needs.rivals or ():
        yield Role((_RIVALS,), namespace=namespace, ending="-rivals", is_among_others=True)


def _configuration(needs: Needs) -> Iterator[Role]:
    limited: list[tuple[str, Rule]] = []
    if needs.config_map is not None:
        why = "Watched with --config-map; else read for the uid that an Event about it names."
        rule = Rule("", _CONFIG_MAPS, ("get", *_INFORM), why, names=(needs.config_map.name,))
        limited.append((needs.config_map.namespace, rule))
    if needs.last_good is not None:
        why = "The last good configuration (--last-good-config-map), which has to exist."
        rule = Rule("", _CONFIG_MAPS, ("get", "patch"), why, names=(needs.last_good.name,))
        limited.append((needs.last_good.namespace, rule))
    for namespace in dict.fromkeys(namespace for namespace, _ in limited):
        rules = tuple(rule for place, rule in limited if place == namespace)
        yield Role(rules, namespace=namespace, ending="-configuration")


def _by_group(kinds: tuple[Kind, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for kind in (*BUILT_IN, *(kind for kind in kinds if kind.is_custom)):
        if kind in kinds:
            found.setdefault(kind.group, []).append(kind.resource)
    return {group: tuple(plurals) for group, plurals in found.items()}
