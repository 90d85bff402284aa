"""Of a custom resource's objects only the declared paths are read."""

import msgspec
import pytest

from k8s_scheduler.api.custom_objects import CustomObject, custom_reader, names_of


def read(raw, *paths):
    wire, to_object = custom_reader(paths)
    metadata = {"name": "x"} | raw.pop("metadata", {})
    data = msgspec.json.encode({"metadata": metadata, **raw})
    return to_object(msgspec.json.decode(data, type=wire))


def test_what_is_declared_is_there_by_its_path_and_nothing_else():
    raw = {"spec": {"minMember": 3, "queue": "a"}, "status": {"running": 2}, "kind": "PodGroup"}
    found = read(raw, "spec.minMember")
    assert found.content == {"spec.minMember": 3}
    assert found.metadata.name == "x"


def test_below_a_declared_field_everything_is_kept():
    raw = {"spec": {"resources": {"cpu": "1", "list": [{"a": None}]}}}
    assert read(raw, "spec.resources").content == {"spec.resources": raw["spec"]["resources"]}


def test_a_path_within_another_is_there_too():
    content = read({"spec": {"a": {"b": 1}, "c": 2}}, "spec.a.b", "spec").content
    assert content == {"spec": {"a": {"b": 1}, "c": 2}, "spec.a.b": 1}


@pytest.mark.parametrize("spec", [None, "text", 5, 1.5, True, [{"a": 1}], {}, {"b": {"a": 1}}])
def test_a_path_that_leads_nowhere_is_left_out(spec):
    assert read({"spec": spec}, "spec.a").content == {}
    assert read({}, "spec.a").content == {}


def test_a_null_is_a_value():
    assert read({"spec": {"a": None}}, "spec.a").content == {"spec.a": None}


def test_names_may_have_dots_and_any_letters():
    raw = {"spec": {"example.com/a-b": 1}}
    assert read(raw, r"spec.example\.com/a-b").content == {r"spec.example\.com/a-b": 1}


def test_of_annotations_only_the_declared_ones_are_kept():
    path = r"metadata.annotations.example\.com/rank"
    metadata = {"annotations": {"example.com/rank": "7", "other": "x" * 1000}, "labels": {"a": "b"}}
    found = read({"metadata": metadata}, path)
    assert found.content == {path: "7"}
    assert (found.metadata.annotations, found.metadata.labels) == (None, {"a": "b"})
    assert read({}, path).content == {}


def test_a_custom_object_survives_msgpack():
    found = read({"spec": {"a": {"b": [1, 2.5, None]}}}, "spec.a")
    raw = msgspec.msgpack.decode(msgspec.msgpack.encode(found))
    assert msgspec.convert(raw, CustomObject) == found


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "has an empty name"),
        ("spec..a", "has an empty name"),
        ("metadata", "is not to one annotation"),
        ("metadata.finalizers", "is not to one annotation"),
        ("metadata.annotations", "is not to one annotation"),
        ("metadata.annotations.a.b", "is not to one annotation"),
    ],
)
def test_paths_that_cannot_be_declared(path, problem):
    with pytest.raises(ValueError, match=problem):
        names_of(path)
