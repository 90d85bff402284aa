import pytest

from testbed.errors import TestbedError
from testbed.options import API_SERVER, ETCD, KWOK, BedOptions, parse_components


def test_etcd_and_api_server_always_run_and_start_first():
    assert BedOptions(components=(KWOK,)).all_components == (ETCD, API_SERVER, KWOK)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("kcm", ("kube-controller-manager",)),
        ("kwok, kcm", ("kube-controller-manager", "kwok")),
        ("kube-scheduler,kube-controller-manager", ("kube-controller-manager", "kube-scheduler")),
    ],
)
def test_components_are_read_in_any_order_and_by_short_name(text, expected):
    assert parse_components(text) == expected


def test_unknown_component_on_the_command_line_is_named():
    with pytest.raises(TestbedError, match="kubelet: not one of"):
        parse_components("kcm,kubelet")


def test_unknown_component_is_refused_before_anything_starts():
    with pytest.raises(TestbedError, match="no such component: kubelet"):
        BedOptions(components=("kubelet",))


def test_flags_for_a_component_that_does_not_run_are_refused():
    with pytest.raises(TestbedError, match="does not run: kwok"):
        BedOptions(components=(), extra_flags={KWOK: ["--v=1"]})


def test_an_audit_policy_without_a_log_is_refused():
    with pytest.raises(TestbedError, match="audit=True"):
        BedOptions(audit_policy={"kind": "Policy"})
