"""What a bed is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from testbed.binaries import COMPONENTS
from testbed.errors import TestbedError

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"

ALWAYS = (ETCD, API_SERVER)
OPTIONAL = tuple(name for name in COMPONENTS if name not in ALWAYS)

# What people type for a component's name.
ALIASES = {"kcm": CONTROLLER_MANAGER, "sched": SCHEDULER, "api": API_SERVER}


class AuditMode(StrEnum):
    """How the API server writes its audit log; the names are its own.

    Its third, batch, copies each entry before it writes it, which costs more. Strict adds that a
    request whose first line can't be written is refused.
    """

    BLOCKING = "blocking"
    BLOCKING_STRICT = "blocking-strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class BedOptions:
    """Which components run besides etcd and the API server, and how.

    With `audit` the API server keeps a log under `audit_policy`, an audit.k8s.io/v1 Policy; None
    is the policy of `audit.py`.

    With `service_accounts` the admission plugin of that name is on without a controller manager,
    too: pods get the volume with the token that they have in every real cluster. Something has to
    make the account `default` of each namespace then.

    The node lease is ten times longer than a kubelet's: at 1,000 nodes the renewals of 40 s leases
    alone cost two thirds of a core. Tests of node failure set both times short.
    """

    components: Sequence[str] = (CONTROLLER_MANAGER,)
    state_dir: Path | None = None
    audit: bool = False
    audit_policy: Mapping[str, Any] | None = None
    audit_mode: AuditMode = AuditMode.BLOCKING_STRICT
    extra_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    service_accounts: bool = False
    node_lease_seconds: int = 400
    node_monitor_grace_seconds: int = 900

    def __post_init__(self) -> None:
        """Refuse what could only fail later, in a process of its own."""
        for name in (*self.components, *self.extra_flags):
            if name not in COMPONENTS:
                raise TestbedError(f"no such component: {name}; there are {', '.join(COMPONENTS)}")
        if idle := set(self.extra_flags) - set(self.all_components):
            raise TestbedError(
                f"flags for a component that does not run: {', '.join(sorted(idle))}"
            )
        if self.audit_policy is not None and not self.audit:
            raise TestbedError("an audit policy without an audit log; ask for it with audit=True")

    @property
    def all_components(self) -> tuple[str, ...]:
        """Everything that runs, in the order it is started."""
        return tuple(name for name in COMPONENTS if name in ALWAYS or name in self.components)


def parse_components(text: str) -> tuple[str, ...]:
    """Read `kcm,kwok` as the optional components it names."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = [ALIASES.get(word, word) for word in words]
    if unknown := [name for name in names if name not in OPTIONAL]:
        raise TestbedError(f"{', '.join(unknown)}: not one of {', '.join(OPTIONAL)} (or kcm)")
    return tuple(name for name in OPTIONAL if name in names)
