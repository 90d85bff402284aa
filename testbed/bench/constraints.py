"""Whether pods are where they may be: read from the listed objects, without any scheduler's code.

Only what the workloads' pods use is read; a pod that asks for more is refused, not waved through.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from k8s_scheduler.api.quantity import nano
from testbed.bench.scenario_pods import REQUIRED
from testbed.client import Object

# Of a pod's spec: what would have a say in where it may go, and is not read here.
_UNREAD = (
    "initContainers",
    "overhead",
    "nodeSelector",
    "resources",
    "hostNetwork",
    "resourceClaims",
    "schedulingGates",
)
_TERM_FIELDS = frozenset(("labelSelector", "topologyKey"))
_CONSTRAINT_FIELDS = _TERM_FIELDS | {"maxSkew", "whenUnsatisfiable"}
_FINISHED = ("Succeeded", "Failed")
_COMPUTE = ("cpu", "memory")

# The pods that a selector finds in a namespace, counted by the values of a node label.
GroupKey: TypeAlias = tuple[str, frozenset[tuple[str, str]], str]

# A skew depends on who was there before, the other rules on who is there at all.
SKEW, SPREAD, ANTI_AFFINITY, AFFINITY, VOLUME, NODE = (
    "skew",
    "topology spread",
    "anti-affinity",
    "affinity",
    "volume",
    "node",
)


class UnreadableError(ValueError):
    """A pod asks for something that this check does not read."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A pod that is where it may not be."""

    rule: str
    pod: str
    node: str
    detail: str

    def __str__(self) -> str:
        return f"{self.pod} on {self.node}: {self.rule}: {self.detail}"


@dataclass(frozen=True, slots=True)
class _Rules:
    """The hard constraints of one pod."""

    # With the largest skew allowed.
    spreads: tuple[tuple[GroupKey, int], ...] = ()
    apart: tuple[GroupKey, ...] = ()
    together: tuple[GroupKey, ...] = ()

    @property
    def groups(self) -> Iterator[GroupKey]:
        yield from (key for key, _ in self.spreads)
        yield from self.apart
        yield from self.together


@dataclass(slots=True)
class _Group:
    """Where the pods of a group are, and those that want to be apart from them."""

    domains: frozenset[str]
    members: Counter[str] = field(default_factory=Counter)
    shunners: Counter[str] = field(default_factory=Counter)


class Board:
    """Pods put on nodes one after the other."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        """Count for `pods`, all of them that will ever be put."""
        self._labels = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in nodes}
        self._rules = {_key(pod): _rules_of(pod) for pod in pods}
        self._groups: dict[GroupKey, _Group] = {}
        for rules in self._rules.values():
            for key in rules.groups:
                if key not in self._groups:
                    self._groups[key] = _Group(self._domains(key[2]))

    def _domains(self, topology_key: str) -> frozenset[str]:
        return frozenset(
            labels[topology_key] for labels in self._labels.values() if topology_key in labels
        )

    def put(self, pod: Object, node: str) -> None:
        """Take note that a pod is on a node."""
        labels = self._labels.get(node, {})
        for key, group in self._groups.items():
            if (domain := labels.get(key[2])) is not None and _is_member(pod, key):
                group.members[domain] += 1
        for key in self._rules[_key(pod)].apart:
            if (domain := labels.get(key[2])) is not None:
                self._groups[key].shunners[domain] += 1

    def broken(self, pod: Object, node: str) -> Iterator[Violation]:
        """Yield what is wrong with a pod that is put on a node next."""
        name = pod["metadata"]["name"]
        labels = self._labels.get(node)
        if labels is None:
            yield Violation(NODE, name, node, "there is no such node")
            return
        rules = self._rules[_key(pod)]
        for rule, detail in (
            *((SPREAD, _unlabelled(labels, key)) for key, _ in rules.spreads),
            *((SKEW, self._skewed(pod, labels, key, skew)) for key, skew in rules.spreads),
            *((ANTI_AFFINITY, self._crowded(labels, key)) for key in rules.apart),
            *((ANTI_AFFINITY, self._shunned(pod, labels, key)) for key in self._groups),
            *((AFFINITY, self._lonely(pod, labels, key)) for key in rules.together),
        ):
            if detail:
                yield Violation(rule, name, node, detail)

    def uneven(self) -> Iterator[str]:
        """Yield how pods are spread worse than any order of placement allows.

        As long as pods only come, the fullest domain can be ahead of the emptiest by no more than
        the skew that its last pod allowed.
        """
        allowed: dict[GroupKey, int] = {}
        for rules in self._rules.values():
            for key, skew in rules.spreads:
                allowed[key] = max(skew, allowed.get(key, 0))
        for key, skew in allowed.items():
            group = self._groups[key]
            counts = {domain: group.members[domain] for domain in sorted(group.domains)}
            if counts and max(counts.values()) - min(counts.values()) > skew:
                yield f"{_shown(key)}: {counts}, where maxSkew is {skew}"

    def _skewed(self, pod: Object, labels: Mapping[str, str], key: GroupKey, max_skew: int) -> str:
        domain = labels.get(key[2])
        if domain is None:
            return ""
        group = self._groups[key]
        least = min(group.members[other] for other in group.domains)
        skew = group.members[domain] + _is_member(pod, key) - least
        return f"skew {skew} in {domain}, where maxSkew is {max_skew}" if skew > max_skew else ""

    def _crowded(self, labels: Mapping[str, str], key: GroupKey) -> str:
        """Return who is there that the pod wants to be apart from."""
        domain = labels.get(key[2])
        count = 0 if domain is None else self._groups[key].members[domain]
        return f"{count} pods of {_shown(key)} are in {domain}" if count else ""

    def _shunned(self, pod: Object, labels: Mapping[str, str], key: GroupKey) -> str:
        """Return who is there that wants to be apart from the pod."""
        domain = labels.get(key[2])
        count = 0 if domain is None else self._groups[key].shunners[domain]
        if not count or not _is_member(pod, key):
            return ""
        return f"{count} pods in {domain} want to be apart from {_shown(key)}"

    def _lonely(self, pod: Object, labels: Mapping[str, str], key: GroupKey) -> str:
        domain = labels.get(key[2])
        if domain is None:
            return _unlabelled(labels, key)
        members = self._groups[key].members
        # The first of those that want each other's company may go anywhere.
        if members[domain] or (not members.total() and _is_member(pod, key)):
            return ""
        return f"no pod of {_shown(key)} is in {domain}"


def overfilled(nodes: Iterable[Object], pods: Iterable[Object]) -> Iterator[str]:
    """Yield which nodes have more on them than they can give, and of what."""
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        if (node := node_of(pod)) and (pod.get("status") or {}).get("phase") not in _FINISHED:
            amounts = used.setdefault(node, Counter())
            amounts.update(_requests(pod))
            amounts["pods"] += nano(1)
    for item in nodes:
        name = item["metadata"]["name"]
        given = item["status"]["allocatable"]
        for resource, amount in sorted(used.get(name, Counter()).items()):
            if amount > nano(given.get(resource, "0")):
                yield (
                    f"{name}: {amount / 10**9:g} {resource} used, {given.get(resource, '0')} given"
                )


def misplaced_volumes(
    pods: Iterable[Object], nodes: Iterable[Object], objects: Iterable[Object]
) -> Iterator[Violation]:
    """Yield pods whose claims have no volume, or one that their node does not reach."""
    labels = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in nodes}
    listed = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    taken: dict[str, str] = {}
    for pod in pods:
        name, node = pod["metadata"]["name"], node_of(pod)
        for claim_name in claims_of(pod):
            claim = listed.get(("PersistentVolumeClaim", claim_name))
            volume_name = "" if claim is None else claim["spec"].get("volumeName", "")
            volume = listed.get(("PersistentVolume", volume_name))
            if volume is None:
                yield Violation(VOLUME, name, node, f"{claim_name} is bound to no volume")
            elif taken.setdefault(volume_name, claim_name) != claim_name:
                other = taken[volume_name]
                yield Violation(VOLUME, name, node, f"{other} has {volume_name} already")
            elif not _reaches(volume, labels.get(node, {})):
                yield Violation(VOLUME, name, node, f"{volume_name} is on another node")


def claims_of(pod: Object) -> list[str]:
    """Return the claims that a pod uses."""
    volumes = pod["spec"].get("volumes") or ()
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    ]


def node_of(pod: Object) -> str:
    """Return the node of a pod; empty if it waits for one."""
    return str(pod["spec"].get("nodeName") or "")


def _reaches(volume: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a volume can be used on a node with these labels."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    for term in required["nodeSelectorTerms"]:
        expressions = term.get("matchExpressions") or ()
        if set(term) - {"matchExpressions"} or any(e["operator"] != "In" for e in expressions):
            raise UnreadableError(
                f"volume {volume['metadata']['name']}: only matchExpressions with In are read"
            )
        if expressions and all(labels.get(e["key"]) in e["values"] for e in expressions):
            return True
    return False


def _requests(pod: Object) -> Counter[str]:
    found: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        for resource in _COMPUTE:
            found[resource] += nano(requests.get(resource, "0"))
    return found


def _rules_of(pod: Object) -> _Rules:
    """Return a pod's hard constraints; raises UnreadableError."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    asked = [name for name in _UNREAD if spec.get(name)]
    asked += ["affinity.nodeAffinity"] if affinity.get("nodeAffinity") else []
    if asked:
        raise UnreadableError(f"pod {_key(pod)}: {', '.join(asked)} is not read by this check")
    spreads = [
        (_group_key(pod, constraint, _CONSTRAINT_FIELDS), constraint["maxSkew"])
        for constraint in spec.get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    return _Rules(
        spreads=tuple(spreads),
        apart=tuple(_required(pod, affinity.get("podAntiAffinity"))),
        together=tuple(_required(pod, affinity.get("podAffinity"))),
    )


def _required(pod: Object, side: Mapping[str, list[Object]] | None) -> Iterator[GroupKey]:
    for term in (side or {}).get(REQUIRED) or ():
        yield _group_key(pod, term, _TERM_FIELDS)


def _group_key(pod: Object, term: Object, known: frozenset[str]) -> GroupKey:
    selector = term.get("labelSelector") or {}
    asked = sorted({*(set(term) - known), *(set(selector) - {"matchLabels"})})
    if asked or not selector:
        raise UnreadableError(
            f"pod {_key(pod)}: a term is read if all it has is a topologyKey and matchLabels; "
            f"this one has {', '.join(asked) or 'no labelSelector'}"
        )
    labels = frozenset(selector["matchLabels"].items())
    return pod["metadata"]["namespace"], labels, term["topologyKey"]


def _is_member(pod: Object, key: GroupKey) -> bool:
    namespace, selected, _ = key
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    return metadata["namespace"] == namespace and all(
        labels.get(name) == value for name, value in selected
    )


def _unlabelled(labels: Mapping[str, str], key: GroupKey) -> str:
    return "" if key[2] in labels else f"the node has no label {key[2]}"


def _shown(key: GroupKey) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(key[1]))


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
