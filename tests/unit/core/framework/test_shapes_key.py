"""The key of a shape holds what plugins can see of a pod, and nothing else.

Every field that is decoded of a pod is changed, one at a time, and every member of `PodView` is
asked before and after. A new field, or a new member of the view, is part of this without a word
here: one that shows more than the key holds fails, and so does a key that holds more.
"""

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from k8s_scheduler.api.meta import ObjectMeta, OwnerReference
from k8s_scheduler.api.pod import Container, Pod
from k8s_scheduler.api.pod_volumes import EphemeralSource, Volume
from k8s_scheduler.api.selectors.labels import pairs_of
from k8s_scheduler.api.taints import Taint
from k8s_scheduler.core.framework.shapes import ShapeKey, shape_of
from k8s_scheduler.core.framework.views.pod_view import PodView, Questions
from k8s_scheduler.core.state.terms.held_terms import HeldTerms, PodTerm, TermKind

Path = tuple[str | int, ...]

# What a field holds where any text or number would not do, and what it is changed to.
VALUES: dict[str, tuple[Any, Any]] = {
    "operator": ("In", "NotIn"),
    "restart_policy": ("Always", "Never"),
    "action": ("RestartAllContainers", "Restart"),
    "host_network": (True, False),
    "host_users": (False, True),
    "host_ip": ("10.0.0.1", "10.0.0.2"),
    "kind": ("ReplicaSet", "Job"),
    "api_version": ("apps/v1", "apps/v2"),
    "controller": (True, False),
    "when_unsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
}
# In the key though no plugin sees it: it says which plugins are asked.
NOT_SEEN = {("spec", "scheduler_name")}
# Who the pod is. In no key, unless claims are named after it: whoever asks is taken down.
IDENTITY = {"name", "controls"}
# What it answers by its labels.
LABELS = {"labels", "labels_of", "is_selected_by", "has_labels", "picked_by"}


def value_of(kind: Any, field: str = "") -> Any:
    """Return a value of a type with everything set that can be."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        chosen = next(a for a in arguments if a is not type(None))
        return value_of(chosen, field)
    if origin is list:
        return volumes() if arguments[0] is Volume else [value_of(arguments[0], field)]
    if origin is dict:
        is_labels = arguments[1] is str
        return {"key": "value", "app": "a"} if is_labels else {"cpu": "1", "memory": "2"}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        found = {name: value_of(hints[name], name) for name in kind.__struct_fields__}
        return kind(**found)
    if field in VALUES:
        return VALUES[field][0]
    base = {str: "text", bool: True, int: 1}.get(kind)
    return 1 if base is None else base


def volumes() -> list[Volume]:
    """Return a volume of each source, and one that has none."""
    hints = get_type_hints(Volume)
    sources = [name for name in Volume.__struct_fields__ if name not in ("name", "ephemeral")]
    found = [Volume(**{"name": f"v-{s}", s: value_of(hints[s], s)}) for s in sources]
    return [*found, Volume(name="kube-api-access-x7k2p")]


def complete_pod() -> Pod:
    """Return a pod with every field set; one init container stays, another one does not."""
    pod = value_of(Pod)
    sidecar = value_of(Container)
    passing = msgspec.structs.replace(sidecar, restart_policy="Never")
    pod = with_value(pod, ("spec", "tolerations", 0, "operator"), "Exists")
    return with_value(pod, ("spec", "init_containers"), [sidecar, passing])


def with_own_claim(pod: Pod) -> Pod:
    own = Volume(name="own", ephemeral=EphemeralSource())
    return with_value(pod, ("spec", "volumes"), [*(pod.spec.volumes or ()), own])


def with_value(thing: Any, path: Path, value: Any) -> Any:
    """Return the same with another value at a place."""
    if not path:
        return value
    step, *rest = path
    if isinstance(thing, msgspec.Struct):
        inner = with_value(getattr(thing, str(step)), tuple(rest), value)
        return msgspec.structs.replace(thing, **{str(step): inner})
    changed = thing.copy()
    changed[step] = with_value(thing[step], tuple(rest), value)
    return changed


def changes(thing: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every place in it with another value for it."""
    if isinstance(thing, msgspec.Struct):
        hints = get_type_hints(type(thing))
        for name in thing.__struct_fields__:
            inner = getattr(thing, name)
            if inner is not None:
                yield from changes(inner, (*path, name))
                if type(None) in get_args(hints[name]):
                    yield (*path, name), None
    elif isinstance(thing, list | dict):
        for step, inner in enumerate(thing) if isinstance(thing, list) else thing.items():
            yield from changes(inner, (*path, step))
        yield path, type(thing)()
    else:
        field = next((s for s in reversed(path) if isinstance(s, str)), "")
        yield path, VALUES.get(field, (None, _other(thing)))[1]


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return f"{value}1"


def held_terms(base: Pod) -> HeldTerms:
    found = HeldTerms()
    selector = pairs_of({"app": "a"})
    kind, where = TermKind.REQUIRED_ANTI_AFFINITY, (base.metadata.namespace,)
    found.acquire((PodTerm(kind, "zone", where, None, selector),))
    return found


CALLS: dict[str, Callable[[PodView, Pod], Any]] = {
    "labels_of": lambda view, _: view.labels_of(("app", "key")),
    "is_selected_by": lambda view, _: view.is_selected_by(pairs_of({"app": "a"})),
    "has_labels": lambda view, _: view.has_labels({"key": "value"}),
    "picked_by": lambda view, base: view.picked_by(held_terms(base), {}).terms.tolist(),
    "tolerates": lambda view, _: view.tolerates(Taint("text", "text", "text")),
    "controls": lambda view, base: view.controls(
        ObjectMeta(owner_references=[OwnerReference(uid=base.metadata.uid, controller=True)])
    ),
}
# These show nothing of the pod: what is asked is taken down, and a plugin's own work is kept.
NOT_SHOWN = {"asking", "remembered"}
MEMBERS = [
    name for name, _ in inspect.getmembers(PodView) if name[0] != "_" and name not in NOT_SHOWN
]


def seen(pod: Pod, base: Pod, member: str, questions: Questions | None = None) -> Any:
    """Return what a member of the view says; what it asks is taken down."""
    view = PodView(pod)
    with view.asking(Questions() if questions is None else questions):
        try:
            if isinstance(getattr(PodView, member), property):
                return getattr(view, member)
            return CALLS[member](view, base)
        except ValueError as error:
            return repr(error)


def differing(base: Pod, other: Pod) -> set[str]:
    """Return the members that tell the pods apart."""
    return {name for name in MEMBERS if seen(base, base, name) != seen(other, base, name)}


BASES = {"": complete_pod(), "with a claim of its own": with_own_claim(complete_pod())}
CASES = [
    pytest.param(base, path, value, id=".".join(map(str, path)) + f"={value!r} {name}".rstrip())
    for name, base in BASES.items()
    for path, value in changes(base)
    if not name or path[0] == "metadata" or path[:2] == ("spec", "volumes")
]


def test_every_member_of_the_view_is_asked():
    for name in MEMBERS:
        assert isinstance(getattr(PodView, name), property) or name in CALLS, name


def test_whatever_the_view_shows_can_be_changed():
    """If a member said the same of all pods here, nothing would be known about it."""
    found: set[str] = set()
    for case in CASES:
        base, path, value = case.values
        found |= differing(base, with_value(base, path, value))
    assert found == set(MEMBERS)


@pytest.mark.parametrize(("base", "path", "value"), CASES)
def test_the_key_changes_with_what_plugins_can_see_and_with_nothing_else(base, path, value):
    other = with_value(base, path, value)
    before, after = shape_of(base), shape_of(other)
    found = differing(base, other)
    has_own_claim = any(v.ephemeral for v in other.spec.volumes or ())
    in_spec = found - LABELS - (set() if has_own_claim else IDENTITY)
    assert (before.labels != after.labels) == ("labels" in found)
    assert before != after or not found & LABELS
    assert (before.spec != after.spec) == (bool(in_spec) or path in NOT_SEEN), sorted(found)
    for member in sorted(found):
        _check_question(member, base, before, after)


def _check_question(member: str, base: Pod, before: ShapeKey, after: ShapeKey) -> None:
    """Pods that share something differ in this: whoever asks for it has to be known."""
    questions = Questions()
    seen(base, base, member, questions)
    if before.spec == after.spec:
        assert questions.count, member
    elif before.partial == after.partial:
        assert questions.differ_in_partial, member
