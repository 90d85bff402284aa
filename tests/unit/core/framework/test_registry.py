"""A plugin is made with its arguments, typed, and with every default filled in."""

from typing import Annotated, ClassVar

import msgspec
import pytest

from k8s_scheduler.api.config.arguments import PluginArgs
from k8s_scheduler.api.config.field_errors import FieldError, FieldPath, invalid
from k8s_scheduler.api.config.rules import RULE, Int32, Range
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.plugin import Rejection
from k8s_scheduler.core.framework.registry import ProfileError, ProfilePlace, Registration, facts_of


class DoorArgs(PluginArgs, frozen=True):
    """Arguments of a door."""

    width: Annotated[Int32, msgspec.Meta(extra={RULE: Range(0, 9, "too wide")})] = 3
    name: str = ""

    def completed(self) -> "DoorArgs":
        return msgspec.structs.replace(self, name=self.name or f"door {self.width}")

    def broken_rules(self, path: FieldPath) -> list[FieldError]:
        return [invalid((*path, "name"), self.name, "no name")] if self.name == "x" else []


class Door:
    name: ClassVar = "Door"
    reasons: ClassVar = ()
    depends_on: ClassVar = ()
    arguments: ClassVar = DoorArgs

    def __init__(self, args: DoorArgs) -> None:
        self.args = args

    def permit(self, *_args: object) -> Rejection | None:
        return None


def test_arguments_are_typed_and_complete():
    assert Registration(Door).make({}).args == DoorArgs(3, "door 3")
    assert Registration(Door).make({"width": 5, "name": "front"}).args == DoorArgs(5, "front")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": "5"}, 'Door.width: must be an integer, not the string "5"'),
        ({"width": 10}, "Door.width: Invalid value: 10: too wide"),
        ({"name": "x"}, 'Door.name: Invalid value: "x": no name'),
        ({"height": 1}, 'Door.height: unknown field "height"'),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_profile(given, said):
    with pytest.raises(ProfileError) as error:
        Registration(Door).make(given)
    assert str(error.value) == said


def test_configuration_is_told_what_it_has_to_know():
    facts = facts_of({"Door": Registration(Door, place=ProfilePlace.NAMED, weight=2)})["Door"]
    assert (facts.points, facts.arguments, facts.by_default) == ({"permit"}, DoorArgs, False)
    assert facts.default_weight == 2
    assert facts_of({"Door": Registration(Door)})["Door"].by_default
    assert facts_of({"Door": Registration(Door, place=ProfilePlace.SCHEDULER)}) == {}


@pytest.mark.parametrize("name", BUILT_INS)
def test_constructors_take_the_type_that_is_named(name):
    registration = BUILT_INS[name]
    annotations = getattr(registration.kind.__init__, "__annotations__", {})
    taken = [kind for argument, kind in annotations.items() if argument != "return"]
    assert taken == ([registration.arguments] if registration.arguments else [])
