"""Which toleration covers which taint."""

import pytest

from k8s_scheduler.api.taints import Taint, Toleration, Tolerations, tolerates_all

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


def test_all_taints_need_a_toleration():
    other = Taint(key="o", effect="NoExecute")
    exists = Toleration(key="k", operator="Exists")
    assert tolerates_all(Tolerations([exists]), [TAINT])
    assert not tolerates_all(Tolerations([exists]), [TAINT, other])
    assert tolerates_all(Tolerations([]), [])
