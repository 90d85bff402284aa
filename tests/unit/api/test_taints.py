"""Which toleration covers which taint."""

import random

import pytest

from k8s_scheduler.api.taints import Taint, TaintSet, Toleration, Tolerations

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(value="v"), True),
        (Toleration(key="k", operator="Gt", value="1"), False),
    ],
)
def test_covers(toleration, covers):
    assert toleration.tolerates(TAINT) is covers


def test_all_hard_taints_need_a_toleration():
    other = Taint(key="o", effect="NoExecute")
    soft = Taint(key="s", effect="PreferNoSchedule")
    exists = Toleration(key="k", operator="Exists")
    assert Tolerations([exists]).cover_hard(TaintSet([TAINT, soft]))
    assert not Tolerations([exists]).cover_hard(TaintSet([TAINT, other]))
    assert Tolerations([]).cover_hard(TaintSet())


@pytest.mark.parametrize("seed", range(200))
def test_soft_taints_that_are_not_covered_are_counted(seed):
    rng = random.Random(seed)
    words = {"key": ["a", "b", "c", ""], "value": ["", "v"]}
    effects = ["NoSchedule", "PreferNoSchedule", "PreferNoSchedule"]

    def chosen(**more):
        return {name: rng.choice(values) for name, values in (words | more).items()}

    taints = TaintSet(Taint(**chosen(effect=effects)) for _ in range(rng.randrange(6)))
    operators = ["", "Exists", "Equal", "Gt"]
    listed = [
        Toleration(**chosen(effect=[*effects, ""], operator=operators))
        for _ in range(rng.randrange(5))
    ]
    soft = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
    uncovered = [t for t in soft if not any(each.tolerates(t) for each in listed)]
    assert Tolerations(listed).uncovered_soft(taints) == len(uncovered)


def test_taints_of_which_a_pod_says_nothing_are_not_looked_at_one_by_one(monkeypatch):
    asked = []
    cover = Tolerations.cover

    def counted(tolerations, taint):
        asked.append(taint)
        return cover(tolerations, taint)

    monkeypatch.setattr(Tolerations, "cover", counted)
    soft = [Taint(key=f"k{number}", effect="PreferNoSchedule") for number in range(250)]
    own = Toleration(key="k7", operator="Exists")
    assert Tolerations([own]).uncovered_soft(TaintSet(soft)) == 249
    assert asked == [soft[7]]
