"""What plugins get to see of a pod: as much as pods of one shape have in common.

Neither priority nor attempt nor status: a term prepared from this view is right for every pod of
the shape. `shapes.shape_of` and this class go together: what is visible here is in the key there or
is taken down as a question, and nothing else is in the key.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from k8s_scheduler.api.controllers import Controller, controller_of
from k8s_scheduler.api.meta import Labels, NodeName, ObjectMeta
from k8s_scheduler.api.node_features import required_features
from k8s_scheduler.api.pod import NodeAffinityTerms, Pod, TopologySpreadConstraint
from k8s_scheduler.api.pod_volumes import Volume
from k8s_scheduler.api.ports import HostPort, host_ports
from k8s_scheduler.api.resources import Requests, pod_requests
from k8s_scheduler.api.selectors.labels import Requirements, matches
from k8s_scheduler.api.taints import Taint, Toleration
from k8s_scheduler.core.state.terms.held_terms import (
    HeldTerms,
    PodTerm,
    readable_terms_of,
    terms_of,
)
from k8s_scheduler.core.state.terms.picked_terms import PickedTerms

Made = TypeVar("Made")


@dataclass(slots=True)
class Questions:
    """What plugins wanted to know of a pod that pods of one spec may differ in."""

    # All its labels; who it is: its name and uid.
    labels: bool = False
    name: bool = False
    # What pods of a partial shape differ in: of a pod that names claims these, of any other what it
    # requests, and which nodes it demands or prefers.
    own: bool = False
    # Which terms of placed pods pick it.
    terms: bool = False
    # Dicts stand for ordered sets. The values of some labels.
    label_keys: dict[str, None] = field(default_factory=dict)
    selectors: dict[Requirements | None, None] = field(default_factory=dict)
    pairs: dict[tuple[tuple[str, str], ...], None] = field(default_factory=dict)
    # How many there are about labels and names.
    count: int = 0

    def ask_labels(self) -> None:
        """Take down that a plugin wanted to know all its labels."""
        self.count += not self.labels
        self.labels = True

    def ask_name(self) -> None:
        """Take down that a plugin wanted to know its name or its uid."""
        self.count += not self.name
        self.name = True

    def ask_label_keys(self, keys: Iterable[str]) -> None:
        """Take down that a plugin wanted to know the values of some labels."""
        before = len(self.label_keys)
        self.label_keys.update(dict.fromkeys(keys))
        self.count += len(self.label_keys) - before

    def ask_terms(self) -> None:
        """Take down that a plugin wanted to know which terms of placed pods pick it."""
        self.count += not self.terms
        self.terms = True

    def ask_selector(self, requirements: Requirements | None) -> None:
        """Take down that a plugin wanted to know whether a selector picks it."""
        self.count += requirements not in self.selectors
        self.selectors[requirements] = None

    def ask_pairs(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Take down that a plugin wanted to know whether it has all these labels."""
        self.count += pairs not in self.pairs
        self.pairs[pairs] = None

    def include(self, other: "Questions") -> None:
        if other.labels:
            self.ask_labels()
        if other.name:
            self.ask_name()
        if other.terms:
            self.ask_terms()
        self.ask_label_keys(other.label_keys)
        for requirements in other.selectors:
            self.ask_selector(requirements)
        for pairs in other.pairs:
            self.ask_pairs(pairs)
        self.own = self.own or other.own

    @property
    def differ_in_partial(self) -> bool:
        """Whether pods of a partial shape may answer differently, questions about labels apart."""
        return self.own or self.name


class PodView:
    """The pod, as far as pods of one shape are alike."""

    __slots__ = ("_pod", "_questions", "_remembered", "_requests", "_terms")

    def __init__(
        self, pod: Pod, requests: Requests | None = None, questions: Questions | None = None
    ) -> None:
        """Take a pod, its requests if they are known already, and where to take down questions."""
        self._pod = pod
        self._requests: Requests = requests or pod_requests(pod)
        self._terms: tuple[PodTerm, ...] | None = None
        self._questions: Questions | None = questions
        self._remembered: dict[object, Any] = {}

    def remembered(self, plugin: object, make: Callable[[], Made]) -> Made:
        """Return what a plugin has made for this pod, from nothing but what it requests.

        As long as the pod waits, that stays right.
        """
        if self._questions is not None:
            self._questions.own |= not names_claims(self._pod)
        if plugin not in self._remembered:
            self._remembered[plugin] = make()
        found: Made = self._remembered[plugin]
        return found

    def asking(self, questions: "Questions") -> "_Asking":
        """Return a context in which what is asked is taken down, where pods may differ."""
        return _Asking(self, questions)

    # Who it is, as far as others select it

    @property
    def namespace(self) -> str:
        return self._pod.metadata.namespace

    @property
    def labels(self) -> Labels:
        """Its labels. Who only wants to know whether a selector picks them asks for that."""
        if self._questions is not None:
            self._questions.ask_labels()
        return self._pod.metadata.labels or {}

    def labels_of(self, keys: Iterable[str]) -> Labels:
        """Return those of some labels that it has, in the order of the keys."""
        keys = tuple(keys)
        if self._questions is not None:
            self._questions.ask_label_keys(keys)
        labels = self._pod.metadata.labels or {}
        return {key: labels[key] for key in keys if key in labels}

    def is_selected_by(self, requirements: Requirements | None) -> bool:
        if self._questions is not None:
            self._questions.ask_selector(requirements)
        return matches(requirements, self._pod.metadata.labels or {})

    def has_labels(self, pairs: Mapping[str, str]) -> bool:
        if self._questions is not None:
            self._questions.ask_pairs(tuple(pairs.items()))
        return pairs.items() <= (self._pod.metadata.labels or {}).items()

    def picked_by(self, terms: HeldTerms, namespace_labels: Mapping[str, str]) -> PickedTerms:
        """Return the terms of placed pods that pick it, in a namespace with these labels."""
        if self._questions is not None:
            self._questions.ask_terms()
        metadata = self._pod.metadata
        return terms.picked(metadata.namespace, namespace_labels, metadata.labels or {})

    @property
    def controller(self) -> Controller | None:
        """The owner that manages it, if scheduling reads owners of that kind."""
        return controller_of(self._pod.metadata)

    # What it takes

    @property
    def requests(self) -> Requests:
        if self._questions is not None:
            self._questions.own |= not names_claims(self._pod)
        return self._requests

    @property
    def container_requests(self) -> Requests:
        """What the containers request, without what is set for the pod as a whole."""
        if self._questions is not None:
            self._questions.own |= not names_claims(self._pod)
        if self._pod.spec.resources is None:
            return self._requests
        return pod_requests(self._pod, with_pod_level=False)

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The ports of the node itself that the pod needs."""
        return host_ports(self._pod)

    @property
    def images(self) -> tuple[str, ...]:
        """The images of init containers, containers and volumes, as written, in this order."""
        return images_of(self._pod)

    @property
    def resource_claims(self) -> tuple[str, ...]:
        """The names under which it needs devices by claim."""
        return tuple(claim.name for claim in self._pod.spec.resource_claims or ())

    # Which nodes it wants

    @property
    def node_name(self) -> NodeName:
        """The node the pod asks for by name; empty for nearly all."""
        return NodeName(self._pod.spec.node_name)

    @property
    def node_selector(self) -> Mapping[str, str]:
        return self._pod.spec.node_selector or {}

    @property
    def node_affinity(self) -> NodeAffinityTerms | None:
        """What the pod demands and prefers of nodes."""
        if self._questions is not None:
            self._questions.own |= not names_claims(self._pod)
        affinity = self._pod.spec.affinity
        return None if affinity is None else affinity.node_affinity

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return tuple(self._pod.spec.tolerations or ())

    def tolerates(self, taint: Taint) -> bool:
        return any(t.tolerates(taint) for t in self.tolerations)

    @property
    def required_features(self) -> tuple[str, ...]:
        """What a node has to declare."""
        return required_features(self._pod)

    # Which pods it wants to be near to or far from

    @property
    def terms(self) -> tuple[PodTerm, ...]:
        """Its affinity and anti-affinity terms; SelectorError if one can't be parsed."""
        if self._terms is None:
            self._terms = terms_of(self._pod)
        return self._terms

    @property
    def readable_terms(self) -> tuple[PodTerm, ...]:
        """Its terms as a placed pod: a list with one that can't be parsed counts for nothing."""
        return readable_terms_of(self._pod)

    @property
    def spread_constraints(self) -> tuple[TopologySpreadConstraint, ...]:
        return tuple(self._pod.spec.topology_spread_constraints or ())

    # Which volumes it uses

    @property
    def name(self) -> str:
        """Its name; for texts and for the claims that are named after it, nothing else."""
        if self._questions is not None:
            self._questions.ask_name()
        return self._pod.metadata.name

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """Those of its volumes that plugins look at; named only where the name matters."""
        if self._questions is not None:
            self._questions.own |= names_claims(self._pod)
        return tuple(self._pod.spec.volumes or ())

    def controls(self, metadata: ObjectMeta) -> bool:
        if self._questions is not None:
            self._questions.ask_name()
        owners = metadata.owner_references or ()
        return any(o.controller and o.uid == self._pod.metadata.uid for o in owners)


def names_claims(pod: Pod) -> bool:
    """Return whether a pod uses claims that are not made for it."""
    return any(v.persistent_volume_claim is not None for v in pod.spec.volumes or ())


def images_of(pod: Pod) -> tuple[str, ...]:
    """Return the images of init containers, containers and volumes, as written, in this order."""
    spec = pod.spec
    found = [container.image for container in spec.init_containers or ()]
    found += [container.image for container in spec.containers or ()]
    if spec.volumes:
        found += [v.image.reference for v in spec.volumes if v.image is not None]
    return tuple(found)


class _Asking:
    """The time in which questions about a pod are taken down."""

    __slots__ = ("_questions", "_view")

    def __init__(self, view: PodView, questions: Questions) -> None:
        self._view = view
        self._questions = questions

    def __enter__(self) -> PodView:
        self._view._questions = self._questions  # noqa: SLF001  a part of the view itself
        return self._view

    def __exit__(self, *_error: object) -> None:
        self._view._questions = None  # noqa: SLF001
