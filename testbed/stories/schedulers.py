"""Both schedulers on one bed, with the same two profiles under names of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from testbed.bed import Bed
from testbed.binaries import find_tools
from testbed.daemon import Daemon
from testbed.layout import Layout
from testbed.options import SCHEDULER, BedOptions
from testbed.ports import choose_ports
from testbed.stories.stage import OURS, THEIRS
from testbed.stories.telling import PROFILES
from testbed.waiting import eventually

_PROGRAM = "kube-scheduler-of-stories"


@dataclass(frozen=True, slots=True)
class Pair:
    """A bed on which both run."""

    bed: Bed
    ours: Daemon


@contextmanager
def both_running() -> Iterator[Pair]:
    """Run a bed with nothing but the two schedulers: nobody else changes what they see."""
    with Bed(BedOptions(components=())) as bed:
        _start_kube_scheduler(bed)
        daemon = Daemon(bed, name="k8s-scheduler-of-stories", configuration=_configuration(OURS))
        daemon.start()
        yield Pair(bed, daemon)
        daemon.stop()


def _configuration(side: str, kubeconfig: str = "") -> str:
    first, second = PROFILES[side]
    # A profile that must not judge as the other one does.
    without_taints = {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {"schedulerName": first},
            {"schedulerName": second, "plugins": without_taints},
        ],
    }
    if kubeconfig:
        document["clientConnection"] = {"kubeconfig": kubeconfig}
    return yaml.safe_dump(document, sort_keys=False)


def _start_kube_scheduler(bed: Bed) -> None:
    folder = bed.state_dir / _PROGRAM
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(_configuration(THEIRS, str(bed.kubeconfig)), encoding="utf-8")
    pki = Layout(bed.state_dir).pki
    (port,) = choose_ports(1, taken=set())
    bed.add_program(
        _PROGRAM,
        [
            str(find_tools([SCHEDULER]).binaries[SCHEDULER].path),
            f"--config={config}",
            f"--authentication-kubeconfig={bed.kubeconfig}",
            f"--authorization-kubeconfig={bed.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={pki / 'serving.crt'}",
            f"--tls-private-key-file={pki / 'serving.key'}",
        ],
    )
    bed.start_program(_PROGRAM)
    log = bed.log(_PROGRAM)
    eventually(lambda: log.exists() and "Serving securely" in log.read_text(), 60, "it serves")
