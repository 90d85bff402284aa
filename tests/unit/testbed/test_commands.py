import re
from pathlib import Path

import pytest

from testbed.commands import Plan, arguments, needed_ports
from testbed.layout import Layout
from testbed.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    OPTIONAL,
    SCHEDULER,
    AuditMode,
    BedOptions,
)


def _plan(**options) -> Plan:
    chosen = BedOptions(**options)
    ports = {name: 20_000 + index for index, name in enumerate(needed_ports(chosen))}
    return Plan(layout=Layout(Path("/state")), ports=ports, options=chosen)


def _flag(flags: list[str], name: str) -> str:
    (value,) = (flag.partition("=")[2] for flag in flags if flag.startswith(f"--{name}="))
    return value


class TestAdmission:
    """Plugins that rely on the controller manager run only where it runs."""

    def test_without_controller_manager_they_are_off(self):
        flags = arguments(API_SERVER, _plan(components=()))
        disabled = _flag(flags, "disable-admission-plugins").split(",")
        assert {"ServiceAccount", "TaintNodesByCondition"} <= set(disabled)

    def test_with_controller_manager_they_are_on(self):
        flags = arguments(API_SERVER, _plan(components=(CONTROLLER_MANAGER,)))
        assert _flag(flags, "disable-admission-plugins") == "DefaultStorageClass"


@pytest.mark.parametrize("audit", [True, False])
def test_audit_log_is_kept_only_when_asked_for(audit):
    flags = arguments(API_SERVER, _plan(audit=audit))
    assert any(flag.startswith("--audit-log-path=") for flag in flags) is audit


@pytest.mark.parametrize(
    ("chosen", "mode"), [({}, "blocking-strict"), ({"audit_mode": AuditMode.BLOCKING}, "blocking")]
)
def test_audit_log_is_strict_unless_told_otherwise(chosen, mode):
    flags = arguments(API_SERVER, _plan(audit=True, **chosen))
    assert _flag(flags, "audit-log-mode") == mode


def test_extra_flags_come_last_so_that_they_win():
    plan = _plan(extra_flags={API_SERVER: ["--v=4"]})
    assert arguments(API_SERVER, plan)[-1] == "--v=4"
    assert "--v=4" not in arguments(ETCD, plan)


def test_nobody_listens_or_connects_beyond_loopback():
    plan = _plan(components=OPTIONAL)
    text = " ".join(flag for name in plan.options.all_components for flag in arguments(name, plan))
    addresses = set(re.findall(r"https?://([\d.]+):", text))
    assert addresses == {"127.0.0.1"}
    for name in (API_SERVER, CONTROLLER_MANAGER, SCHEDULER):
        assert _flag(arguments(name, plan), "bind-address") == "127.0.0.1"


def test_every_component_has_a_port_of_its_own_and_etcd_one_more():
    names = needed_ports(BedOptions(components=OPTIONAL))
    assert len(names) == len(set(names)) == 6


def test_node_monitor_waits_longer_than_the_lease_lasts():
    plan = _plan()
    assert plan.options.node_monitor_grace_seconds > plan.options.node_lease_seconds
    flags = arguments(CONTROLLER_MANAGER, plan)
    assert _flag(flags, "node-monitor-grace-period") == "900s"


def test_rbac_decides_for_everybody():
    assert _flag(arguments(API_SERVER, _plan()), "authorization-mode") == "RBAC"


def test_kwok_reads_the_configuration_of_the_bed():
    plan = _plan(components=(KWOK,))
    assert _flag(arguments(KWOK, plan), "config") == str(plan.layout.kwok_config)
