"""The table of kinds: values that are compared by group and kind, and found by either name."""

import pytest

from k8s_scheduler.api.custom_objects import CustomObject
from k8s_scheduler.api.kinds import (
    BUILT_IN,
    Kind,
    KindError,
    as_text,
    custom_kind,
    from_text,
    joined,
    kind_named,
)


def test_a_kind_is_written_with_its_group():
    assert str(Kind.REPLICA_SET) == "apps/ReplicaSet"
    assert str(Kind.NAMESPACE) == "Namespace"


def test_an_entry_says_how_it_is_served():
    kind = Kind.CSI_NODE
    assert (kind.group, kind.name, kind.resource) == ("storage.k8s.io", "CSINode", "csinodes")
    assert (kind.versions, kind.namespaced) == (("v1",), False)


def test_the_table_has_every_entry_once_and_in_order():
    assert len(set(BUILT_IN)) == len(BUILT_IN) == 14
    assert (BUILT_IN[0], BUILT_IN[-1]) == (Kind.NAMESPACE, Kind.DEVICE_CLASS)


def test_kinds_come_in_the_order_of_their_text():
    assert sorted([Kind.STATEFUL_SET, Kind.SERVICE, Kind.REPLICA_SET]) == [
        Kind.SERVICE,
        Kind.REPLICA_SET,
        Kind.STATEFUL_SET,
    ]


def test_a_kind_cannot_be_changed():
    with pytest.raises(AttributeError, match="resource of a kind can't be changed"):
        Kind.SERVICE.resource = "pods"


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_built_in_kind_is_found_by_its_text_and_by_the_name_of_older_recordings(kind):
    assert kind_named(str(kind)) is kind
    assert kind_named(kind.name) is kind
    assert from_text(Kind, as_text(kind)) is kind


def test_another_kind_is_known_by_its_names_alone():
    kind = kind_named("scheduling.x-k8s.io/PodGroup")
    assert (kind.group, kind.name, kind.type) == ("scheduling.x-k8s.io", "PodGroup", CustomObject)
    assert kind.is_custom
    assert kind == kind_named("scheduling.x-k8s.io/PodGroup")
    assert kind != kind_named("example.com/PodGroup")


def test_only_kinds_are_encoded_and_decoded_as_text():
    with pytest.raises(NotImplementedError, match="object can't be encoded"):
        as_text(object())
    with pytest.raises(NotImplementedError, match="complex can't be decoded"):
        from_text(complex, "x")


def pod_group(*paths, version="v1alpha1"):
    full_name = "podgroups.scheduling.x-k8s.io"
    return custom_kind("PodGroup", full_name, version=version, paths=paths)


def test_a_custom_kind_is_declared_with_what_is_read_of_it():
    kind = pod_group("spec.minMember", "spec.a", "spec.a")
    assert str(kind) == "scheduling.x-k8s.io/PodGroup"
    assert (kind.group, kind.resource) == ("scheduling.x-k8s.io", "podgroups")
    assert (kind.versions, kind.paths) == (("v1alpha1",), ("spec.a", "spec.minMember"))
    assert kind.namespaced
    assert kind.is_custom
    assert kind.label == "podgroups.scheduling.x-k8s.io"
    assert kind == kind_named("scheduling.x-k8s.io/PodGroup")


@pytest.mark.parametrize(
    ("name", "full_name", "version", "path", "problem"),
    [
        ("X", "xs", "v1", "spec", "needs a name, resource.group and a version"),
        ("X", ".g", "v1", "spec", "needs a name, resource.group and a version"),
        ("X", "xs.g", "", "spec", "needs a name, resource.group and a version"),
        ("", "xs.g", "v1", "spec", "needs a name, resource.group and a version"),
        ("X", "xs.g", "v1", "spec..a", "has an empty name"),
        ("ReplicaSet", "replicasets.apps", "v1", "spec", "apps/ReplicaSet is a built-in kind"),
    ],
)
def test_custom_kinds_that_cannot_be_declared(name, full_name, version, path, problem):
    with pytest.raises(KindError, match=problem):
        custom_kind(name, full_name, version=version, paths=[path])


@pytest.mark.parametrize("turned", [False, True])
def test_kinds_are_joined_with_the_paths_of_all_that_declare_them(turned):
    kinds = [pod_group("spec.a"), Kind.SERVICE, pod_group("spec.b", version="v2"), Kind.SERVICE]
    service, group = joined(reversed(kinds) if turned else kinds)
    assert (service, group) == (Kind.SERVICE, pod_group())
    assert (group.versions, group.paths) == (("v1alpha1",), ("spec.a", "spec.b"))
