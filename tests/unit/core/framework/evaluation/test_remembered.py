"""An answer is given again for the same question, and for no other."""

from k8s_scheduler.api.meta import ObjectMeta
from k8s_scheduler.core.framework.evaluation.remembered import Remembered


class Asked:
    """Counts how often the answer had to be worked out."""

    def __init__(self):
        self.times = 0
        self.remembered = Remembered()

    def answer(self, *inputs):
        return self.remembered.get(inputs, self.work_out)

    def work_out(self):
        self.times += 1
        return self.times


def test_the_same_inputs_are_answered_once():
    asked = Asked()
    layout = object()
    things = ObjectMeta(name="a"), ObjectMeta(name="b")
    assert asked.answer(things, layout, 3) == asked.answer(tuple(things), layout, 3) == 1


def test_any_other_input_is_another_question():
    asked = Asked()
    layout = object()
    things = (ObjectMeta(name="a"),)
    first = things, layout, 3
    for other in (
        ((ObjectMeta(name="b"),), layout, 3),
        ((), layout, 3),
        (things, object(), 3),
        (things, layout, 4),
        (things, layout),
    ):
        before = asked.answer(*first)
        assert asked.answer(*other) == before + 1


def test_equal_objects_of_another_life_are_the_same_question():
    asked = Asked()
    assert asked.answer((ObjectMeta(name="a"),)) == asked.answer((ObjectMeta(name="a"),))


def test_layouts_are_the_same_only_if_they_are_one():
    asked = Asked()
    assert asked.answer([1]) != asked.answer([1])
