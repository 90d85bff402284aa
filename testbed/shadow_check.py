"""`make shadow-check`: `k8s-scheduler shadow` beside kube-scheduler on a real control plane.

kube-scheduler places a mixed load while shadow, under a role that may only look, follows it. Exit
code 0 only if every binding was feasible for us and among the best, or is explained by a race
whose other order was set up and judged.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from testbed.bed import Bed
from testbed.daemon import Daemon
from testbed.errors import TestbedError
from testbed.installation import SHADOW_ACCOUNT, install, log_in
from testbed.options import CONTROLLER_MANAGER, KWOK, SCHEDULER, BedOptions
from testbed.shadow_pods import mixed_nodes, mixed_pods
from testbed.waiting import eventually
from testbed.workload import create_all

NAMESPACE = "default"
FOLLOWED = "default-scheduler"
_SECONDS = 300.0


def shadow_of(bed: Bed, *, out: Path, name: str = "shadow", flags: tuple[str, ...] = ()) -> Daemon:
    """Return a shadow of the bed's kube-scheduler, logged in under the role that may only look."""
    folder = bed.state_dir / name
    folder.mkdir(exist_ok=True)
    install(bed, files=("shadow/rbac.yaml",))
    kubeconfig = log_in(bed, folder / "kubeconfig", account=SHADOW_ACCOUNT)
    own = (f"--scheduler-name={FOLLOWED}", f"--out={out}")
    return Daemon(bed, name=name, command="shadow", kubeconfig=kubeconfig, flags=(*own, *flags))


def main(arguments: list[str]) -> int:
    """Run the check; return the exit code."""
    options = _parser().parse_args(arguments)
    out = Path(options.out)
    try:
        with Bed(BedOptions(components=(CONTROLLER_MANAGER, KWOK, SCHEDULER))) as bed:
            report = _follow(bed, options, out.absolute())
    except TestbedError as error:
        print(f"shadow-check: {error}", file=sys.stderr)
        return 1
    profile = report["profiles"][FOLLOWED]
    complete = profile["judged"] == options.pods
    return 0 if complete and profile["agreed"] == profile["judged"] else 1


def _follow(bed: Bed, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    create_all(bed.client, list(mixed_nodes(options.nodes)))
    shadow = shadow_of(bed, out=out, flags=("-v=4",)).start()
    load = list(mixed_pods(options.pods, namespace=NAMESPACE, scheduler_name=FOLLOWED))
    print(f"kube-scheduler places {options.pods} pods on {options.nodes} nodes ...", flush=True)
    create_all(bed.client, load)
    try:
        eventually(lambda: _bound(bed) >= options.pods, _SECONDS, "every pod is bound")
    except AssertionError as error:
        # What was bound is judged all the same; the exit code says that it is not all.
        print(error, file=sys.stderr)
    cpu_seconds = shadow.usage().cpu_seconds
    shadow.stop()
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    print(_table(shadow.log.read_text(encoding="utf-8")))
    print(f"shadow used {cpu_seconds / options.pods * 1000:.1f} ms of CPU per pod, start included")
    print(f"the whole report is in {out}", flush=True)
    return report


def _bound(bed: Bed) -> int:
    pods = bed.client.list(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


def _table(log: str) -> str:
    """Return the end of what the process said: the table."""
    before, found, after = log.rpartition("bindings seen")
    return before.rpartition("\n")[0].rpartition("\n")[2] + "\n" + found + after


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.shadow_check", description=__doc__)
    parser.add_argument("--nodes", type=int, default=60, help="simulated nodes (default 60)")
    parser.add_argument("--pods", type=int, default=1000, help="pods to place (default 1000)")
    parser.add_argument("--out", default="shadow-report.json", help="where the report goes")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
